/* Threads that run get their own timer (perf_timer.h), where the kernel allows it. It takes a first stack 10 µs after a
 * tick saw the thread running, so that this stack stands for a moment which does not depend on the program, and then
 * one in each period of the thread's CPU time. The period is drawn at random around the requested one, and drawn again
 * after some samples, so that no program is in step with it. A timer makes each context switch of its thread slightly
 * more expensive, so threads that sleep lose it again. SPDX-License-Identifier: MIT */
#include "base/kernel.h"
#include "base/seccomp_filter.h"
#include "base/unsigned.h"
#include "sampler/kernel/own_descriptors.h"
#include "sampler/kernel/own_memory.h"
#include "sampler/source/chance.h"
#include "sampler/source/remote_unwind.h"
#include "sampler/source/sample_walk.h"
#include "sampler/source/signal_choice.h"
#include "sampler/source/sources.h"

#include <errno.h>
#include <sys/resource.h>

enum {
    TIMERS_MAX = 1024,
    TIMERS_WITH_ROOM = 256, /* timers with large rings; more threads share their processors, and each runs seldom */
    SAMPLES_A_PERIOD = 8,   /* samples before the period is changed, which costs some 10 µs */
    PERIODS_A_SECOND = 25,  /* changes of the period in a second */
    CUT_STACKS_MAX = 4,     /* stacks larger than the largest copy until the thread is sent signals instead */
    FIRST_COPY = 16 << 10,  /* bytes of a stack that the first copies hold */
    RING_WITH_ROOM = 128 << 10,
    STACKS_TO_KNOW = 128,    /* stacks from which the size of the copies is decided */
    STACKS_TO_FORGET = 1024, /* stacks after which a cut one does not count: it was a rare handler, no recursion */
};

/* Clocks of a thread when the period of a timer that sees all code was last set. */
struct period_setting {
    uint64_t cpu_ns, wait_ns; /* CPU time, and waits for a processor, ns */
};

/* Samples of a timer that were fetched and not taken yet. */
struct untaken_samples {
    struct perf_timer_news news;
    uint32_t next;
    uint64_t cpu_ns; /* the thread's CPU clock up to which they stand, ns */
};

static struct untaken_samples untaken; /* samples of the thread that was observed last */

struct perf_state {
    struct perf_timer timer;
    struct period_setting period_set_at;
    uint32_t stacks_seen;      /* complete stacks in copies */
    uint64_t largest_stack;    /* largest of the last of these, bytes */
    uint32_t cut_stacks;       /* stacks that no larger copy would have made complete */
    uint32_t samples;          /* samples of the present timer */
    bool ran_with_other_timer; /* true if it ran when the timer replaced one with another size of copies */
};

/* Returns true if its thread runs, or waits for a processor, by the last record of TIMER. */
static bool is_running(const struct perf_timer *timer)
{
    return timer->control && timer->has_seen_switch && (!timer->newest.is_stop || timer->newest.was_preempted);
}

/* Tells the other sources what they see of the timer. */
static void share(struct source_thread *thread, const struct perf_state *own)
{
    const struct perf_timer *timer = &own->timer;
    thread->timer.open = timer->control ? timer : NULL;
    thread->timer.is_running = timer->sight == PERF_TIMER_SEES_ALL && is_running(timer);
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* Returns how many samples THREAD takes in a period. A thread that mostly waits for a processor has few samples for the
 * wall time that they stand for, so it takes as many more as its waits were longer than its CPU time since the last
 * call. */
static uint64_t samples_a_period(const struct source_tick *tick, const struct source_thread *thread,
                                 struct perf_state *own)
{
    enum { SAMPLES_MAX = 4, PERIOD_NS_MIN = 2000000 };
    uint64_t cpu_ns = thread->account.cpu_ns - own->period_set_at.cpu_ns;
    uint64_t wait_ns = thread->account.delay_ns - own->period_set_at.wait_ns;
    own->period_set_at = (struct period_setting){thread->account.cpu_ns, thread->account.delay_ns};
    uint64_t wanted = cpu_ns > 0 ? (wait_ns + cpu_ns / 2) / cpu_ns : 1;
    uint64_t most = least(SAMPLES_MAX, tick->period_ns / PERIOD_NS_MIN);
    return least(wanted, most) > 1 ? least(wanted, most) : 1;
}

static uint64_t chance_period_ns(struct source_tick *tick, const struct source_thread *thread, struct perf_state *own)
{
    uint64_t period_ns = tick->period_ns * tick->limits->factor / samples_a_period(tick, thread, own);
    return chance_timer_ns(tick->random_state, period_ns);
}

/* Returns the size of a ring, in memory that the kernel locks: mostly 132 KB for a thread, and 36 KB for each of many.
 */
static uint32_t ring_size(const struct source_thread *thread, bool has_room)
{
    return has_room ? (uint32_t)greatest(RING_WITH_ROOM, 4 * thread->timer.stack_size)
                    : (uint32_t)greatest(32 << 10, 2 * thread->timer.stack_size);
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

static int open_with_ring(struct source_thread *thread, struct perf_state *own, bool has_room)
{
    return perf_timer_open(&own->timer, thread->files->tid, PERF_TIMER_SEES_USER_CODE, thread->credit.period_ns,
                           thread->timer.stack_size, ring_size(thread, has_room));
}

/* Opens a timer that an ordinary user may have. Its periods are counted, so it keeps its period, which is drawn at
 * random: a program could be in step with a fixed one. */
static int open_for_user_code(struct source_tick *tick, struct source_thread *thread, struct perf_state *own)
{
    uint64_t period_ns = chance_kept_timer_ns(tick->random_state, tick->period_ns);
    bool has_room = tick->counters[RECORDING_TIMERS] < user_timers_with_room();
    sample_credit_begin(&thread->credit, thread->account.cpu_ns, period_ns);
    int result = open_with_ring(thread, own, has_room);
    if (result == EPERM && has_room) result = open_with_ring(thread, own, false);
    return result;
}

static int open_for_all(struct source_tick *tick, struct source_thread *thread, struct perf_state *own)
{
    uint64_t period_ns = process_has_own_descriptors() ? 0 : chance_period_ns(tick, thread, own);
    bool has_room = tick->counters[RECORDING_TIMERS] < TIMERS_WITH_ROOM;
    int result = perf_timer_open(&own->timer, thread->files->tid, PERF_TIMER_SEES_ALL, period_ns,
                                 thread->timer.stack_size, ring_size(thread, has_room));
    bool is_denied = (result == EPERM || result == EACCES) && process_has_own_descriptors();
    tick->counters[RECORDING_TIMERS_SEE_USER_CODE] = is_denied;
    return result;
}

static int open_timer(struct source_tick *tick, struct source_thread *thread, struct perf_state *own)
{
    const uint64_t *sees_user_code = &tick->counters[RECORDING_TIMERS_SEE_USER_CODE];
    int result = EPERM;
    if (!filter_allows(FILTER_PERF)) return EPERM;
    if (!*sees_user_code) result = open_for_all(tick, thread, own);
    if (*sees_user_code) result = open_for_user_code(tick, thread, own);
    if (result == 0 && !own->timer.is_free) perf_timer_ask(&own->timer);
    return result;
}

/* Returns true if THREAD gets a timer in the open tick, if the kernel grants one. Opening it takes 50 to 100 µs, and
 * one for user code takes its first stack after an entire period: a signal sees a thread that lives for less. */
static bool may_open(const struct source_tick *tick, const struct source_thread *thread)
{
    uint64_t count = tick->counters[RECORDING_TIMERS], full_at = tick->limits->full_at;
    bool is_young = thread->account.is_first_scan || tick->start_ns < tick->begin_ns + tick->period_ns;
    bool is_denied = thread->timer.stack_size > PERF_TIMER_STACK_MAX || tick->counters[RECORDING_TIMER_ERRNO];
    bool is_full = count >= TIMERS_MAX || (full_at && count >= full_at);
    return !thread->timer.open && !is_young && !is_denied && !is_full && timer_may_open(tick);
}

/* Opens a timer for THREAD, unless it has one or may have none. */
static enum source_offer want(struct source_tick *tick, struct source_thread *thread, void *state,
                              enum source_need need)
{
    struct perf_state *own = state;
    uint64_t count = tick->counters[RECORDING_TIMERS];
    (void)need;
    if (may_open(tick, thread)) {
        if (thread->timer.stack_size == 0) thread->timer.stack_size = FIRST_COPY;
        tick->spent->timers++;
        int result = open_timer(tick, thread, own);
        if (result == 0)
            tick->counters[RECORDING_TIMERS]++;
        else if (result == EPERM && count > 0)
            tick->limits->full_at = count; /* no memory can be locked until one of them is closed */
        else if (result != ESRCH)
            tick->counters[RECORDING_TIMER_ERRNO] = (uint64_t)result;
        share(thread, own);
    }
    if (thread->timer.open) return SOURCE_WILL_HAVE;
    return timer_is_denied(tick, thread) ? SOURCE_DENIED : SOURCE_NO;
}

static void close_timer(struct source_tick *tick, struct source_thread *thread, struct perf_state *own)
{
    if (!own->timer.control) return;
    perf_timer_close(&own->timer);
    own->samples = 0;
    own->ran_with_other_timer = false;
    tick->counters[RECORDING_TIMERS]--;
    share(thread, own);
}

/* Closes the timer. If the sampler thread ends, one goes on that is not controlled through a descriptor. */
static void forget(struct source_tick *tick, struct source_thread *thread, void *state, enum source_end end)
{
    struct perf_state *own = state;
    if (end != SOURCE_END_ASIDE || own->timer.descriptor >= 0) close_timer(tick, thread, own);
}

/* --- What it will see --------------------------------------------------------------------------------------------- */

/* Says whether CPU time needs no signal, because the timer reports it, sooner or later. Calls that the timer does not
 * see are for the thread's CPU clock, which has been opened, or will be if there are such timers. */
static enum source_offer offer(struct source_tick *tick, struct source_thread *thread, void *state)
{
    (void)state;
    bool is_blind = timer_sees_user_code(thread);
    bool has_clock = thread->clock && (thread->account.has_run || !thread->account.is_first_scan);
    if (!thread->timer.open) return timer_is_denied(tick, thread) ? SOURCE_DENIED : SOURCE_NO;
    if (is_blind && !timer_wants_reply(tick, thread)) return SOURCE_WILL_HAVE;
    if (has_clock || (is_blind && tick->limits->kernel_tick_ns == 0)) return SOURCE_NO;
    bool is_soon = source_unwritten_ns(thread, thread->clock_ns) < SOURCE_PERIODS_TO_WAIT * tick->period_ns;
    return is_soon ? SOURCE_WILL_HAVE : SOURCE_NO;
}

/* Returns true if THREAD has only run and waited for a processor since the previous reading of its timer. */
static bool has_run_on(const struct perf_state *own)
{
    if (own->timer.control && !own->timer.has_seen_switch) return own->ran_with_other_timer;
    return is_running(&own->timer) && own->timer.sleeps == 0;
}

/* Returns the periods whose samples its memory holds: a sample takes at least 3/5 of one (chance_timer_ns). */
static uint64_t room(struct source_tick *tick, struct source_thread *thread, void *state)
{
    const struct perf_state *own = state;
    (void)tick, (void)thread;
    return own->timer.control && has_run_on(own) ? (uint64_t)perf_timer_room(&own->timer) * 3 / 5 : 0;
}

/* --- Its samples -------------------------------------------------------------------------------------------------- */

static void count_samples(struct source_tick *tick, struct source_thread *thread, struct perf_state *own,
                          uint32_t count)
{
    thread->credit.user += count;
    if (sample_credit_is_due(&thread->credit))
        sample_credit_lend(&thread->credit, count, timer_kernel_periods(tick, thread));
    uint32_t before = own->samples;
    own->samples += count;
    uint32_t between = tick->ticks_a_second / PERIODS_A_SECOND;
    if (between < SAMPLES_A_PERIOD) between = SAMPLES_A_PERIOD;
    bool has_new_period = before == 0 || before / between != own->samples / between;
    if (!has_new_period || timer_sees_user_code(thread)) return;
    if (filter_allows(FILTER_PERF)) perf_timer_run_freely(&own->timer, chance_period_ns(tick, thread, own));
    if (!own->timer.is_free) close_timer(tick, thread, own);
}

static void observe(struct source_tick *tick, struct source_thread *thread, void *state)
{
    struct perf_state *own = state;
    untaken = (struct untaken_samples){0};
    if (!own->timer.control) return;
    if (own->timer.stack_size != thread->timer.stack_size) {
        bool ran_on = has_run_on(own);
        close_timer(tick, thread, own); /* it is opened again with the other size if the thread runs on */
        own->ran_with_other_timer = ran_on;
        return;
    }
    uint32_t count = perf_timer_read(&own->timer, &untaken.news);
    thread->credit.switches.sleeps += own->timer.sleeps;
    if (count > 0) count_samples(tick, thread, own, count);
    if (!own->timer.control) untaken.news.kept_count = 0;
    share(thread, own);
}

/* Shortens the timer's period, because a sample said nothing about THREAD's CPU time, unless it would be under 1 ms. */
static void sample_soon(struct source_tick *tick, struct perf_state *own)
{
    enum { PARTS = 8, PERIOD_NS_MIN = 1000000 };
    uint64_t period_ns = tick->period_ns * tick->limits->factor / PARTS;
    if (!filter_allows(FILTER_PERF) || period_ns < PERIOD_NS_MIN) return;
    perf_timer_run_freely(&own->timer, chance_timer_ns(tick->random_state, period_ns));
}

/* Has the next copies of THREAD's stack be larger: they are more exact than memory that the thread has changed since.
 */
static void enlarge_copy(struct shared_timer *timer, const struct sample_walk *walk)
{
    uint64_t needed = walk->end - walk->copy.start;
    if (needed <= walk->copy.size || needed > PERF_TIMER_STACK_MAX) needed = walk->copy.size + 1;
    while (timer->stack_size < needed && timer->stack_size < PERF_TIMER_STACK_MAX) timer->stack_size *= 2;
    if (timer->stack_size > PERF_TIMER_STACK_MAX) timer->stack_size = PERF_TIMER_STACK_MAX;
    timer->has_large_stack = true;
}

/* Has the next copies be smaller if THREAD's stacks are: copying costs, and the ring holds more small copies, so that
 * ticks can be spared. Copies have room for stacks twice as large as the largest that was seen. A thread whose copy was
 * once too small keeps the larger one. */
static void note_stack_size(struct shared_timer *timer, struct perf_state *own, uint64_t bytes)
{
    if (bytes > own->largest_stack) own->largest_stack = bytes;
    if (++own->stacks_seen % STACKS_TO_KNOW != 0) return;
    uint32_t size_min = timer->has_large_stack ? timer->stack_size : PERF_TIMER_STACK_MIN;
    while (timer->stack_size > size_min && timer->stack_size / 4 >= own->largest_stack) timer->stack_size /= 2;
    own->largest_stack = 0;
    if (own->stacks_seen % STACKS_TO_FORGET == 0 && own->cut_stacks > 0) own->cut_stacks--;
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

/* Notes how well the copy fitted that WALK went through. Functions outside of any copy had returned before they were
 * read. The handler of a signal, if the thread takes one, sees the entire stack. */
static void note_walk(struct source_thread *thread, struct perf_state *own, const struct sample_walk *walk)
{
    if (!walk->has_table) return;
    if (walk->outside == 0) {
        note_stack_size(&thread->timer, own, walk->end - walk->copy.start);
        return;
    }
    bool fits_no_copy = walk->outside - walk->copy.start >= PERF_TIMER_STACK_MAX; /* true also for another stack */
    if (fits_no_copy) {
        bool is_whole = walk->found.flags == (UNWIND_ROOT | RECORDING_WITHOUT_SIGNAL);
        bool is_cut = !is_whole && ++own->cut_stacks >= CUT_STACKS_MAX;
        if (is_cut && signal_choose(thread->files).number != 0) thread->timer.stack_size = PERF_TIMER_STACK_MAX + 1;
    } else if (walk->copy.size < own->timer.stack_size) {
        map_untouched_pages(&walk->copy);
    } else {
        enlarge_copy(&thread->timer, walk);
    }
}

/* Returns true if the oldest sample is the one that was requested when the timer was opened. */
static bool was_asked(const struct source_thread *thread, const struct perf_state *own)
{
    bool is_first = own->samples == untaken.news.count;
    return is_first && own->timer.descriptor >= 0 && !timer_sees_user_code(thread);
}

/* Gives each sample an equal share of the unwritten CPU time. A sample on request is taken when THREAD has run for
 * 10 µs: if it was woken and waited for a processor before that, the sample is in the call in which it slept, and where
 * it spent no CPU time. */
static enum source_offer take(struct source_tick *tick, struct source_thread *thread, void *state,
                              struct source_stack *ret)
{
    struct perf_state *own = state;
    struct perf_timer_sample sample;
    struct sample_walk walk;
    uint32_t i = untaken.next++, count = untaken.news.kept_count;
    *ret = (struct source_stack){0};
    if (i >= count) return SOURCE_NO;
    if (i == 0)
        untaken.cpu_ns = timer_sees_user_code(thread) ? timer_accounted_cpu_ns(tick, thread, thread->account.cpu_ns)
                                                      : thread->account.cpu_ns;
    uint64_t part_ns = source_unwritten_ns(thread, untaken.cpu_ns) / (count - i);
    if (!perf_timer_sample(&own->timer, &untaken.news, i, &sample) || !sample_walk(tick, thread, &sample, &walk))
        return SOURCE_HAS;
    note_walk(thread, own, &walk);
    bool is_asleep = i == 0 && was_asked(thread, own) && threads_sleep_at(sample.registers.values[MACHINE_IP]);
    if (is_asleep) sample_soon(tick, own);
    *ret = (struct source_stack){.kind = is_asleep ? SOURCE_STACK_SLEPT : SOURCE_STACK_RUNNING,
                                 .found = walk.found,
                                 .cpu_ns = thread->account.written_cpu_ns + part_ns};
    return SOURCE_HAS;
}

const struct source perf_source = {
    .sight = SOURCE_SEES_RUNNING,
    .state_bytes = sizeof(struct perf_state),
    .offer = offer,
    .observe = observe,
    .take = take,
    .want = want,
    .room = room,
    .forget = forget,
};
