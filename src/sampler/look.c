/* What is done with each thread at a tick.
 *
 * Wall clock. A thread whose CPU clock stands still is where it was at the tick before: nothing is done and nothing is
 * written. One that ran and is blocked now is unwound from outside (blocked.c). One that is running and has a timer of
 * its own (timer.c) is left its stack by that; another one is sent a signal and unwinds itself (signal_handler.c).
 * Either is fetched at the next tick. A thread that waits for a processor answers when it gets one, from the place
 * where it was stopped: its answer counts for all the ticks that it waited.
 *
 * A signal takes some 10 µs to arrive. A thread that only woke up for a moment is blocked again by then, or about to
 * be, and its wait would end with EINTR. So a thread that sleeps for the most part and is met awake is looked at again
 * a little later: it is blocked and can be read, or has run on all the while and is signalled. Bursts of less than
 * LASTING_NS are thereby told as the wait that follows them, which is what the signal would have told of most of them.
 *
 * CPU time. Timers tell of their threads; of the others, only those that are running are asked, and what they say is
 * weighted with the CPU time that they spent since they last said something: threads are met at a tick as often as they
 * run. SPDX-License-Identifier: MIT */
#include "base/kernel.h"
#include "sampler/beside.h"
#include "sampler/blocked.h"
#include "sampler/sampler_private.h"
#include "sampler/signal_choice.h"
#include "sampler/slots.h"

enum {
    WAITS_FOR_TABLES_MAX = 2, /* ticks for which one stack may stand because modules were met for the first time */
    UNANSWERED_TICKS_MAX = 2, /* of a thread that runs meanwhile: it has blocked the signal since we looked */
    AHEAD = 8,                /* how many threads ahead memory is asked for */
    SELDOM_AWAKE = 16,        /* runs for less than this part of the time, at one of two ticks or both */
    LASTING_NS = 50000,
    SECOND_LOOKS_MAX = 3,
    MET_AWAKE_MAX = 256,
    SECOND_LOOK_AFTER_NS = 60000, /* the next ones after twice as long each */
    EXACT_REQUESTS_MAX = 4,       /* in a tick: each takes some 100 µs */
};

/* --- What is written ---------------------------------------------------------------------------------------------- */

static bool is_cpu_mode(const struct sampler *sampler)
{
    return sampler->options.mode == RECORDING_CPU;
}

static void write_lost(struct sampler *sampler, const struct watched_thread *thread, uint32_t ticks,
                       enum recording_loss cause)
{
    recording_begin(sampler->writer, RECORDING_LOST, 32);
    recording_number(sampler->writer, thread->number);
    recording_number(sampler->writer, ticks);
    recording_number(sampler->writer, cause);
}

static void write_waiting(struct sampler *sampler, struct watched_thread *thread)
{
    thread->waiting_ticks++;
    if (is_cpu_mode(sampler)) return; /* its time is told by its clock */
    recording_begin(sampler->writer, RECORDING_WAITING, 16);
    recording_number(sampler->writer, thread->number);
}

static void note_stack(struct sampler *sampler, struct watched_thread *thread, uint32_t flags, uint64_t cpu_ns)
{
    thread->last_flags = flags;
    thread->cpu_ns_at_stack = cpu_ns;
    thread->waiting_ticks = thread->ticks_without_table = 0;
    thread->ran_while_waiting = false;
    thread->has_stack = thread->ran = sampler->has_news = true;
}

static void write_wall_sample(struct sampler *sampler, struct watched_thread *thread, uint32_t flags,
                              const uint64_t *addresses, size_t count, uint64_t cpu_ns)
{
    uint32_t ticks = thread->waiting_ticks + 1;
    if (thread->ran_while_waiting && thread->waiting_ticks > 0) {
        write_lost(sampler, thread, thread->waiting_ticks, RECORDING_LOST_LATE);
        ticks = 1;
    }
    recording_sample(sampler->writer, RECORDING_SAMPLE, thread->number, ticks, flags, addresses, count, thread->last);
    note_stack(sampler, thread, flags, cpu_ns);
}

static void write_cpu_sample(struct sampler *sampler, struct watched_thread *thread, uint32_t flags,
                             const uint64_t *addresses, size_t count, uint64_t cpu_ns)
{
    if (cpu_ns <= thread->cpu_ns_recorded) return;
    recording_sample(sampler->writer, RECORDING_CPU_SAMPLE, thread->number, cpu_ns - thread->cpu_ns_recorded, flags,
                     addresses, count, thread->last);
    thread->cpu_ns_recorded = cpu_ns;
    note_stack(sampler, thread, flags, cpu_ns);
}

static void write_sample(struct sampler *sampler, struct watched_thread *thread, uint32_t flags,
                         const uint64_t *addresses, size_t count, uint64_t cpu_ns)
{
    void (*write)(struct sampler *, struct watched_thread *, uint32_t, const uint64_t *, size_t, uint64_t) =
        is_cpu_mode(sampler) ? write_cpu_sample : write_wall_sample;
    write(sampler, thread, flags, addresses, count, cpu_ns);
}

static void write_again(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    write_cpu_sample(sampler, thread, UNWIND_ROOT, thread->last->addresses, thread->last->count, cpu_ns);
}

/* --- Asking a thread that is running ------------------------------------------------------------------------------ */

/* A walk met a module for the first time, at its last address. */
static enum modules_answer build_table_for(struct sampler *sampler, const uint64_t *addresses, size_t count)
{
    return modules_build(&sampler->modules, addresses[count - 1] - (count > 1), sampler->for_tables, sampler->writer);
}

/* THREAD ran through code whose call frame information is not copied yet. The next stack must not stand for that time.
 */
static void lose_without_table(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    if (!is_cpu_mode(sampler)) {
        write_lost(sampler, thread, thread->waiting_ticks + 1, RECORDING_LOST_NO_TABLE);
    } else if (cpu_ns > thread->cpu_ns_recorded + sampler->period_ns) {
        uint64_t periods = (cpu_ns - thread->cpu_ns_recorded) / sampler->period_ns;
        write_lost(sampler, thread, (uint32_t)periods, RECORDING_LOST_NO_TABLE);
        thread->cpu_ns_recorded += periods * sampler->period_ns;
    }
    thread->waiting_ticks = 0;
    thread->ran_while_waiting = thread->has_stack = false;
}

/* A running thread gets one module further a tick. A stack that goes through many must not take as many ticks, so each
 * further one brings twice as many tables. */
static void build_ahead(struct sampler *sampler, const struct watched_thread *thread)
{
    enum { TICKS_ALONE = 2, DOUBLINGS_MAX = 12 };
    if (thread->ticks_without_table <= TICKS_ALONE) return;
    uint32_t doublings = thread->ticks_without_table - TICKS_ALONE;
    modules_build_more(&sampler->modules, (size_t)1 << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX),
                       sampler->for_tables);
}

/* CPU mode: the stack that follows stands for all of THREAD's time inside the kernel that is not told yet. */
static uint64_t account_for_kernel(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    thread->timer_account.kernel_periods += timer_kernel_periods(sampler, thread);
    return timer_accounted_cpu_ns(sampler, thread, cpu_ns);
}

/* THREAD has a timer that sees user code only, and answered for time inside the kernel. An answer from outside of a
 * call is a page fault or an interrupt, or the thread had left the call already. False if the answer is not to be told.
 */
static bool is_answer_for_kernel(struct sampler *sampler, struct watched_thread *thread, const struct slot *slot)
{
    if (!timer_sees_user_code(thread)) return true;
    bool was_in_call = blocked_was_in_call(&slot->registers);
    if (is_cpu_mode(sampler)) return timer_accepts_answer(sampler, thread, was_in_call);
    if (!was_in_call) timer_owe_kernel_tick(thread);
    return true;
}

static void take_answer(struct sampler *sampler, struct watched_thread *thread, const struct slot *slot)
{
    uint32_t outcome = slot->outcome;
    sampler->counters[RECORDING_ANSWERS]++;
    if (outcome == UNWIND_PENDING) {
        enum modules_answer answer = build_table_for(sampler, slot->addresses, slot->address_count);
        bool may_wait = answer == MODULES_READY && thread->waiting_ticks < WAITS_FOR_TABLES_MAX;
        if (may_wait) {
            thread->has_stack = false; /* the next answer counts for this tick, too */
            write_waiting(sampler, thread);
        } else if (answer != MODULES_NOTHING) {
            lose_without_table(sampler, thread, thread->cpu_ns_at_request);
        }
        thread->ticks_without_table++;
        build_ahead(sampler, thread);
        if (answer != MODULES_NOTHING) return;
        outcome = UNWIND_NO_TABLE;
    }
    /* It ran when it was looked at and slept when it was asked: where it sleeps is not where its time went. */
    if (is_cpu_mode(sampler) && blocked_was_asleep(&slot->registers)) return;
    uint64_t cpu_ns = thread->cpu_ns_at_request;
    if (!is_answer_for_kernel(sampler, thread, slot)) return;
    if (is_cpu_mode(sampler) && timer_sees_user_code(thread)) cpu_ns = account_for_kernel(sampler, thread, cpu_ns);
    write_sample(sampler, thread, outcome, slot->addresses, slot->address_count, cpu_ns);
}

static bool write_timer_stack(struct sampler *sampler, struct watched_thread *thread,
                              const struct perf_timer_sample *sample, uint64_t cpu_ns)
{
    static uint64_t addresses[RECORDING_FRAMES_MAX]; /* the sampler thread's alone */
    size_t count = 0;
    enum unwind_outcome outcome = UNWIND_PENDING;
    for (unsigned i = 0; outcome == UNWIND_PENDING && i < MODULES_MAX; i++) {
        if (!timer_walk(sampler, thread, sample, addresses, &count, &outcome)) return false;
        if (outcome != UNWIND_PENDING) break;
        enum modules_answer answer = build_table_for(sampler, addresses, count);
        if (answer == MODULES_NOTHING) outcome = UNWIND_NO_TABLE;
        if (answer != MODULES_LATER) continue;
        lose_without_table(sampler, thread, cpu_ns);
        return true;
    }
    sampler->counters[RECORDING_TIMER_STACKS]++;
    write_sample(sampler, thread, outcome | RECORDING_WITHOUT_SIGNAL, addresses, count, cpu_ns);
    return true;
}

/* The stack that THREAD's own timer took last, if there is one. */
static bool take_timer_stack(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    struct perf_timer_sample sample;
    if (!timer_fetch(sampler, thread, &sample)) return false;
    if (is_cpu_mode(sampler) && timer_sees_user_code(thread)) cpu_ns = timer_accounted_cpu_ns(sampler, thread, cpu_ns);
    return write_timer_stack(sampler, thread, &sample, cpu_ns);
}

static void fetch_timer_stack(struct sampler *sampler, struct watched_thread *thread)
{
    thread->awaits_timer = false;
    if (!take_timer_stack(sampler, thread, thread->cpu_ns_at_request)) write_waiting(sampler, thread);
}

void look_fetch_answers(struct sampler *sampler)
{
    if (!slots_in_use() && sampler->timers_asked == 0) return;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct watched_thread *thread = sampler->threads.items[i].thread;
        if (thread->awaits_timer) fetch_timer_stack(sampler, thread);
        if (!thread->slot) continue;
        if (slot_phase_of(thread->slot) != SLOT_DONE) {
            write_waiting(sampler, thread);
            continue;
        }
        take_answer(sampler, thread, thread->slot);
        slot_give_back(thread->slot);
        thread->slot = NULL;
    }
}

/* Wall clock: for a tick in user code, or in which the thread waited for a processor. */
static bool take_last_user_stack(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    struct perf_timer_sample sample;
    if (is_cpu_mode(sampler) || thread->timer_account.is_in_kernel) return false;
    return timer_fetch(sampler, thread, &sample) && write_timer_stack(sampler, thread, &sample, cpu_ns);
}

/* CPU mode. */
static void lose_cpu_time(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns,
                          enum recording_loss cause)
{
    if (cpu_ns < thread->cpu_ns_recorded + sampler->period_ns) return;
    uint64_t periods = (cpu_ns - thread->cpu_ns_recorded) / sampler->period_ns;
    write_lost(sampler, thread, (uint32_t)periods, cause);
    thread->cpu_ns_recorded += periods * sampler->period_ns;
}

/* THREAD can be sent no signal, so that only a timer can see it. A thread that blocks signals only for a moment, as a
 * starting one does, is given time: its next stack stands for what it spent meanwhile. */
static void do_without_signal(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    enum { PERIODS_TO_WAIT = 4 };
    timer_note_busy(sampler, thread);
    bool is_in_kernel = timer_sees_user_code(thread);
    enum recording_loss cause = is_in_kernel ? RECORDING_LOST_IN_KERNEL : RECORDING_LOST_UNANSWERED;
    if (take_last_user_stack(sampler, thread, cpu_ns)) return;
    if (!is_cpu_mode(sampler))
        write_lost(sampler, thread, 1, cause);
    else if (is_in_kernel)
        lose_cpu_time(sampler, thread, account_for_kernel(sampler, thread, cpu_ns), cause);
    else if (cpu_ns >= thread->cpu_ns_recorded + PERIODS_TO_WAIT * sampler->period_ns)
        lose_cpu_time(sampler, thread, cpu_ns, cause);
}

static void put_off(struct sampler *sampler, struct watched_thread *thread)
{
    if (thread->waiting_ticks > 0) thread->ran_while_waiting = true;
    write_waiting(sampler, thread);
}

/* CPU mode: nothing is lost, because the next stack stands for the time meanwhile. */
static void take_back_request(struct sampler *sampler, struct watched_thread *thread)
{
    slot_give_back(thread->slot);
    thread->slot = NULL;
    if (!is_cpu_mode(sampler)) write_lost(sampler, thread, thread->waiting_ticks, RECORDING_LOST_UNANSWERED);
    thread->waiting_ticks = 0;
    thread->ran_while_waiting = false;
}

/* The handler runs before anything else that a thread does when it gets a processor: one that has run and has not
 * answered blocks the signal. CPU_NS was read before the slot is looked at. */
static void watch_waiting(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    if (slot_phase_of(thread->slot) != SLOT_REQUESTED) return;
    if (cpu_ns > thread->cpu_ns_at_request + sampler->period_ns / 4) thread->ran_while_waiting = true;
    if (thread->ran_while_waiting && thread->waiting_ticks > UNANSWERED_TICKS_MAX) take_back_request(sampler, thread);
}

static bool needs_exact_answer(const struct sampler *sampler, const struct watched_thread *thread)
{
    return is_cpu_mode(sampler) && timer_sees_user_code(thread);
}

/* A request that no signal may carry is counted as lost. A thread that went to sleep since it was met running is not
 * woken up: the next look reads where it sleeps. Where the kernel does not say that, it is woken up unless it is in
 * sigwait. */
static void send_request(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    struct signal_choice choice = signal_choose(thread);
    if (choice.number == 0) {
        do_without_signal(sampler, thread, cpu_ns);
        return;
    }
    bool may_be_asked = !choice.is_asleep || (thread->is_place_refused && !blocked_awaits_signals(thread, cpu_ns));
    struct slot *slot = may_be_asked ? slot_take(thread->tid, sampler->modules.current, choice.reading) : NULL;
    if (!slot) {
        put_off(sampler, thread);
        return;
    }
    sampler->counters[RECORDING_SIGNALS]++;
    thread->slot = slot;
    thread->cpu_ns_at_request = cpu_ns;
    if (!slot_send(slot, choice.number)) {
        thread->slot = NULL;
        slot_give_back(slot);
        if (!is_cpu_mode(sampler)) write_lost(sampler, thread, 1, RECORDING_LOST_UNANSWERED);
    }
}

static void request(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    bool is_exact = needs_exact_answer(sampler, thread);
    uint32_t requests_max = is_exact ? EXACT_REQUESTS_MAX : sampler->requests_in_tick_max;
    if (sampler->requests_in_tick >= requests_max || cpu_ns < thread->no_signal_until_cpu_ns) {
        put_off(sampler, thread);
        return;
    }
    sampler->requests_in_tick++;
    if (!is_exact) {
        send_request(sampler, thread, cpu_ns);
        return;
    }
    struct beside beside;
    if (beside_stop(&beside, thread))
        send_request(sampler, thread, cpu_ns);
    else
        put_off(sampler, thread);
    beside_leave(&beside);
}

/* --- A thread that has run since the tick before ------------------------------------------------------------------ */

/* BLOCKED_WALKED if the stack was read and written. */
static enum blocked_result read_blocked(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    static uint64_t addresses[RECORDING_FRAMES_MAX]; /* the sampler thread's alone */
    size_t count = 0;
    enum unwind_outcome outcome = UNWIND_ROOT;
    enum blocked_result result = BLOCKED_PENDING;
    for (unsigned i = 0; result == BLOCKED_PENDING && i < MODULES_MAX; i++) {
        result = blocked_walk(thread, cpu_ns, sampler->modules.current, addresses, &count, &outcome);
        if (result != BLOCKED_PENDING) break;
        enum modules_answer answer = build_table_for(sampler, addresses, count);
        if (answer == MODULES_NOTHING) {
            result = BLOCKED_INCOMPLETE;
            outcome = UNWIND_NO_TABLE;
        }
        if (answer != MODULES_LATER) continue;
        lose_without_table(sampler, thread, cpu_ns);
        return BLOCKED_WALKED;
    }
    thread->is_place_refused = result == BLOCKED_REFUSED;
    if (result == BLOCKED_INCOMPLETE || result == BLOCKED_REFUSED) sampler->counters[RECORDING_BLOCKED_REFUSED]++;
    if (result != BLOCKED_WALKED && result != BLOCKED_INCOMPLETE) return result;
    sampler->counters[RECORDING_BLOCKED_READ]++;
    write_wall_sample(sampler, thread, outcome | RECORDING_WITHOUT_SIGNAL, addresses, count, cpu_ns);
    return BLOCKED_WALKED;
}

/* In CPU mode there is nothing to be told of a thread that does not run. */
static enum blocked_result read_unless_running(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    if (!is_cpu_mode(sampler)) return read_blocked(sampler, thread, cpu_ns);
    if (needs_exact_answer(sampler, thread)) return BLOCKED_RUNNING; /* it is looked at when the sampler is beside it */
    return blocked_is_running(thread) ? BLOCKED_RUNNING : BLOCKED_WALKED;
}

/* False if THREAD has no timer that would answer. */
static bool ask_timer(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    if (!timer_ask(sampler, thread)) return false;
    thread->awaits_timer = true;
    thread->cpu_ns_at_request = cpu_ns;
    sampler->timers_asked++;
    return true;
}

/* Threads that sleep for the most part and were met awake in the open tick. The sampler thread's alone. */
static struct watched_thread *met_awake[MET_AWAKE_MAX];

/* False if it has to be looked at again: it is awake, and has not been for long. */
static bool settle(struct sampler *sampler, struct watched_thread *thread)
{
    uint64_t cpu_ns = 0;
    if (!thread_cpu_ns(thread->tid, &cpu_ns)) return true;
    enum blocked_result result = read_unless_running(sampler, thread, cpu_ns);
    if (result == BLOCKED_WALKED) return true;
    bool is_awake = result == BLOCKED_RUNNING || result == BLOCKED_PENDING;
    if (is_awake && cpu_ns < thread->cpu_ns_seen + LASTING_NS) return false;
    thread->cpu_ns_seen = cpu_ns;
    /* In a virtual machine it may only seem to have run on: time that the host took counts as the thread's. A timer can
     * do no harm then, as a signal would to the wait that it is about to begin. */
    if (result == BLOCKED_RUNNING) timer_note_busy(sampler, thread);
    if (result != BLOCKED_RUNNING || !ask_timer(sampler, thread, cpu_ns)) request(sampler, thread, cpu_ns);
    return true;
}

/* Those that wait for a processor all the while are put off: what they say next counts for this tick, too. */
static void look_again(struct sampler *sampler)
{
    struct timespec pause = {.tv_nsec = SECOND_LOOK_AFTER_NS};
    for (unsigned look = 0; look < SECOND_LOOKS_MAX && sampler->met_awake_count > 0; look++) {
        (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0,
                           0); /* and not a loop: it may be our processor that they wait for */
        pause.tv_nsec *= 2;
        size_t kept = 0;
        for (size_t i = 0; i < sampler->met_awake_count; i++) {
            if (!settle(sampler, met_awake[i])) met_awake[kept++] = met_awake[i];
        }
        sampler->met_awake_count = kept;
    }
    for (size_t i = 0; i < sampler->met_awake_count; i++) write_waiting(sampler, met_awake[i]);
}

/* CPU mode: a timer tells of all that its thread spends, sooner or later, or of what it spends in user code. */
static bool is_left_to_timer(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    enum { PERIODS_TO_WAIT = 3 };
    bool is_told = take_timer_stack(sampler, thread, cpu_ns);
    if (timer_sees_user_code(thread)) return timer_kernel_periods(sampler, thread) == 0;
    if (is_told) return true;
    return thread->timer.control && cpu_ns < thread->cpu_ns_recorded + PERIODS_TO_WAIT * sampler->period_ns;
}

/* Wall clock: false if THREAD, which runs, is inside the kernel, as far as a timer that sees user code only can tell.
 */
static bool is_seen_in_user_code(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns)
{
    struct perf_timer_sample sample;
    if (is_cpu_mode(sampler) || !timer_sees_user_code(thread)) return false;
    bool is_fresh = timer_fetch(sampler, thread, &sample);
    bool is_in_kernel = timer_tick_is_in_kernel(sampler, thread, is_fresh ? sample.new_count : 0);
    return is_fresh && !is_in_kernel && write_timer_stack(sampler, thread, &sample, cpu_ns);
}

/* Wall clock: thousands of threads that started at once must not take as long as many ticks. Their first stacks come at
 * the ticks that follow, and count for the ticks that they waited. */
static bool has_room_for_first_look(struct sampler *sampler, const struct watched_thread *thread)
{
    enum { FIRST_LOOKS_A_SECOND = 25600 };
    if (is_cpu_mode(sampler) || thread->has_stack) return true;
    return sampler->first_looks_in_tick++ < FIRST_LOOKS_A_SECOND / sampler->ticks_a_second + 1;
}

static void look_at_awake(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns, bool is_busy)
{
    /* What it spent before we came is not ours to tell; of one that began under our eyes, all is. */
    if (is_cpu_mode(sampler) && sampler->tick <= 1) thread->cpu_ns_recorded = cpu_ns;
    if (is_busy) timer_note_busy(sampler, thread);
    if (is_cpu_mode(sampler) && is_left_to_timer(sampler, thread, cpu_ns)) return;
    if (!has_room_for_first_look(sampler, thread)) {
        write_waiting(sampler, thread);
        return;
    }
    enum blocked_result result = read_unless_running(sampler, thread, cpu_ns);
    if (result == BLOCKED_WALKED) return;
    if (result == BLOCKED_RUNNING && is_seen_in_user_code(sampler, thread, cpu_ns)) return;
    if (result == BLOCKED_RUNNING && ask_timer(sampler, thread, cpu_ns)) return;
    bool has_time = sampler->period_ns / SELDOM_AWAKE >= LASTING_NS; /* up to 1 kHz */
    bool has_room = sampler->met_awake_count < MET_AWAKE_MAX;
    bool is_short = !is_busy && !needs_exact_answer(sampler, thread);
    if (result == BLOCKED_RUNNING && is_short && has_time && has_room)
        met_awake[sampler->met_awake_count++] = thread;
    else
        request(sampler, thread, cpu_ns);
}

/* False if the thread has ended. The cheapest proof that it is where it was comes first. */
static bool look_at(struct sampler *sampler, struct listed_thread *listed)
{
    if (sleep_goes_on(listed)) return true;
    struct watched_thread *thread = listed->thread;
    uint64_t cpu_ns = 0;
    uint32_t count = sleep_count(thread);
    thread->is_known = true;
    if (!thread_cpu_ns(thread->tid, &cpu_ns)) return false;
    bool needs_stack = !is_cpu_mode(sampler) && (!thread->has_stack || cpu_ns != thread->cpu_ns_at_stack);
    uint64_t ran_ns = cpu_ns - thread->cpu_ns_seen;
    thread->cpu_ns_seen = cpu_ns;
    /* Twice in a row: in a virtual machine, time that the host took counts as the thread's. */
    bool ran_long = ran_ns >= sampler->period_ns / SELDOM_AWAKE, is_busy = ran_long && thread->ran_long;
    thread->ran_long = ran_long;
    if (thread->slot) {
        watch_waiting(sampler, thread, cpu_ns);
    } else if (ran_ns > 0 || needs_stack) {
        sleep_note_awake(sampler, listed);
        look_at_awake(sampler, thread, cpu_ns, is_busy);
    } else {
        sleep_note_asleep(sampler, listed, count);
    }
    return true;
}

/* Of a thousand sleeping threads each costs a cache miss: asked for ahead, they overlap. */
static void prefetch(const struct listed_thread *listed)
{
    if (listed->page_asleep)
        __builtin_prefetch(listed->page_asleep);
    else
        __builtin_prefetch(listed->thread);
}

/* The threads that were put off for want of room come first in some later tick: it begins at another one each time. */
bool look_at_all(struct sampler *sampler)
{
    bool all_live = true;
    struct listed_thread *items = sampler->threads.items;
    size_t count = sampler->threads.count;
    sampler->requests_in_tick = sampler->pages_in_tick = sampler->timers_in_tick = sampler->timers_asked = 0;
    sampler->first_looks_in_tick = 0;
    sampler->met_awake_count = 0;
    for (size_t i = 0, at = count ? sampler->tick % count : 0; i < count; i++, at = at + 1 < count ? at + 1 : 0) {
        prefetch(&items[at + AHEAD < count ? at + AHEAD : at]);
        if (!look_at(sampler, &items[at])) all_live = false;
    }
    look_again(sampler);
    return all_live;
}

void look_at_new(struct sampler *sampler)
{
    sampler->met_awake_count = 0;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct listed_thread *listed = &sampler->threads.items[i];
        if (!listed->thread->is_known) (void)look_at(sampler, listed);
    }
    look_again(sampler);
}

/* --- A thread that has ended -------------------------------------------------------------------------------------- */

/* CPU time of the process that no thread accounts for: threads that ended spent it after they were last looked at. */
static uint64_t unseen_cpu_ns(struct sampler *sampler)
{
    uint64_t all_ns = 0, seen_ns = sampler->cpu_ns_of_ended, own_ns = 0;
    (void)kernel_clock_ns(CLOCK_PROCESS_CPUTIME_ID, &all_ns);
    for (size_t i = 0; i < sampler->threads.count; i++) {
        const struct watched_thread *thread = sampler->threads.items[i].thread;
        uint64_t cpu_ns = thread->cpu_ns_seen;
        if (thread->is_listed) (void)thread_cpu_ns(thread->tid, &cpu_ns);
        if (!thread->is_accounted) seen_ns += cpu_ns;
    }
    (void)thread_cpu_ns(sampler->threads.sampler_tid, &own_ns);
    return all_ns > seen_ns + own_ns ? all_ns - seen_ns - own_ns : 0;
}

/* What a thread spent after its last sample was most likely spent there. */
static void write_cpu_rest(struct sampler *sampler, struct watched_thread *thread)
{
    uint64_t unseen_ns = sampler->is_ending ? 0 : unseen_cpu_ns(sampler);
    uint64_t unseen_max_ns = 2 * sampler->period_ns;
    thread->cpu_ns_seen += unseen_ns < unseen_max_ns ? unseen_ns : unseen_max_ns;
    sampler->cpu_ns_of_ended += thread->cpu_ns_seen;
    thread->is_accounted = true;
    if (thread->last->count == 0) {
        lose_cpu_time(sampler, thread, thread->cpu_ns_seen, RECORDING_LOST_UNANSWERED);
        return;
    }
    write_again(sampler, thread, thread->cpu_ns_seen);
}

void look_thread_gone(struct sampler *sampler, struct watched_thread *thread)
{
    if (is_cpu_mode(sampler)) write_cpu_rest(sampler, thread);
    if (thread->slot) slot_give_back(thread->slot);
    if (thread->syscall_file >= 0) kernel_close(thread->syscall_file);
    if (thread->status_file >= 0) kernel_close(thread->status_file);
    sleep_forget(sampler, thread);
    timer_forget(sampler, thread);
}
