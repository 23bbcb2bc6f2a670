/* Threads that run get their own timer (perf_timer.h), where the kernel allows it. It takes a first stack 10 µs after a
 * tick saw the thread running, so that this stack stands for a moment which does not depend on the program, and then
 * one in each period of the thread's CPU time. The period is drawn at random around the requested one, and drawn again
 * after some samples, so that no program is in step with it. A timer makes each context switch of its thread slightly
 * more expensive, so threads that sleep lose it again. SPDX-License-Identifier: MIT */
#include "sampler/run/timer.h"

#include "sampler/run/cpu_clock_timer.h"

#include "base/kernel.h"
#include "base/seccomp_filter.h"
#include "base/unsigned.h"
#include "sampler/source/chance.h"
#include "sampler/kernel/process_info.h"
#include "sampler/source/signal_choice.h"
#include "sampler/kernel/stack_reader.h"
#include "unwind/copied_stack.h"

#include <errno.h>
#include <sys/resource.h>

enum {
    TIMERS_MAX = 1024,
    TIMERS_WITH_ROOM = 256, /* timers with large rings; more threads share their processors, and each runs seldom */
    OPENED_A_TICK_MAX = 8,  /* timers to open in a tick; opening one costs some 30 µs */
    SAMPLES_A_PERIOD = 8,   /* samples before the period is changed, which costs some 10 µs */
    PERIODS_A_SECOND = 25,  /* changes of the period in a second */
    SLEEP_TICKS = 32,       /* ticks of sleep until a timer is closed: opening one again costs more than keeping it */
    CUT_STACKS_MAX = 4,     /* stacks larger than the largest copy until the thread is sent signals instead */
    FIRST_COPY = 16 << 10,  /* bytes of a stack that the first copies hold */
    RING_WITH_ROOM = 128 << 10,
    STACKS_TO_KNOW = 128,    /* stacks from which the size of the copies is decided */
    STACKS_TO_FORGET = 1024, /* stacks after which a cut one does not count: it was a rare handler, no recursion */
};

/* Returns how many samples THREAD takes in a period. A thread that mostly waits for a processor has few samples for the
 * wall time that they stand for, so it takes as many more as its waits were longer than its CPU time since the last
 * call. */
static uint64_t samples_a_period(const struct sampler *sampler, struct target_thread *thread)
{
    enum { SAMPLES_MAX = 4, PERIOD_NS_MIN = 2000000 };
    uint64_t cpu_ns = thread->ledger.cpu_ns - thread->perf.period_set_at.cpu_ns;
    uint64_t wait_ns = thread->ledger.waits.delay_ns - thread->perf.period_set_at.wait_ns;
    thread->perf.period_set_at = (struct period_setting){thread->ledger.cpu_ns, thread->ledger.waits.delay_ns};
    uint64_t wanted = cpu_ns > 0 ? (wait_ns + cpu_ns / 2) / cpu_ns : 1;
    uint64_t most = least(SAMPLES_MAX, sampler->tick.period_ns / PERIOD_NS_MIN);
    return least(wanted, most) > 1 ? least(wanted, most) : 1;
}

static uint64_t chance_period_ns(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t period_ns = sampler->tick.period_ns * sampler->timers.factor / samples_a_period(sampler, thread);
    return chance_timer_ns(&sampler->random_state, period_ns);
}

void timer_sample_soon(struct sampler *sampler, struct target_thread *thread)
{
    enum { PARTS = 8, PERIOD_NS_MIN = 1000000 };
    uint64_t period_ns = sampler->tick.period_ns * sampler->timers.factor / PARTS;
    if (!filter_allows(FILTER_PERF) || period_ns < PERIOD_NS_MIN) return;
    perf_timer_run_freely(&thread->perf.timer, chance_timer_ns(&sampler->random_state, period_ns));
}

bool timer_was_asked(const struct target_thread *thread, const struct perf_timer_news *news)
{
    bool is_first = thread->perf.samples == news->count;
    return is_first && thread->perf.timer.descriptor >= 0 && !timer_sees_user_code(thread);
}

/* Returns the size of a ring, in memory that the kernel locks: mostly 132 KB for a thread, and 36 KB for each of many.
 */
static uint32_t ring_size(const struct target_thread *thread, bool has_room)
{
    return has_room ? (uint32_t)greatest(RING_WITH_ROOM, 4 * thread->perf.stack_size)
                    : (uint32_t)greatest(32 << 10, 2 * thread->perf.stack_size);
}

/* Returns how many rings of an ordinary user may be large. The user may lock half a megabyte for each processor, and
 * RLIMIT_MEMLOCK for each process. An eighth of that is for rings with room. */
static uint64_t user_timers_with_room(void)
{
    enum { ALWAYS = 4, PART = 8 };
    struct rlimit limit = {0};
    (void)kernel_call4(SYS_prlimit64, 0, RLIMIT_MEMLOCK, 0, kernel_address(&limit));
    return least(TIMERS_WITH_ROOM, ALWAYS + limit.rlim_cur / PART / RING_WITH_ROOM);
}

static int open_with_ring(struct target_thread *thread, bool has_room)
{
    return perf_timer_open(&thread->perf.timer, thread->files.tid, PERF_TIMER_SEES_USER_CODE,
                           thread->perf.credit.period_ns, thread->perf.stack_size, ring_size(thread, has_room));
}

/* Opens a timer that an ordinary user may have. Its periods are counted, so it keeps its period, which is drawn at
 * random: a program could be in step with a fixed one. */
static int open_for_user_code(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t period_ns = chance_kept_timer_ns(&sampler->random_state, sampler->tick.period_ns);
    bool has_room = sampler->counters[RECORDING_TIMERS] < user_timers_with_room();
    sample_credit_begin(&thread->perf.credit, thread->ledger.cpu_ns, period_ns);
    int result = open_with_ring(thread, has_room);
    if (result == EPERM && has_room) result = open_with_ring(thread, false);
    return result;
}

static int open_for_all(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t period_ns = process_has_own_descriptors() ? 0 : chance_period_ns(sampler, thread);
    bool has_room = sampler->counters[RECORDING_TIMERS] < TIMERS_WITH_ROOM;
    int result = perf_timer_open(&thread->perf.timer, thread->files.tid, PERF_TIMER_SEES_ALL, period_ns,
                                 thread->perf.stack_size, ring_size(thread, has_room));
    bool is_denied = (result == EPERM || result == EACCES) && process_has_own_descriptors();
    sampler->counters[RECORDING_TIMERS_SEE_USER_CODE] = is_denied;
    return result;
}

static int open_perf_timer(struct sampler *sampler, struct target_thread *thread)
{
    const uint64_t *sees_user_code = &sampler->counters[RECORDING_TIMERS_SEE_USER_CODE];
    int result = EPERM;
    if (!filter_allows(FILTER_PERF)) return EPERM;
    if (!*sees_user_code) result = open_for_all(sampler, thread);
    if (*sees_user_code) result = open_for_user_code(sampler, thread);
    if (result == 0 && !thread->perf.timer.is_free) perf_timer_ask(&thread->perf.timer);
    return result;
}

bool timer_may_open(const struct sampler *sampler)
{
    return sampler->spent.timers < OPENED_A_TICK_MAX * sampler->schedule.periods_in_tick;
}

void timer_note_busy(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t *denial = &sampler->counters[RECORDING_TIMER_ERRNO];
    /* Opening a timer takes 50 to 100 µs, and one for user code takes its first stack after an entire period: a signal
     * sees a thread that lives for less. */
    if (thread->ledger.beginning.is_first_scan || sampler->tick.start_ns < sampler->start.ns + sampler->tick.period_ns)
        return;
    uint64_t count = sampler->counters[RECORDING_TIMERS];
    if (thread->perf.timer.control || thread->perf.stack_size > PERF_TIMER_STACK_MAX || *denial) return;
    if (count >= TIMERS_MAX || (sampler->timers.full_at && count >= sampler->timers.full_at)) return;
    if (!timer_may_open(sampler)) return;
    if (thread->perf.stack_size == 0) thread->perf.stack_size = FIRST_COPY;
    sampler->spent.timers++;
    int result = open_perf_timer(sampler, thread);
    if (result == 0)
        sampler->counters[RECORDING_TIMERS]++;
    else if (result == EPERM && count > 0)
        sampler->timers.full_at = count; /* no memory can be locked until one of them is closed */
    else if (result != ESRCH)
        *denial = (uint64_t)result;
}

bool timer_is_denied(const struct sampler *sampler, const struct target_thread *thread)
{
    bool is_full = sampler->timers.full_at && sampler->counters[RECORDING_TIMERS] >= sampler->timers.full_at;
    bool is_too_large = thread->perf.stack_size > PERF_TIMER_STACK_MAX;
    return !thread->perf.timer.control && (sampler->counters[RECORDING_TIMER_ERRNO] || is_full || is_too_large);
}

void timer_forget(struct sampler *sampler, struct target_thread *thread)
{
    if (!thread->perf.timer.control) return;
    perf_timer_close(&thread->perf.timer);
    perf_timer_close(&thread->stops.timer);
    thread->perf.samples = 0;
    thread->perf.ran_with_other_timer = false;
    ledger_forget_timer(&thread->ledger);
    sampler->counters[RECORDING_TIMERS]--;
}

void timer_forget_sleepers(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        if (thread->ledger.cpu_ns != thread->perf.checked_cpu_ns) {
            thread->perf.checked_cpu_ns = thread->ledger.cpu_ns;
            thread->perf.checked_tick = sampler->tick.number;
        } else if (sampler->tick.number - thread->perf.checked_tick >= SLEEP_TICKS) {
            timer_forget(sampler, thread);
            cpu_clock_timer_forget(thread);
        }
    }
}

bool timer_is_running(const struct target_thread *thread)
{
    const struct perf_timer *timer = &thread->perf.timer;
    return timer->control && timer->has_seen_switch && (!timer->newest.is_stop || timer->newest.was_preempted);
}

bool timer_has_run_on(const struct target_thread *thread)
{
    const struct perf_timer *timer = &thread->perf.timer;
    if (timer->control && !timer->has_seen_switch) return thread->perf.ran_with_other_timer;
    return timer_is_running(thread) && thread->perf.timer.sleeps == 0;
}

uint64_t timer_room(const struct target_thread *thread)
{
    return perf_timer_room(&thread->perf.timer) * 3 / 5; /* a sample takes at least 3/5 of a period (chance_timer_ns) */
}

bool timer_sees_user_code(const struct target_thread *thread)
{
    return thread->perf.timer.control && thread->perf.timer.sight == PERF_TIMER_SEES_USER_CODE;
}

/* Returns the time since the timer was opened in which it can have gone off, ns; 0: unknown. The event is not active
 * during most of a context switch, to which perf attributes no time. It is active while the kernel looks for other work
 * before a switch, and while the host of a virtual machine has the processor; the thread's CPU clock then stands still.
 * Reading the event interrupts the processor that the thread runs on, so between two readings the event is taken to be
 * as active as the thread. */
static uint64_t watched_ns(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    enum { PERIODS_BETWEEN = 8 };
    struct sample_credit *credit = &thread->perf.credit;
    uint64_t active_ns = 0, charged_ns = difference(cpu_ns, credit->start_cpu_ns);
    if (charged_ns >= credit->read_at_ns + PERIODS_BETWEEN * sampler->tick.period_ns || credit->read_at_ns == 0) {
        if (!perf_timer_active_ns(&thread->perf.timer, &active_ns)) return 0;
        credit->read_at_ns = charged_ns;
        credit->inactive_ns = difference(charged_ns, active_ns);
    }
    return difference(charged_ns, credit->inactive_ns);
}

/* Returns the periods at whose end THREAD was inside the kernel, and that are given to no stack. */
static uint64_t kernel_periods(const struct sampler *sampler, struct target_thread *thread)
{
    uint64_t period_ns = thread->perf.credit.period_ns;
    uint64_t late_ns = period_ns / 8; /* the timer may go off late, above all in a virtual machine */
    uint64_t ns = watched_ns(sampler, thread, thread->ledger.cpu_ns);
    return difference(difference(ns, late_ns) / period_ns, sample_credit_given(&thread->perf.credit));
}

bool timer_wants_reply(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    double wait_ns = sample_credit_periods_between(&thread->perf.credit) * (double)sampler->tick.period_ns;
    if (cpu_ns < thread->signal.cpu_ns_at_request + (uint64_t)wait_ns) return false;
    return kernel_periods(sampler, thread) > 0;
}

uint64_t timer_switching_ns(const struct target_thread *thread)
{
    return timer_sees_user_code(thread) ? sample_credit_switching_ns(&thread->perf.credit) : 0;
}

uint64_t timer_accounted_cpu_ns(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    uint64_t ns = watched_ns(sampler, thread, cpu_ns);
    return sample_credit_accounted_cpu_ns(&thread->perf.credit, cpu_ns, ns);
}

void timer_note_request(const struct sampler *sampler, struct target_thread *thread)
{
    uint64_t in_kernel = timer_sees_user_code(thread) ? kernel_periods(sampler, thread) : 0;
    sample_credit_note_request(&thread->perf.credit, in_kernel);
}

void timer_note_cpu_clock_start(const struct sampler *sampler, struct target_thread *thread)
{
    if (!timer_sees_user_code(thread)) return;
    timer_note_request(sampler, thread);
    sample_credit_note_cpu_clock_start(&thread->perf.credit);
}

enum signal_origin timer_preferred_origin(const struct target_thread *thread)
{
    return timer_sees_user_code(thread) ? sample_credit_preferred_origin(&thread->perf.credit) : ORIGIN_ANY;
}

uint32_t timer_fetch(struct sampler *sampler, struct target_thread *thread, struct perf_timer_news *ret_news)
{
    if (!thread->perf.timer.control) return 0;
    if (thread->perf.timer.stack_size != thread->perf.stack_size) {
        bool has_run_on = timer_has_run_on(thread);
        timer_forget(sampler, thread); /* it is opened again with the other size if the thread runs on */
        thread->perf.ran_with_other_timer = has_run_on;
        return 0;
    }
    uint32_t count = perf_timer_read(&thread->perf.timer, ret_news);
    thread->perf.credit.sleeps += thread->perf.timer.sleeps;
    if (count == 0) return 0;
    thread->perf.credit.user += ret_news->count;
    if (sample_credit_is_due(&thread->perf.credit))
        sample_credit_lend(&thread->perf.credit, ret_news->count, kernel_periods(sampler, thread));
    uint32_t before = thread->perf.samples;
    thread->perf.samples += ret_news->count;
    uint32_t between = sampler->schedule.ticks_a_second / PERIODS_A_SECOND;
    if (between < SAMPLES_A_PERIOD) between = SAMPLES_A_PERIOD;
    bool has_new_period = before == 0 || before / between != thread->perf.samples / between;
    if (has_new_period && !timer_sees_user_code(thread)) {
        if (filter_allows(FILTER_PERF)) perf_timer_run_freely(&thread->perf.timer, chance_period_ns(sampler, thread));
        if (!thread->perf.timer.is_free) {
            timer_forget(sampler, thread);
            return 0;
        }
    }
    return ret_news->kept_count;
}

/* --- Its stack ---------------------------------------------------------------------------------------------------- */

/* Has the next copies of THREAD's stack be larger: they are more exact than memory that the thread has changed since.
 * The frames that could be read end at END. */
static void enlarge_copy(struct target_thread *thread, const struct copied_stack *copy, uint64_t end)
{
    uint64_t needed = end - copy->start;
    if (needed <= copy->size || needed > PERF_TIMER_STACK_MAX) needed = copy->size + 1;
    while (thread->perf.stack_size < needed && thread->perf.stack_size < PERF_TIMER_STACK_MAX)
        thread->perf.stack_size *= 2;
    if (thread->perf.stack_size > PERF_TIMER_STACK_MAX) thread->perf.stack_size = PERF_TIMER_STACK_MAX;
    thread->perf.has_large_stack = true;
}

/* Has the next copies be smaller if THREAD's stacks are: copying costs, and the ring holds more small copies, so that
 * ticks can be spared. Copies have room for stacks twice as large as the largest that was seen. A thread whose copy was
 * once too small keeps the larger one. */
static void note_stack_size(struct target_thread *thread, uint64_t bytes)
{
    if (bytes > thread->perf.largest_stack) thread->perf.largest_stack = bytes;
    if (++thread->perf.stacks_seen % STACKS_TO_KNOW != 0) return;
    uint32_t size_min = thread->perf.has_large_stack ? thread->perf.stack_size : PERF_TIMER_STACK_MIN;
    while (thread->perf.stack_size > size_min && thread->perf.stack_size / 4 >= thread->perf.largest_stack)
        thread->perf.stack_size /= 2;
    thread->perf.largest_stack = 0;
    if (thread->perf.stacks_seen % STACKS_TO_FORGET == 0 && thread->perf.cut_stacks > 0) thread->perf.cut_stacks--;
}

/* Touches the pages around COPY, so that the kernel maps them and the next copies are complete: a copy ends at a page
 * of the stack that has never been touched, in the middle of a large array, for example. */
static void map_untouched_pages(const struct copied_stack *copy)
{
    enum { PAGE = 4096, PAGES = 16 };
    uint64_t word, first = copy->start + copy->size, below = copy->start;
    for (unsigned i = 0; i < PAGES && process_read_memory(first, &word, sizeof(word)) == sizeof(word); i++)
        first += PAGE;
    for (unsigned i = 0; i < PAGES && process_read_memory(below, &word, sizeof(word)) == sizeof(word); i++)
        below -= PAGE;
}

bool timer_walk(struct sampler *sampler, struct target_thread *thread, const struct perf_timer_sample *sample,
                uint64_t addresses[RECORDING_FRAMES_MAX], size_t *ret_count, enum unwind_outcome *ret_outcome)
{
    static struct stack_reader reader; /* the sampler thread's alone */
    struct unwind_registers registers = sample->registers;
    struct unwind_memory live = stack_reader_memory(&reader);
    const struct copied_stack copy = {
        .start = registers.values[MACHINE_SP], .words = sample->stack, .size = sample->stack_bytes};
    uint64_t outside = 0;
    *ret_outcome = unwind_walk_copied_stack(sampler->modules.current, &registers, &copy, &live, addresses,
                                            RECORDING_FRAMES_MAX, ret_count, &outside);
    if (!perf_timer_holds(sample->timer)) return false;
    if (*ret_outcome == UNWIND_PENDING || sample->timer == &thread->stops.timer) return true;
    if (outside == 0) {
        note_stack_size(thread, registers.values[MACHINE_SP] - copy.start);
        return true;
    }
    bool fits_no_copy = outside - copy.start >= PERF_TIMER_STACK_MAX; /* true also for another stack */
    if (fits_no_copy) {
        /* Functions outside of any copy had returned before they were read. The handler of a signal, if the thread
         * takes one, sees the entire stack. */
        bool is_cut = *ret_outcome != UNWIND_ROOT && ++thread->perf.cut_stacks >= CUT_STACKS_MAX;
        if (is_cut && signal_choose(&thread->files).number != 0) thread->perf.stack_size = PERF_TIMER_STACK_MAX + 1;
    } else if (sample->stack_bytes < sample->timer->stack_size) {
        map_untouched_pages(&copy);
    } else {
        enlarge_copy(thread, &copy, registers.values[MACHINE_SP]);
    }
    return true;
}
