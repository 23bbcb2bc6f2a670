/* SPDX-License-Identifier: MIT */
#include "sampler/ledger/ledger.h"

#include "base/unsigned.h"

enum { WAKE_UP_NS_MIN = 100000 }; /* largest difference between the kernel's clocks, ns */

/* Rounds NS down to the recording's unit; the rest is written later. */
static uint64_t whole_units(uint64_t ns)
{
    return ns - ns % RECORDING_TIME_UNIT_NS;
}

uint64_t ledger_unwritten_cpu_ns(const struct ledger *ledger, uint64_t cpu_ns)
{
    return difference(cpu_ns, ledger->cpu_written_ns);
}

uint64_t ledger_unwritten_wait_ns(const struct ledger *ledger)
{
    return difference(ledger->waits.delay_ns, ledger->waits.written_ns);
}

/* --- Pending time ------------------------------------------------------------------------------------------------- */

void ledger_open_existing(struct ledger *ledger, uint64_t cpu_ns)
{
    ledger->beginning.was_there = true;
    ledger->cpu_written_ns = ledger->cpu_ns = cpu_ns;
}

void ledger_open(struct ledger *ledger)
{
    ledger->waits.has_delay = !ledger->beginning.was_there; /* false: the first reading is the start of the count */
    ledger->beginning.is_new = !ledger->beginning.was_there;
}

void ledger_begin_recording(struct ledger *ledger, uint32_t number)
{
    ledger->records = (struct ledger_records){.number = number, .written_tick = ledger->records.written_tick};
    ledger->state = LEDGER_UNKNOWN;
}

static void add_time(struct ledger *ledger, uint64_t ns)
{
    uint64_t had_ns = least(ns, ledger->wall.prewritten_ns);
    ledger->wall.prewritten_ns -= had_ns;
    ledger->wall.pending_ns += ns - had_ns;
}

static void take_time_back(struct ledger *ledger, uint64_t ns)
{
    uint64_t taken_ns = least(ns, ledger->wall.pending_ns);
    ledger->wall.pending_ns -= taken_ns;
    ledger->wall.prewritten_ns += ns - taken_ns;
}

/* Moves NS of the start credit to pending time. The start credit is the time between the tick that found the thread and
 * the previous one, in which it may have begun: it has existed at least for its CPU time and the waits that the kernel
 * counted. */
static void use_start_credit(struct ledger *ledger, uint64_t ns)
{
    uint64_t taken_ns = least(ns, ledger->wall.start_credit_ns);
    ledger->wall.start_credit_ns -= taken_ns;
    ledger->wall.since_ns -= least(taken_ns, ledger->wall.since_ns);
    ledger->wall.pending_ns += taken_ns;
}

/* Writes the start routine of the thread once: it names time without a stack, and threads with stacks can stand for
 * others of their routine. */
static void write_routine(const struct ledger_tick *tick, struct ledger *ledger)
{
    if (ledger->life.routine == 0 || ledger->records.has_written_routine) return;
    ledger->records.has_written_routine = true;
    tick->sink->routine(tick->sink->context, ledger);
}

static void write_more(const struct ledger_tick *tick, struct ledger *ledger, enum recording_share share,
                       struct recording_time time)
{
    write_routine(tick, ledger);
    tick->sink->more(tick->sink->context, ledger, share, time);
}

/* Writes once, without a stack, how long the thread waited for its first processor. */
static void write_start_wait(const struct ledger_tick *tick, struct ledger *ledger)
{
    uint64_t wait_ns = whole_units(least(ledger->life.start_wait_ns, ledger->wall.pending_ns));
    if (ledger->beginning.has_written_start || wait_ns < WAKE_UP_NS_MIN) return;
    ledger->beginning.has_written_start = true;
    write_more(tick, ledger, RECORDING_OF_START, (struct recording_time){.runnable_ns = wait_ns});
    ledger->wall.pending_ns -= wait_ns;
    ledger->waits.written_ns += wait_ns;
}

void ledger_open_forked(const struct ledger_tick *tick, struct ledger *ledger, uint64_t cpu_ns, uint64_t age_ns)
{
    struct recording_time time = {.cpu_ns = whole_units(cpu_ns)};
    if (!ledger_tick_is_of_cpu_mode(tick)) {
        age_ns = whole_units(age_ns);
        time.cpu_ns = least(time.cpu_ns, age_ns);
        time.runnable_ns = age_ns - time.cpu_ns;
        ledger->wall.prewritten_ns += age_ns;
    }
    if (time.cpu_ns + time.runnable_ns > 0) write_more(tick, ledger, RECORDING_OF_START, time);
}

/* Begins LEDGER at CREATED_NS, which can be after the open tick: threads are listed a little later. */
static void correct_since(const struct ledger_tick *tick, struct ledger *ledger, uint64_t created_ns)
{
    if (created_ns < tick->recording_start_ns) created_ns = tick->recording_start_ns;
    if (created_ns < ledger->wall.since_ns)
        add_time(ledger, ledger->wall.since_ns - created_ns);
    else
        take_time_back(ledger, created_ns - ledger->wall.since_ns);
    ledger->wall.since_ns = created_ns;
    ledger->beginning.is_reported = true;
}

void ledger_note_creation(const struct ledger_tick *tick, struct ledger *ledger)
{
    uint64_t created_ns = ledger->life.created_ns;
    if (ledger_tick_is_of_cpu_mode(tick)) return;
    if (ledger->beginning.was_there && created_ns > tick->recording_start_ns) {
        /* It had not run yet when the first threads were listed, so its time was counted from the recording's start. */
        ledger->beginning.was_there = false;
        ledger->waits.has_delay = true;
        ledger->wall.since_ns = tick->recording_start_ns;
    }
    if (ledger->wall.since_ns == 0) return;
    if (!ledger->beginning.is_reported) correct_since(tick, ledger, created_ns);
    ledger->wall.start_credit_ns = 0;
    write_start_wait(tick, ledger);
}

/* Writes the time for which the process was stopped, which would otherwise count for what the thread did next. A thread
 * that is still blocked where it was before needs no record: its call continues. A thread that ran for most of the time
 * was not stopped: a debugger has stopped the sampler thread alone. */
static void write_stopped(const struct ledger_tick *tick, struct ledger *ledger)
{
    uint64_t ran_ns = ledger_unwritten_cpu_ns(ledger, ledger->cpu_ns);
    uint64_t stopped_ns = whole_units(least(tick->stopped_ns, difference(ledger->wall.pending_ns, ran_ns)));
    if (stopped_ns == 0 || ran_ns > tick->stopped_ns / 2) return;
    write_more(tick, ledger, RECORDING_OF_STOPPED, (struct recording_time){.blocked_ns = stopped_ns});
    ledger->wall.pending_ns -= stopped_ns;
    ledger->wall.has_waited_ns = difference(ledger->wall.has_waited_ns, stopped_ns);
    ledger->wall.since_asleep_ns = difference(ledger->wall.since_asleep_ns, stopped_ns);
}

void ledger_begin_tick(const struct ledger_tick *tick, struct ledger *ledger)
{
    ledger->beginning.is_first_scan = ledger->beginning.is_new;
    ledger->beginning.is_new = false;
    if (ledger->beginning.is_first_scan) {
        ledger->wall.since_ns = tick->start_ns;
        ledger->wall.start_credit_ns = tick->span_ns;
        if (ledger->life.created_ns) ledger_note_creation(tick, ledger);
        use_start_credit(ledger, ledger->cpu_ns);
    } else {
        add_time(ledger, tick->span_ns);
        ledger->wall.has_waited_ns += tick->span_ns;
        ledger->wall.since_asleep_ns += tick->span_ns;
        if (ledger->beginning.was_there && ledger->life.created_ns) ledger_note_creation(tick, ledger);
        if (tick->stopped_ns > 0 && !ledger_tick_is_of_cpu_mode(tick)) write_stopped(tick, ledger);
    }
}

/* Writes that the thread waited for a processor for WAIT_NS after a wake-up, at the stack where it was blocked, even if
 * no tick has seen it asleep yet. Most of WAIT_NS may be recorded as blocked time already, by ticks without a record.
 */
static void write_wake_up(const struct ledger_tick *tick, struct ledger *ledger, uint64_t wait_ns)
{
    uint64_t cpu_ns = ledger_unwritten_cpu_ns(ledger, ledger->cpu_ns);
    uint64_t now_ns = whole_units(least(wait_ns, difference(ledger->wall.pending_ns, cpu_ns)));
    if (now_ns > 0) write_more(tick, ledger, RECORDING_OF_BLOCKED, (struct recording_time){.runnable_ns = now_ns});
    ledger->wall.pending_ns -= now_ns;
    ledger->waits.written_ns += wait_ns;
    if (wait_ns == now_ns || ledger->state != LEDGER_BLOCKED) return;
    tick->sink->woken(tick->sink->context, ledger, wait_ns - now_ns);
}

static struct routine_waits *waits_of(const struct ledger_tick *tick, const struct ledger *ledger)
{
    return &routine_sums_of(tick->routines, ledger->life.routine)->waits;
}

static void add_waits(const struct ledger_tick *tick, const struct ledger *ledger, const struct ended_waits *waits)
{
    struct routine_waits *routine = waits_of(tick, ledger);
    routine->woken += waits->woken;
    routine->others += waits->others;
}

/* Returns the part of WAIT_NS after wake-ups. The kernel's counts of switches, WAITS, divide it: waits of both kinds
 * are taken to be of one length. Where the counts are unknown, a thread that was asleep at the previous scan was woken
 * since. Where ticks are late, the time is divided later, by all counts together: not all can be read, and in a long
 * time between two scans a thread that has slept has fewer other waits, so that each of its sleeps would count for too
 * much.
 */
static uint64_t wait_without_timer(const struct ledger_tick *tick, struct ledger *ledger, uint64_t wait_ns,
                                   const struct ended_waits *waits)
{
    if (waits) add_waits(tick, ledger, waits);
    if (tick->is_starved) {
        ledger->waits.unknown_ns += wait_ns;
        return 0;
    }
    if (waits) return (uint64_t)(waits->woken / (waits->woken + waits->others) * (double)wait_ns);
    return ledger->state == LEDGER_BLOCKED ? wait_ns : 0;
}

/* Returns the part of WAIT_NS after wake-ups. A timer measures waits after preemptions, and the kernel can count them
 * later: then the result is negative. */
static int64_t wait_after_wake_up(const struct ledger_tick *tick, struct ledger *ledger, uint64_t wait_ns,
                                  const struct ledger_delay *delay)
{
    uint64_t preempted_ns = difference(delay->timer.preempted_ns, ledger->waits.preempted_ns);
    bool is_known = delay->timer.is_there && ledger->waits.has_seen_switch;
    ledger->waits.preempted_ns = delay->timer.preempted_ns;
    ledger->waits.has_seen_switch = delay->timer.has_seen_switch;
    if (!is_known) return (int64_t)wait_without_timer(tick, ledger, wait_ns, delay->waits);
    struct routine_waits *routine = waits_of(tick, ledger);
    routine->timed_ns += wait_ns;
    routine->timed_preempted_ns += preempted_ns;
    return (int64_t)(wait_ns - preempted_ns);
}

/* Adds WOKEN_NS to the waits after wake-ups, and writes these once they exceed the difference between the clocks. */
static void note_waits(const struct ledger_tick *tick, struct ledger *ledger, int64_t woken_ns)
{
    int64_t *unwritten_ns = &ledger->waits.woken_ns;
    *unwritten_ns += woken_ns;
    if (*unwritten_ns < -WAKE_UP_NS_MIN) *unwritten_ns = -WAKE_UP_NS_MIN;
    if (*unwritten_ns < WAKE_UP_NS_MIN) return;
    write_wake_up(tick, ledger, (uint64_t)*unwritten_ns);
    *unwritten_ns = 0;
}

/* Returns the share of waits after wake-ups in the waits of ROUTINE that timers saw, or that the kernel counted. */
static double woken_part(const struct routine_waits *routine)
{
    double waits = routine->woken + routine->others;
    uint64_t timed_woken_ns = difference(routine->timed_ns, routine->timed_preempted_ns);
    if (routine->timed_ns > 0) return (double)timed_woken_ns / (double)routine->timed_ns;
    return waits > 0 ? routine->woken / waits : 0;
}

/* Divides unknown waits as the known ones of threads with the same start routine. This is done as late as possible,
 * because few threads have timers at first, or were counted; IS_LAST: at once. */
static void divide_unknown_waits(const struct ledger_tick *tick, struct ledger *ledger, bool is_last)
{
    enum { ENOUGH_WAITS = 400 }; /* a share of a tenth is then known within a third of it */
    const struct routine_waits *routine = waits_of(tick, ledger);
    uint64_t wait_ns = least(ledger->waits.unknown_ns, ledger_unwritten_wait_ns(ledger));
    bool are_many_known = routine->timed_ns > 0 || routine->woken + routine->others >= ENOUGH_WAITS;
    if (wait_ns == 0 || !(is_last || are_many_known)) return;
    ledger->waits.unknown_ns = 0;
    note_waits(tick, ledger, (int64_t)(woken_part(routine) * (double)wait_ns));
}

bool ledger_wants_waits(const struct ledger *ledger, uint64_t delay_ns, const struct ledger_timer *timer)
{
    const struct ledger_waits *waits = &ledger->waits;
    if (timer->is_there && waits->has_seen_switch) return false;
    return waits->has_delay && difference(delay_ns, waits->delay_ns) >= WAKE_UP_NS_MIN;
}

void ledger_note_delay(const struct ledger_tick *tick, struct ledger *ledger, const struct ledger_delay *delay)
{
    if (!ledger->waits.has_delay) ledger->waits.written_ns = ledger->waits.delay_ns = delay->ns;
    ledger->waits.has_delay = true;
    uint64_t wait_ns = difference(delay->ns, ledger->waits.delay_ns);
    ledger->waits.delay_ns = delay->ns;
    ledger->waits.delay_read_ns = delay->read_ns;
    use_start_credit(ledger, wait_ns);
    if (!ledger->beginning.is_first_scan) ledger->wall.start_credit_ns = 0; /* the first wait has ended */
    note_waits(tick, ledger, wait_after_wake_up(tick, ledger, wait_ns, delay));
    ledger->wall.ran_in_ns = tick->span_ns;
    ledger->wall.has_waited_ns = 0;
}

void ledger_forget_timer(struct ledger *ledger)
{
    ledger->waits.preempted_ns = 0;
    ledger->waits.has_seen_switch = false;
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* Returns the waits that are not written yet where the thread ran, or never, ns. */
static uint64_t kept_back_ns(const struct ledger *ledger)
{
    return ledger->waits.unknown_ns + (ledger->waits.woken_ns > 0 ? (uint64_t)ledger->waits.woken_ns : 0);
}

/* Returns the CPU time up to CPU_NS, and the same share of the waits for a processor, whose times are unknown. The sum
 * is at most the wall-clock time that has passed: the clocks are not read at the same moment. */
static struct recording_time running_time(const struct ledger_tick *tick, const struct ledger *ledger, uint64_t cpu_ns)
{
    uint64_t unwritten_ns = ledger_unwritten_cpu_ns(ledger, cpu_ns);
    if (ledger_tick_is_of_cpu_mode(tick)) return (struct recording_time){.cpu_ns = whole_units(unwritten_ns)};
    uint64_t wait_ns = difference(ledger_unwritten_wait_ns(ledger), kept_back_ns(ledger));
    uint64_t later_ns = difference(ledger->cpu_ns, cpu_ns);
    if (later_ns > 0) wait_ns = (uint64_t)((double)wait_ns * (double)unwritten_ns / (double)(unwritten_ns + later_ns));
    struct recording_time time = {.cpu_ns = whole_units(least(unwritten_ns, ledger->wall.pending_ns))};
    time.runnable_ns = whole_units(least(wait_ns, ledger->wall.pending_ns - time.cpu_ns));
    return time;
}

static uint64_t blocked_ns(const struct ledger_tick *tick, const struct ledger *ledger)
{
    if (ledger_tick_is_of_cpu_mode(tick)) return 0;
    struct recording_time running = running_time(tick, ledger, ledger->cpu_ns);
    uint64_t rest_ns = ledger->wall.pending_ns - running.cpu_ns - running.runnable_ns;
    return whole_units(difference(rest_ns, kept_back_ns(ledger)));
}

static void note_written(const struct ledger_tick *tick, struct ledger *ledger, struct recording_time time)
{
    ledger->cpu_written_ns += time.cpu_ns;
    ledger->waits.written_ns += time.runnable_ns;
    if (!ledger_tick_is_of_cpu_mode(tick)) ledger->wall.pending_ns -= time.cpu_ns + time.runnable_ns + time.blocked_ns;
}

static void write_sample(const struct ledger_tick *tick, struct ledger *ledger, struct recording_time time,
                         const struct found_stack *stack)
{
    write_routine(tick, ledger);
    tick->sink->sample(tick->sink->context, ledger, time, stack);
    if (stack->flags & RECORDING_BLOCKED)
        ledger->records.has_blocked = true;
    else
        ledger->records.has_run = true;
    note_written(tick, ledger, time);
    ledger->records.written_tick = tick->number;
}

struct recording_time ledger_credit_running(const struct ledger_tick *tick, struct ledger *ledger, uint64_t cpu_ns,
                                            bool is_observed, const struct found_stack *stack)
{
    enum { PERIODS_OF_WAITS_MAX = 64 };
    divide_unknown_waits(tick, ledger, false);
    struct recording_time time = running_time(tick, ledger, cpu_ns);
    /* Waits are left to a stack where one of them began, if there is one soon. */
    if (is_observed && ledger_unwritten_wait_ns(ledger) < PERIODS_OF_WAITS_MAX * tick->period_ns) time.runnable_ns = 0;
    if (time.cpu_ns + time.runnable_ns > 0) write_sample(tick, ledger, time, stack);
    return time;
}

struct recording_time ledger_credit_wait(const struct ledger_tick *tick, struct ledger *ledger,
                                         const struct found_stack *stack)
{
    divide_unknown_waits(tick, ledger, false);
    struct recording_time time = running_time(tick, ledger, ledger->cpu_ns);
    time.cpu_ns = 0;
    if (time.runnable_ns > 0) write_sample(tick, ledger, time, stack);
    return time;
}

uint64_t ledger_credit_blocked(const struct ledger_tick *tick, struct ledger *ledger, uint64_t switching_ns,
                               const struct found_stack *stack)
{
    const struct found_stack blocked = {stack->addresses, stack->count, stack->flags | RECORDING_BLOCKED};
    use_start_credit(ledger, ledger->wall.start_credit_ns / 2); /* on average it began half-way */
    uint64_t cpu_ns = running_time(tick, ledger, ledger->cpu_ns).cpu_ns;
    struct recording_time time = {.blocked_ns = blocked_ns(tick, ledger)};
    time.cpu_ns = whole_units(least(cpu_ns, switching_ns));
    write_sample(tick, ledger, time, &blocked);
    ledger->wall.since_asleep_ns = 0;
    ledger->state = LEDGER_BLOCKED;
    return time.cpu_ns;
}

uint64_t ledger_credit_sleep(const struct ledger_tick *tick, struct ledger *ledger, uint64_t switching_ns,
                             const struct found_stack *stack)
{
    uint64_t written_ns = ledger_credit_blocked(tick, ledger, switching_ns, stack);
    ledger->state = LEDGER_RUNNABLE;
    return written_ns;
}

static void write_lost(const struct ledger_tick *tick, struct ledger *ledger, struct recording_time time,
                       enum recording_loss cause)
{
    if (time.cpu_ns + time.runnable_ns + time.blocked_ns == 0) return;
    tick->sink->lost(tick->sink->context, ledger, cause, time);
    note_written(tick, ledger, time);
}

void ledger_write_lost(const struct ledger_tick *tick, struct ledger *ledger, uint64_t cpu_ns,
                       enum recording_loss cause)
{
    write_lost(tick, ledger, running_time(tick, ledger, cpu_ns), cause);
}

void ledger_write_unreadable(const struct ledger_tick *tick, struct ledger *ledger)
{
    struct recording_time time = {.blocked_ns = blocked_ns(tick, ledger)};
    write_lost(tick, ledger, time, RECORDING_LOST_UNREADABLE);
}

void ledger_end_tick(const struct ledger_tick *tick, struct ledger *ledger)
{
    if (ledger_tick_is_of_cpu_mode(tick) || ledger->records.written_tick == tick->number) return;
    tick->sink->waiting(tick->sink->context, ledger);
}

struct recording_time ledger_close(const struct ledger_tick *tick, struct ledger *ledger, const struct ledger_end *end)
{
    uint64_t unseen_ns = end->unseen_cpu_ns;
    ledger->wall.pending_ns += unseen_ns;
    if (ledger->state == LEDGER_BLOCKED && unseen_ns < tick->period_ns)
        ledger->wall.pending_ns += (tick->period_ns - unseen_ns) / 2; /* on average it ended half-way */
    return ledger_write_rest(tick, ledger, end->has_timer);
}

/* Estimates the waits of the thread in its last GAP_NS, of which it ran for CPU_NS: the kernel's count is gone with the
 * thread. It is taken to have been awake as often as late ticks saw threads of its routine awake; or else to have
 * waited for a processor for the same share of the time without one as earlier. */
static uint64_t likely_delay(const struct ledger_tick *tick, const struct ledger *ledger, uint64_t gap_ns,
                             uint64_t cpu_ns)
{
    enum { LATE_TICKS_MIN = 32 };
    const struct routine_waits *routine = waits_of(tick, ledger);
    if (routine->late_ticks >= LATE_TICKS_MIN) {
        double awake = 1 - (double)routine->late_ticks_asleep / (double)routine->late_ticks;
        return difference((uint64_t)(awake * (double)gap_ns), cpu_ns);
    }
    uint64_t ran_before_ns = difference(ledger->life.cpu_ns, cpu_ns);
    uint64_t off_before_ns = difference(difference(ledger->life.wall_ns, gap_ns), ran_before_ns);
    if (ledger->beginning.was_there || off_before_ns == 0) return 0;
    double part = (double)least(ledger->waits.delay_ns, off_before_ns) / (double)off_before_ns;
    return (uint64_t)(part * (double)difference(gap_ns, cpu_ns));
}

/* Adds the time from the last tick that found the thread to its end. */
static void add_time_to_end(const struct ledger_tick *tick, struct ledger *ledger, const struct ledger_end *end)
{
    enum { PERIODS_TO_ESTIMATE = 2 }; /* least gap that is estimated; a shorter one continues what the last tick saw */
    uint64_t written_until_ns = end->is_missing ? tick->before_ns : tick->start_ns;
    uint64_t end_ns = ledger->life.created_ns + ledger->life.wall_ns, gap_ns = difference(end_ns, written_until_ns);
    if (end->waits) add_waits(tick, ledger, end->waits);
    add_time(ledger, gap_ns);
    take_time_back(ledger, difference(written_until_ns, end_ns)); /* a tick saw it after its end event */
    if (gap_ns > PERIODS_TO_ESTIMATE * tick->period_ns) {
        uint64_t uncounted_ns = least(gap_ns, difference(end_ns, ledger->waits.delay_read_ns));
        uint64_t delay_ns = likely_delay(tick, ledger, uncounted_ns, end->unseen_cpu_ns);
        ledger->waits.delay_ns += delay_ns;
        ledger->waits.unknown_ns += delay_ns;
    } else {
        ledger->wall.has_waited_ns += gap_ns;
    }
    if (ledger->life.sleeps == 0) {
        ledger->state = LEDGER_RUNNABLE;
        ledger->wall.has_waited_ns = ledger->wall.pending_ns;
        ledger->wall.since_asleep_ns = 0;
        ledger->waits.unknown_ns = 0;
    }
}

struct recording_time ledger_close_as_reported(const struct ledger_tick *tick, struct ledger *ledger,
                                               const struct ledger_end *end)
{
    if (!ledger_tick_is_of_cpu_mode(tick)) add_time_to_end(tick, ledger, end);
    return ledger_write_rest(tick, ledger, end->has_timer);
}

void ledger_note_state(const struct ledger_tick *tick, const struct ledger *ledger)
{
    struct routine_waits *routine = waits_of(tick, ledger);
    routine->late_ticks++;
    routine->late_ticks_asleep += ledger->state == LEDGER_BLOCKED;
}

/* Returns the thread's last wait for a processor, which the kernel has not counted, ns. For the rest of its time it was
 * blocked; a short rest is the difference between the clocks. Ticks seldom miss a sleep of a thread with a timer. */
static uint64_t uncounted_wait_ns(const struct ledger_tick *tick, const struct ledger *ledger, bool has_timer)
{
    uint64_t rest_ns = ledger->wall.pending_ns;
    if (ledger->state != LEDGER_RUNNABLE) return 0;
    if (has_timer) return whole_units(rest_ns);
    uint64_t before_ns = ledger->wall.ran_in_ns / 2; /* on average it stopped half-way */
    const struct routine_waits *routine = waits_of(tick, ledger);
    double asleep_part = routine->late_ticks ? (double)routine->late_ticks_asleep / (double)routine->late_ticks : 0;
    uint64_t unseen_sleep_ns = (uint64_t)(asleep_part * (double)ledger->wall.since_asleep_ns);
    uint64_t unknown_ns = difference(rest_ns, ledger->wall.has_waited_ns + unseen_sleep_ns);
    uint64_t wait_ns = least(ledger->wall.has_waited_ns + least(unknown_ns, before_ns), rest_ns);
    bool has_slept = ledger->records.has_blocked || rest_ns > wait_ns + tick->period_ns;
    return whole_units(has_slept ? wait_ns : rest_ns);
}

struct recording_time ledger_write_rest(const struct ledger_tick *tick, struct ledger *ledger, bool has_timer)
{
    divide_unknown_waits(tick, ledger, true);
    ledger->waits.woken_ns = 0;
    struct recording_time running = running_time(tick, ledger, ledger->cpu_ns);
    note_written(tick, ledger, running);
    struct recording_time blocked = {0};
    if (!ledger_tick_is_of_cpu_mode(tick)) {
        uint64_t rest_ns = whole_units(ledger->wall.pending_ns);
        uint64_t waited_ns = uncounted_wait_ns(tick, ledger, has_timer);
        running.runnable_ns += waited_ns;
        ledger->waits.written_ns += waited_ns;
        blocked.blocked_ns = rest_ns - waited_ns;
        ledger->wall.pending_ns = 0;
    }
    if (running.cpu_ns + running.runnable_ns > 0) write_more(tick, ledger, RECORDING_OF_RUNNING, running);
    if (blocked.blocked_ns > 0) write_more(tick, ledger, RECORDING_OF_BLOCKED, blocked);
    return running;
}
