/* SPDX-License-Identifier: MIT */
#include "sampler/ledger.h"

#include "base/unsigned.h"
#include "sampler/kernel/process_info.h"

enum { WAKE_UP_NS_MIN = 100000 }; /* largest difference between the kernel's clocks, ns */

/* Rounds NS down to the recording's unit; the rest is written later. */
static uint64_t whole_units(uint64_t ns)
{
    return ns - ns % RECORDING_TIME_UNIT_NS;
}

uint64_t ledger_unwritten_cpu_ns(const struct target_thread *thread, uint64_t cpu_ns)
{
    return difference(cpu_ns, thread->ledger.cpu_written_ns);
}

uint64_t ledger_unwritten_wait_ns(const struct target_thread *thread)
{
    return difference(thread->ledger.delay_ns, thread->ledger.runnable_written_ns);
}

/* --- Pending time ------------------------------------------------------------------------------------------------- */

void ledger_open_existing(struct target_thread *thread, uint64_t cpu_ns)
{
    thread->ledger.was_there = true;
    thread->ledger.cpu_written_ns = thread->cpu_ns_seen = cpu_ns;
}

void ledger_open(struct target_thread *thread)
{
    thread->ledger.has_delay = !thread->ledger.was_there; /* false: the first reading is the start of the count */
    thread->ledger.is_new = !thread->ledger.was_there;
}

static void add_time(struct ledger *ledger, uint64_t ns)
{
    uint64_t had_ns = least(ns, ledger->prewritten_ns);
    ledger->prewritten_ns -= had_ns;
    ledger->pending_ns += ns - had_ns;
}

static void take_time_back(struct ledger *ledger, uint64_t ns)
{
    uint64_t taken_ns = least(ns, ledger->pending_ns);
    ledger->pending_ns -= taken_ns;
    ledger->prewritten_ns += ns - taken_ns;
}

/* Moves NS of the start credit to pending time. The start credit is the time between the tick that found the thread and
 * the previous one, in which it may have begun: it has existed at least for its CPU time and the waits that the kernel
 * counted. */
static void use_start_credit(struct ledger *ledger, uint64_t ns)
{
    uint64_t taken_ns = least(ns, ledger->start_credit_ns);
    ledger->start_credit_ns -= taken_ns;
    ledger->since_ns -= least(taken_ns, ledger->since_ns);
    ledger->pending_ns += taken_ns;
}

/* Writes the start routine of THREAD once: it names time without a stack, and threads with stacks can stand for others
 * of their routine. */
static void write_routine(struct sampler *sampler, struct target_thread *thread)
{
    if (thread->life.routine == 0 || thread->ledger.has_written_routine) return;
    thread->ledger.has_written_routine = true;
    recording_begin(sampler->writer, RECORDING_ROUTINE, 32);
    recording_number(sampler->writer, thread->number);
    recording_number(sampler->writer, thread->life.routine);
}

static void write_more(struct sampler *sampler, struct target_thread *thread, enum recording_share share,
                       struct recording_time time)
{
    write_routine(sampler, thread);
    recording_begin(sampler->writer, RECORDING_MORE, 64);
    recording_number(sampler->writer, thread->number);
    recording_number(sampler->writer, share);
    recording_time(sampler->writer, time);
}

/* Writes once, without a stack, how long THREAD waited for its first processor. */
static void write_start_wait(struct sampler *sampler, struct target_thread *thread)
{
    struct ledger *ledger = &thread->ledger;
    uint64_t wait_ns = whole_units(least(thread->life.start_wait_ns, ledger->pending_ns));
    if (ledger->has_written_start || wait_ns < WAKE_UP_NS_MIN) return;
    ledger->has_written_start = true;
    write_more(sampler, thread, RECORDING_OF_START, (struct recording_time){.runnable_ns = wait_ns});
    ledger->pending_ns -= wait_ns;
    ledger->runnable_written_ns += wait_ns;
}

void ledger_open_forked(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    struct recording_time time = {.cpu_ns = whole_units(cpu_ns)};
    if (!sampler_is_cpu_mode(sampler)) {
        uint64_t age_ns = whole_units(sampler->age_ns);
        time.cpu_ns = least(time.cpu_ns, age_ns);
        time.runnable_ns = age_ns - time.cpu_ns;
        thread->ledger.prewritten_ns += age_ns;
    }
    if (time.cpu_ns + time.runnable_ns > 0) write_more(sampler, thread, RECORDING_OF_START, time);
}

/* Begins LEDGER at CREATED_NS, which can be after the open tick: threads are listed a little later. */
static void correct_since(const struct sampler *sampler, struct ledger *ledger, uint64_t created_ns)
{
    if (created_ns < sampler->recording_start_ns) created_ns = sampler->recording_start_ns;
    if (created_ns < ledger->since_ns)
        add_time(ledger, ledger->since_ns - created_ns);
    else
        take_time_back(ledger, created_ns - ledger->since_ns);
    ledger->since_ns = created_ns;
    ledger->has_beginning = true;
}

void ledger_note_creation(struct sampler *sampler, struct target_thread *thread)
{
    struct ledger *ledger = &thread->ledger;
    uint64_t created_ns = thread->life.created_ns;
    if (sampler_is_cpu_mode(sampler)) return;
    if (ledger->was_there && created_ns > sampler->recording_start_ns) {
        /* It had not run yet when the first threads were listed, so its time was counted from the recording's start. */
        ledger->was_there = false;
        ledger->has_delay = true;
        ledger->since_ns = sampler->recording_start_ns;
    }
    if (ledger->since_ns == 0) return;
    if (!ledger->has_beginning) correct_since(sampler, ledger, created_ns);
    ledger->start_credit_ns = 0;
    write_start_wait(sampler, thread);
}

/* Writes the time for which the process was stopped, which would otherwise count for what THREAD did next. A thread
 * that is still blocked where it was before needs no record: its call continues. A thread that ran for most of the time
 * was not stopped: a debugger has stopped the sampler thread alone. */
static void write_stopped(struct sampler *sampler, struct target_thread *thread)
{
    struct ledger *ledger = &thread->ledger;
    uint64_t ran_ns = ledger_unwritten_cpu_ns(thread, thread->cpu_ns_seen);
    uint64_t stopped_ns = whole_units(least(sampler->stopped_ns, difference(ledger->pending_ns, ran_ns)));
    if (stopped_ns == 0 || ran_ns > sampler->stopped_ns / 2) return;
    write_more(sampler, thread, RECORDING_OF_STOPPED, (struct recording_time){.blocked_ns = stopped_ns});
    ledger->pending_ns -= stopped_ns;
    ledger->has_waited_ns = difference(ledger->has_waited_ns, stopped_ns);
    ledger->since_asleep_ns = difference(ledger->since_asleep_ns, stopped_ns);
}

void ledger_begin_tick(struct sampler *sampler, struct target_thread *thread)
{
    struct ledger *ledger = &thread->ledger;
    ledger->is_first_scan = ledger->is_new;
    ledger->is_new = false;
    if (ledger->is_first_scan) {
        ledger->since_ns = sampler->tick_ns;
        ledger->start_credit_ns = sampler->tick_span_ns;
        if (thread->life.created_ns) ledger_note_creation(sampler, thread);
        use_start_credit(ledger, thread->cpu_ns_seen);
    } else {
        add_time(ledger, sampler->tick_span_ns);
        ledger->has_waited_ns += sampler->tick_span_ns;
        ledger->since_asleep_ns += sampler->tick_span_ns;
        if (ledger->was_there && thread->life.created_ns) ledger_note_creation(sampler, thread);
        if (sampler->stopped_ns > 0 && !sampler_is_cpu_mode(sampler)) write_stopped(sampler, thread);
    }
}

/* Writes that THREAD waited for a processor for WAIT_NS after a wake-up, at the stack where it was blocked, even if no
 * tick has seen it asleep yet. Most of WAIT_NS may be recorded as blocked time already, by ticks without a record. */
static void write_wake_up(struct sampler *sampler, struct target_thread *thread, uint64_t wait_ns)
{
    struct ledger *ledger = &thread->ledger;
    uint64_t cpu_ns = ledger_unwritten_cpu_ns(thread, thread->cpu_ns_seen);
    uint64_t now_ns = whole_units(least(wait_ns, difference(ledger->pending_ns, cpu_ns)));
    if (now_ns > 0) write_more(sampler, thread, RECORDING_OF_BLOCKED, (struct recording_time){.runnable_ns = now_ns});
    ledger->pending_ns -= now_ns;
    ledger->runnable_written_ns += wait_ns;
    if (wait_ns == now_ns || thread->state != THREAD_BLOCKED) return;
    recording_begin(sampler->writer, RECORDING_WOKEN, 32);
    recording_number(sampler->writer, thread->number);
    recording_number(sampler->writer, wait_ns - now_ns);
}

static void add_waits(struct sampler *sampler, const struct target_thread *thread, struct ended_waits waits)
{
    struct short_lived_sums *routine = short_lived_routine(sampler, thread->life.routine);
    routine->woken_waits += waits.woken;
    routine->other_waits += waits.others;
}

/* Returns the part of WAIT_NS after wake-ups. The kernel's counts of switches divide it: waits of both kinds are taken
 * to be of one length. Where the counts are unknown, a thread that was asleep at the previous scan was woken since.
 * Where ticks are late, the time is divided later, by all counts together: not all can be read, and in a long time
 * between two scans a thread that has slept has fewer other waits, so that each of its sleeps would count for too much.
 */
static uint64_t wait_without_timer(struct sampler *sampler, struct target_thread *thread, uint64_t wait_ns)
{
    enum { READ_A_TICK_MAX = 32 };
    bool may_read = sampler->switches_in_tick < READ_A_TICK_MAX && wait_ns >= WAKE_UP_NS_MIN;
    struct ended_waits waits;
    sampler->switches_in_tick += may_read;
    bool is_known = may_read && context_switches_count_waits(thread, &waits);
    if (is_known) add_waits(sampler, thread, waits);
    if (sampler->sampler_starved) {
        thread->ledger.unknown_wait_ns += wait_ns;
        return 0;
    }
    if (is_known) return (uint64_t)(waits.woken / (waits.woken + waits.others) * (double)wait_ns);
    return thread->state == THREAD_BLOCKED ? wait_ns : 0;
}

/* Returns the part of WAIT_NS after wake-ups. A timer measures waits after preemptions, and the kernel can count them
 * later: then the result is negative. */
static int64_t wait_after_wake_up(struct sampler *sampler, struct target_thread *thread, uint64_t wait_ns)
{
    struct ledger *ledger = &thread->ledger;
    uint64_t preempted_ns = difference(thread->timer.preempted_ns, ledger->preempted_ns);
    bool is_known = thread->timer.control && ledger->has_seen_switch;
    ledger->preempted_ns = thread->timer.preempted_ns;
    ledger->has_seen_switch = thread->timer.has_seen_switch;
    if (!is_known) return (int64_t)wait_without_timer(sampler, thread, wait_ns);
    struct short_lived_sums *routine = short_lived_routine(sampler, thread->life.routine);
    routine->timed_wait_ns += wait_ns;
    routine->timed_preempted_ns += preempted_ns;
    return (int64_t)(wait_ns - preempted_ns);
}

/* Adds WOKEN_NS to the waits after wake-ups, and writes these once they exceed the difference between the clocks. */
static void note_waits(struct sampler *sampler, struct target_thread *thread, int64_t woken_ns)
{
    int64_t *unwritten_ns = &thread->ledger.woken_ns;
    *unwritten_ns += woken_ns;
    if (*unwritten_ns < -WAKE_UP_NS_MIN) *unwritten_ns = -WAKE_UP_NS_MIN;
    if (*unwritten_ns < WAKE_UP_NS_MIN) return;
    write_wake_up(sampler, thread, (uint64_t)*unwritten_ns);
    *unwritten_ns = 0;
}

/* Returns the share of waits after wake-ups in the waits of ROUTINE that timers saw, or that the kernel counted. */
static double woken_part(const struct short_lived_sums *routine)
{
    double waits = routine->woken_waits + routine->other_waits;
    uint64_t timed_woken_ns = difference(routine->timed_wait_ns, routine->timed_preempted_ns);
    if (routine->timed_wait_ns > 0) return (double)timed_woken_ns / (double)routine->timed_wait_ns;
    return waits > 0 ? routine->woken_waits / waits : 0;
}

/* Divides unknown waits as the known ones of threads with the same start routine. This is done as late as possible,
 * because few threads have timers at first, or were counted; IS_LAST: at once. */
static void divide_unknown_waits(struct sampler *sampler, struct target_thread *thread, bool is_last)
{
    enum { ENOUGH_WAITS = 400 }; /* a share of a tenth is then known within a third of it */
    struct ledger *ledger = &thread->ledger;
    const struct short_lived_sums *routine = short_lived_routine(sampler, thread->life.routine);
    uint64_t wait_ns = least(ledger->unknown_wait_ns, ledger_unwritten_wait_ns(thread));
    bool are_many_known = routine->timed_wait_ns > 0 || routine->woken_waits + routine->other_waits >= ENOUGH_WAITS;
    if (wait_ns == 0 || !(is_last || are_many_known)) return;
    ledger->unknown_wait_ns = 0;
    note_waits(sampler, thread, (int64_t)(woken_part(routine) * (double)wait_ns));
}

void ledger_read_run_queue_wait(struct sampler *sampler, struct target_thread *thread)
{
    struct ledger *ledger = &thread->ledger;
    uint64_t delay_ns = 0;
    if (sampler_is_cpu_mode(sampler) || !thread_read_delay(thread, &delay_ns)) return;
    if (!ledger->has_delay) ledger->runnable_written_ns = ledger->delay_ns = delay_ns;
    ledger->has_delay = true;
    uint64_t wait_ns = difference(delay_ns, ledger->delay_ns);
    ledger->delay_ns = delay_ns;
    ledger->delay_read_ns = monotonic_ns();
    use_start_credit(ledger, wait_ns);
    if (!ledger->is_first_scan) ledger->start_credit_ns = 0; /* the first wait has ended */
    note_waits(sampler, thread, wait_after_wake_up(sampler, thread, wait_ns));
    ledger->ran_in_ns = sampler->tick_span_ns;
    ledger->has_waited_ns = 0;
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* Returns the waits that are not written yet where THREAD ran, or never, ns. */
static uint64_t kept_back_ns(const struct target_thread *thread)
{
    const struct ledger *ledger = &thread->ledger;
    return ledger->unknown_wait_ns + (ledger->woken_ns > 0 ? (uint64_t)ledger->woken_ns : 0);
}

/* Returns the CPU time up to CPU_NS, and the same share of the waits for a processor, whose times are unknown. The sum
 * is at most the wall-clock time that has passed: the clocks are not read at the same moment. */
static struct recording_time running_time(const struct sampler *sampler, const struct target_thread *thread,
                                          uint64_t cpu_ns)
{
    const struct ledger *ledger = &thread->ledger;
    uint64_t unwritten_ns = ledger_unwritten_cpu_ns(thread, cpu_ns);
    if (sampler_is_cpu_mode(sampler)) return (struct recording_time){.cpu_ns = whole_units(unwritten_ns)};
    uint64_t wait_ns = difference(ledger_unwritten_wait_ns(thread), kept_back_ns(thread));
    uint64_t later_ns = difference(thread->cpu_ns_seen, cpu_ns);
    if (later_ns > 0) wait_ns = (uint64_t)((double)wait_ns * (double)unwritten_ns / (double)(unwritten_ns + later_ns));
    struct recording_time time = {.cpu_ns = whole_units(least(unwritten_ns, ledger->pending_ns))};
    time.runnable_ns = whole_units(least(wait_ns, ledger->pending_ns - time.cpu_ns));
    return time;
}

static uint64_t blocked_ns(const struct sampler *sampler, const struct target_thread *thread)
{
    if (sampler_is_cpu_mode(sampler)) return 0;
    struct recording_time running = running_time(sampler, thread, thread->cpu_ns_seen);
    uint64_t rest_ns = thread->ledger.pending_ns - running.cpu_ns - running.runnable_ns;
    return whole_units(difference(rest_ns, kept_back_ns(thread)));
}

static void note_written(const struct sampler *sampler, struct target_thread *thread, struct recording_time time)
{
    struct ledger *ledger = &thread->ledger;
    ledger->cpu_written_ns += time.cpu_ns;
    ledger->runnable_written_ns += time.runnable_ns;
    if (!sampler_is_cpu_mode(sampler)) ledger->pending_ns -= time.cpu_ns + time.runnable_ns + time.blocked_ns;
}

static void write_sample(struct sampler *sampler, struct target_thread *thread, struct recording_time time,
                         uint32_t flags, const struct found_stack *stack)
{
    write_routine(sampler, thread);
    recording_sample(sampler->writer, thread->number, time, flags, stack->addresses, stack->count, thread->last);
    if (flags & RECORDING_BLOCKED)
        thread->ledger.has_blocked = true;
    else
        thread->ledger.has_run = true;
    note_written(sampler, thread, time);
    thread->ran = sampler->has_news = true;
    thread->written_tick = sampler->tick;
}

static void note_unseen_waits(struct sampler *sampler, const struct target_thread *thread, uint64_t ns)
{
    if (!thread->waits.are_where_it_runs) sampler->counters[RECORDING_UNSEEN_WAITS_NS] += ns;
}

void ledger_credit_running(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                           const struct found_stack *stack)
{
    enum { PERIODS_OF_WAITS_MAX = 64 };
    divide_unknown_waits(sampler, thread, false);
    struct recording_time time = running_time(sampler, thread, cpu_ns);
    bool are_seen = run_queue_waits_are_seen(sampler, thread);
    /* Waits are left to a stack where one of them began, if there is one soon. */
    if (are_seen && ledger_unwritten_wait_ns(thread) < PERIODS_OF_WAITS_MAX * sampler->period_ns) time.runnable_ns = 0;
    if (time.cpu_ns + time.runnable_ns == 0) return;
    note_unseen_waits(sampler, thread, time.runnable_ns);
    write_sample(sampler, thread, time, stack->flags, stack);
    thread->ticks_without_table = 0;
}

void ledger_credit_wait(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack)
{
    divide_unknown_waits(sampler, thread, false);
    struct recording_time time = running_time(sampler, thread, thread->cpu_ns_seen);
    time.cpu_ns = 0;
    if (time.runnable_ns > 0) write_sample(sampler, thread, time, stack->flags, stack);
}

void ledger_credit_blocked(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack)
{
    use_start_credit(&thread->ledger, thread->ledger.start_credit_ns / 2); /* on average it began half-way */
    uint64_t cpu_ns = running_time(sampler, thread, thread->cpu_ns_seen).cpu_ns;
    struct recording_time time = {.blocked_ns = blocked_ns(sampler, thread)};
    time.cpu_ns = whole_units(least(cpu_ns, timer_switching_ns(thread)));
    thread->credit.switching_written_ns += time.cpu_ns;
    write_sample(sampler, thread, time, stack->flags | RECORDING_BLOCKED, stack);
    thread->ledger.since_asleep_ns = 0;
    thread->state = THREAD_BLOCKED;
}

void ledger_credit_sleep(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack)
{
    ledger_credit_blocked(sampler, thread, stack);
    thread->state = THREAD_RUNNABLE;
}

static void write_lost(struct sampler *sampler, struct target_thread *thread, struct recording_time time,
                       enum recording_loss cause)
{
    if (time.cpu_ns + time.runnable_ns + time.blocked_ns == 0) return;
    recording_begin(sampler->writer, RECORDING_LOST, 64);
    recording_number(sampler->writer, thread->number);
    recording_number(sampler->writer, cause);
    recording_time(sampler->writer, time);
    note_written(sampler, thread, time);
}

void ledger_write_lost(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                       enum recording_loss cause)
{
    write_lost(sampler, thread, running_time(sampler, thread, cpu_ns), cause);
}

void ledger_write_unreadable(struct sampler *sampler, struct target_thread *thread)
{
    struct recording_time time = {.blocked_ns = blocked_ns(sampler, thread)};
    write_lost(sampler, thread, time, RECORDING_LOST_UNREADABLE);
}

void ledger_end_tick(struct sampler *sampler, struct target_thread *thread)
{
    if (sampler_is_cpu_mode(sampler) || thread->written_tick == sampler->tick) return;
    recording_begin(sampler->writer, RECORDING_WAITING, 16);
    recording_number(sampler->writer, thread->number);
}

void ledger_close(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns)
{
    thread->ledger.pending_ns += unseen_cpu_ns;
    if (thread->state == THREAD_BLOCKED && unseen_cpu_ns < sampler->period_ns)
        thread->ledger.pending_ns += (sampler->period_ns - unseen_cpu_ns) / 2; /* on average it ended half-way */
    ledger_write_rest(sampler, thread);
}

/* Estimates the waits of THREAD in its last GAP_NS, of which it ran for CPU_NS: the kernel's count is gone with the
 * thread. It is taken to have been awake as often as late ticks saw threads of its routine awake; or else to have
 * waited for a processor for the same share of the time without one as earlier. */
static uint64_t likely_delay(struct sampler *sampler, const struct target_thread *thread, uint64_t gap_ns,
                             uint64_t cpu_ns)
{
    enum { LATE_TICKS_MIN = 32 };
    const struct ledger *ledger = &thread->ledger;
    const struct short_lived_sums *routine = short_lived_routine(sampler, thread->life.routine);
    if (routine->late_ticks >= LATE_TICKS_MIN) {
        double awake = 1 - (double)routine->late_ticks_asleep / (double)routine->late_ticks;
        return difference((uint64_t)(awake * (double)gap_ns), cpu_ns);
    }
    uint64_t ran_before_ns = difference(thread->life.cpu_ns, cpu_ns);
    uint64_t off_before_ns = difference(difference(thread->life.wall_ns, gap_ns), ran_before_ns);
    if (ledger->was_there || off_before_ns == 0) return 0;
    double part = (double)least(ledger->delay_ns, off_before_ns) / (double)off_before_ns;
    return (uint64_t)(part * (double)difference(gap_ns, cpu_ns));
}

/* Adds the time from the last tick that found THREAD to its end. */
static void add_time_to_end(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns)
{
    enum { PERIODS_TO_ESTIMATE = 2 }; /* least gap that is estimated; a shorter one continues what the last tick saw */
    uint64_t written_until_ns = thread->is_missing ? sampler->before_ns : sampler->tick_ns;
    struct ended_waits waits;
    uint64_t end_ns = thread->life.created_ns + thread->life.wall_ns, gap_ns = difference(end_ns, written_until_ns);
    ledger_note_creation(sampler, thread);
    if (context_switches_count_last_waits(thread, &waits)) add_waits(sampler, thread, waits);
    add_time(&thread->ledger, gap_ns);
    take_time_back(&thread->ledger, difference(written_until_ns, end_ns)); /* a tick saw it after its end event */
    if (gap_ns > PERIODS_TO_ESTIMATE * sampler->period_ns) {
        uint64_t uncounted_ns = least(gap_ns, difference(end_ns, thread->ledger.delay_read_ns));
        uint64_t delay_ns = likely_delay(sampler, thread, uncounted_ns, unseen_cpu_ns);
        thread->ledger.delay_ns += delay_ns;
        thread->ledger.unknown_wait_ns += delay_ns;
    } else {
        thread->ledger.has_waited_ns += gap_ns;
    }
    if (thread->life.sleeps == 0) {
        thread->state = THREAD_RUNNABLE;
        thread->ledger.has_waited_ns = thread->ledger.pending_ns;
        thread->ledger.since_asleep_ns = 0;
        thread->ledger.unknown_wait_ns = 0;
    }
}

void ledger_close_as_reported(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns)
{
    if (!sampler_is_cpu_mode(sampler)) add_time_to_end(sampler, thread, unseen_cpu_ns);
    ledger_write_rest(sampler, thread);
}

void ledger_note_state(struct sampler *sampler, const struct target_thread *thread)
{
    struct short_lived_sums *routine = short_lived_routine(sampler, thread->life.routine);
    routine->late_ticks++;
    routine->late_ticks_asleep += thread->state == THREAD_BLOCKED;
}

/* Returns THREAD's last wait for a processor, which the kernel has not counted, ns. For the rest of its time it was
 * blocked; a short rest is the difference between the clocks. Ticks seldom miss a sleep of a thread with a timer. */
static uint64_t uncounted_wait_ns(struct sampler *sampler, const struct target_thread *thread)
{
    const struct ledger *ledger = &thread->ledger;
    uint64_t rest_ns = ledger->pending_ns;
    if (thread->state != THREAD_RUNNABLE) return 0;
    if (thread->timer.control) return whole_units(rest_ns);
    uint64_t before_ns = ledger->ran_in_ns / 2; /* on average it stopped half-way */
    const struct short_lived_sums *routine = short_lived_routine(sampler, thread->life.routine);
    double asleep_part = routine->late_ticks ? (double)routine->late_ticks_asleep / (double)routine->late_ticks : 0;
    uint64_t unseen_sleep_ns = (uint64_t)(asleep_part * (double)ledger->since_asleep_ns);
    uint64_t unknown_ns = difference(rest_ns, ledger->has_waited_ns + unseen_sleep_ns);
    uint64_t wait_ns = least(ledger->has_waited_ns + least(unknown_ns, before_ns), rest_ns);
    bool has_slept = ledger->has_blocked || rest_ns > wait_ns + sampler->period_ns;
    return whole_units(has_slept ? wait_ns : rest_ns);
}

void ledger_write_rest(struct sampler *sampler, struct target_thread *thread)
{
    divide_unknown_waits(sampler, thread, true);
    thread->ledger.woken_ns = 0;
    struct recording_time running = running_time(sampler, thread, thread->cpu_ns_seen);
    note_written(sampler, thread, running);
    struct recording_time blocked = {0};
    if (!sampler_is_cpu_mode(sampler)) {
        uint64_t rest_ns = whole_units(thread->ledger.pending_ns);
        uint64_t waited_ns = uncounted_wait_ns(sampler, thread);
        running.runnable_ns += waited_ns;
        thread->ledger.runnable_written_ns += waited_ns;
        blocked.blocked_ns = rest_ns - waited_ns;
        thread->ledger.pending_ns = 0;
    }
    note_unseen_waits(sampler, thread, running.runnable_ns);
    if (running.cpu_ns + running.runnable_ns > 0) write_more(sampler, thread, RECORDING_OF_RUNNING, running);
    if (blocked.blocked_ns > 0) write_more(sampler, thread, RECORDING_OF_BLOCKED, blocked);
}
