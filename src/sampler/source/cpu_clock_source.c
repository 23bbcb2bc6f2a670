/* Threads that run, where the kernel grants no perf timer: in most containers, and for ordinary users of Debian and
 * Ubuntu. A signal from the sampler thread comes from another processor, is seen some 10 to 80 µs later, mostly in the
 * thread's next system call, and ends that call if it sleeps. A timer on the thread's CPU clock has neither fault
 * (sample_requests.h). It goes off at the kernel's ticks only, mostly each 4 ms, and these meet a thread with the same
 * chance at each instant of its CPU time, unless it is in step with them. One of the signals between two scans is
 * chosen at random and stands for all of them; each stands for the time between two ticks. So no place has more weight
 * because the thread sleeps before or after it. If the ticks do not meet the thread, the sampler thread sends signals.
 * SPDX-License-Identifier: MIT */
#include "base/kernel.h"
#include "base/plain_text.h"
#include "base/seccomp_filter.h"
#include "base/unsigned.h"
#include "sampler/source/interpreted_stacks.h"
#include "sampler/source/reply_stack.h"
#include "sampler/source/signal_choice.h"
#include "sampler/source/signal_gate.h"
#include "sampler/source/sources.h"
#include "sampler/source/walk_tables.h"

#include <sys/utsname.h>

enum {
    KEPT_SIGNALS = 4,       /* difference between the signals and the CPU time that chance explains, signals */
    UNCOVERED_SIGNALS = 10, /* signals that may be missing before the sampler thread sends some, too */
};

/* Replies of the observed thread that were not taken yet. */
struct untaken_replies {
    struct timer_signals signals;
    uint32_t next, count;
    uint64_t cpu_ns;        /* the thread's CPU clock up to which they stand for unwritten time, ns */
    uint64_t long_calls_ns; /* the part of that time in long calls, ns */
    bool has_time;          /* true if the two are known */
    bool is_unread;         /* true if the request was not held since it was observed */
    bool are_held;          /* true until the request is released */
};

static struct untaken_replies untaken;

struct cpu_clock_state {
    int number; /* number of its signal */
    enum stack_reading reading;
    uint32_t checked_tick; /* last tick that checked its timer */
    uint64_t checked_ns;   /* last check whether it may be sent signals, CLOCK_MONOTONIC */
    uint64_t start_cpu_ns; /* CPU time when the timer was started, or some µs less, ns */
    int64_t asleep_ns;     /* least value of asleep_ns since it was last seen asleep, ns */
};

/* Returns true for Linux 5.9 and newer: an older kernel sends the signal in the interrupt, and could end a wait that
 * the thread is about to begin. */
static bool has_deferred_timers(void)
{
    enum { MAJOR = 5, MINOR = 9 };
    struct utsname system = {0};
    if (kernel_call3(SYS_uname, kernel_address(&system), 0, 0) != 0) return false;
    const char *at = system.release;
    uint64_t major = plain_parse(&at, 10);
    if (*at == '.') at++;
    return major > MAJOR || (major == MAJOR && plain_parse(&at, 10) >= MINOR);
}

/* Returns the CPU time that a signal stands for, a multiple of the kernel's tick. Where the kernel ticks more often
 * than each 4 ms, signals at each tick would cost more than they are worth: some in a period are enough. */
static uint64_t timer_signal_length(const struct source_tick *tick)
{
    enum { SIGNALS_IN_5_PERIODS = 12, MOST_NS = 4000000 };
    uint64_t wanted_ns = least(tick->period_ns * 5 / SIGNALS_IN_5_PERIODS, MOST_NS);
    uint64_t ticks = tick->limits->kernel_tick_ns ? wanted_ns / tick->limits->kernel_tick_ns : 0;
    return ticks > 1 ? ticks * tick->limits->kernel_tick_ns : tick->limits->kernel_tick_ns;
}

/* Returns the interval of the timer, which goes off at the first tick after it. A short interval makes it go off at
 * each tick, even if the thread runs for less than a tick at a time. */
static uint64_t interval_ns(const struct source_tick *tick)
{
    enum { SHORT_NS = 100000 };
    return tick->limits->signal_ns > tick->limits->kernel_tick_ns
               ? tick->limits->signal_ns - tick->limits->kernel_tick_ns / 2
               : SHORT_NS;
}

static uint32_t signals_in_period(const struct source_tick *tick)
{
    return (uint32_t)greatest(1, tick->period_ns / tick->limits->signal_ns);
}

static void prepare(struct source_tick *tick)
{
    struct timespec resolution = {0};
    tick->limits->kernel_tick_ns = 0;
    if (!filter_allows(FILTER_TIMERS) || !has_deferred_timers()) return;
    (void)kernel_call3(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, kernel_address(&resolution), 0);
    tick->limits->kernel_tick_ns = (uint64_t)resolution.tv_nsec;
    tick->limits->signal_ns = tick->counters[RECORDING_CLOCK_TICK_NS] = timer_signal_length(tick);
}

static void give_back(struct source_thread *thread)
{
    if (thread->clock) sample_request_give_back(thread->clock);
    thread->clock = NULL;
}

static void forget(struct source_tick *tick, struct source_thread *thread, void *state, enum source_end end)
{
    (void)tick, (void)state, (void)end;
    give_back(thread);
}

/* --- The timer ---------------------------------------------------------------------------------------------------- */

/* Returns true if THREAD should have such a timer: it can have no other one, or one that is blind to system calls in
 * which it spent time. */
static bool is_wanted(const struct source_tick *tick, struct source_thread *thread)
{
    if (thread->clock || tick->limits->kernel_tick_ns == 0) return false;
    if (timer_sees_user_code(thread)) return thread->account.has_run && timer_wants_reply(tick, thread);
    return timer_is_denied(tick, thread);
}

/* Starts the timer of THREAD: it hands over its stack at the kernel's ticks. Does nothing if the thread cannot be sent
 * a signal. */
static void arm(struct source_tick *tick, struct source_thread *thread, struct cpu_clock_state *own)
{
    if (thread->clock_ns < thread->no_signal_until_cpu_ns) return;
    struct signal_choice choice = signal_choose(thread->files);
    if (choice.number == 0 ||
        (choice.is_asleep && thread_awaits_signals(thread->files, thread->clock_ns, &thread->no_signal_until_cpu_ns)))
        return;
    struct sample_request *request = sample_request_take(thread->files->tid, tick->modules->current, choice.reading);
    if (!request) return;
    interpreted_stacks_prepare(request, thread->interpreted);
    thread->clock = request;
    *own = (struct cpu_clock_state){.number = choice.number,
                                    .reading = choice.reading,
                                    .checked_tick = tick->number,
                                    .checked_ns = tick->start_ns,
                                    .start_cpu_ns = thread->clock_ns,
                                    .asleep_ns = own->asleep_ns};
    clock_signals_note(tick, thread, 0);
    timer_note_cpu_clock_start(tick, thread);
    sample_request_prefer(request, timer_preferred_origin(thread));
    struct request_timing timing = {.interval_ns = interval_ns(tick), .signals_a_reply = signals_in_period(tick)};
    /* Where another timer sees user code, the number of signals says how long a call was (clock_signals_all), and no
     * call is a long one. */
    uint64_t long_call_ns = timer_sees_user_code(thread) ? 0 : LONG_CALL_SIGNALS * tick->limits->signal_ns;
    timing.long_call_intervals = (uint32_t)((long_call_ns + timing.interval_ns - 1) / timing.interval_ns);
    if (!signal_gate_arm(request, choice.number, timing)) give_back(thread);
}

static enum source_offer want(struct source_tick *tick, struct source_thread *thread, void *state,
                              enum source_need need)
{
    if (need == SOURCE_FOR_CPU_TIME && is_wanted(tick, thread) &&
        tick->spent->requests++ < thread->account.requests_max) {
        walk_tables_prepare(tick);
        arm(tick, thread, state);
    }
    return thread->clock ? SOURCE_WILL_HAVE : SOURCE_NO;
}

/* Ends the timer of THREAD if it can be sent no signal. The state that is checked before each other signal
 * (signal_choice.h) can change while the timer runs. */
static void check(struct source_tick *tick, struct source_thread *thread, struct cpu_clock_state *own)
{
    enum { EVERY_NS = 50000000 };
    bool was_checked = own->checked_tick == tick->number;
    own->checked_tick = tick->number;
    if (!thread->clock || was_checked) return;
    if (!sample_request_is_armed(thread->clock) || signal_handler_user(own->number) != SIGNAL_OF_SAMPLER) {
        give_back(thread);
        return;
    }
    if (tick->start_ns < own->checked_ns + EVERY_NS) return;
    struct signal_choice choice = signal_choose(thread->files);
    own->checked_ns = tick->start_ns;
    bool has_changed = choice.number != own->number || choice.reading != own->reading;
    if (has_changed || (choice.is_asleep &&
                        thread_awaits_signals(thread->files, thread->account.cpu_ns, &thread->no_signal_until_cpu_ns)))
        give_back(thread);
}

/* Says whether CPU time needs no signal from the sampler thread. If the kernel's ticks do not meet the thread, it does.
 */
static enum source_offer offer(struct source_tick *tick, struct source_thread *thread, void *state)
{
    check(tick, thread, state);
    if (!thread->clock) return SOURCE_NO;
    bool has_begun = thread->account.has_run || !thread->account.is_first_scan;
    uint64_t most_ns = UNCOVERED_SIGNALS * tick->limits->signal_ns + tick->period_ns;
    return has_begun && source_unwritten_ns(thread, thread->clock_ns) <= most_ns ? SOURCE_WILL_HAVE : SOURCE_NO;
}

/* Returns the time that THREAD neither ran nor waited, plus a constant, ns. A wait is counted at its end, so this falls
 * when a wait ends, and then grows only when the thread sleeps. */
static int64_t asleep_ns(const struct source_tick *tick, const struct source_thread *thread)
{
    return (int64_t)(tick->start_ns - thread->account.cpu_ns - thread->account.delay_ns);
}

/* Returns true if the timer has seen everything: in wall-clock mode, THREAD has not slept. */
static bool has_run_on(const struct source_tick *tick, const struct source_thread *thread, struct cpu_clock_state *own)
{
    enum { OPEN_WAIT_NS_MAX = 16000000 };
    if (run_queue_waits_are_asked(thread)) return false;
    if (tick->mode == RECORDING_CPU) return true;
    int64_t more_ns = asleep_ns(tick, thread) - own->asleep_ns;
    if (more_ns >= 0 && more_ns <= OPEN_WAIT_NS_MAX) return true;
    own->asleep_ns += more_ns;
    return more_ns < 0;
}

/* Returns the number of periods for which there is room for replies. */
static uint64_t room(struct source_tick *tick, struct source_thread *thread, void *state)
{
    if (!thread->clock || thread->timer.open || !has_run_on(tick, thread, state)) return 0;
    return REPLIES_MAX * signals_in_period(tick) * tick->limits->signal_ns / tick->period_ns;
}

/* --- Its replies -------------------------------------------------------------------------------------------------- */

/* Returns the CPU time that SIGNALS stand for. It may differ from the CPU clock by the time of some signals, but the
 * difference must not grow. The time after the last signal may be of a long call that continues. */
static uint64_t weight_ns(const struct source_tick *tick, const struct source_thread *thread,
                          const struct cpu_clock_state *own, struct timer_signals signals)
{
    uint64_t met_cpu_ns = own->start_cpu_ns + signals.intervals * thread->clock->timer.timing.interval_ns;
    uint64_t met_ns = source_unwritten_ns(thread, least(met_cpu_ns, thread->account.cpu_ns));
    uint64_t signals_ns = signals.count * tick->limits->signal_ns,
             least_ns = difference(met_ns, KEPT_SIGNALS * tick->limits->signal_ns);
    return greatest(least_ns, least(signals_ns, source_unwritten_ns(thread, thread->account.cpu_ns)));
}

/* Returns the part of ALL_NS that is of long calls. Each other signal is worth a tick, and long calls have the rest, as
 * far as the timer confirms it. Ticks also miss a thread that has slept: then all signals are worth the same. */
static uint64_t long_calls_ns(const struct source_tick *tick, const struct source_thread *thread,
                              struct timer_signals signals, uint64_t all_ns)
{
    const struct long_calls_total *calls = &thread->clock->long_calls;
    if (calls->count == 0) return 0;
    uint64_t equal_ns = all_ns / signals.count * calls->count;
    if (clock_signals_missed_sleep(tick, thread)) return equal_ns;
    uint64_t rest_ns = difference(all_ns, (signals.count - calls->count) * tick->limits->signal_ns);
    return greatest(equal_ns, least(rest_ns, calls->intervals * thread->clock->timer.timing.interval_ns));
}

/* Finds the time that the replies of THREAD stand for. Returns false if there is none. */
static bool find_time(struct source_tick *tick, struct source_thread *thread, const struct cpu_clock_state *own,
                      bool was_in_call)
{
    if (timer_asks_for_calls(thread)) {
        timer_note_request(tick, thread);
        struct timer_signals all = clock_signals_all(tick, thread, untaken.signals);
        bool is_accepted =
            sample_credit_accept(&thread->credit, all, was_in_call, clock_signals_open_call_ns(tick, thread));
        untaken.cpu_ns = timer_accounted_cpu_ns(tick, thread, thread->account.cpu_ns);
        return is_accepted;
    }
    uint64_t ns = weight_ns(tick, thread, own, untaken.signals);
    untaken.cpu_ns = thread->account.written_cpu_ns + ns;
    untaken.long_calls_ns = long_calls_ns(tick, thread, untaken.signals, ns);
    clock_signals_note(tick, thread, 0);
    return true;
}

static void release(struct source_thread *thread)
{
    untaken.are_held = false;
    if (timer_sees_user_code(thread) && sample_credit_periods_between(&thread->credit) > 0) {
        give_back(thread);
        return;
    }
    sample_request_prefer(thread->clock, timer_preferred_origin(thread));
    sample_request_release(thread->clock);
}

static void observe(struct source_tick *tick, struct source_thread *thread, void *state)
{
    (void)tick, (void)thread, (void)state;
    untaken = (struct untaken_replies){.is_unread = true};
}

/* Holds the replies of THREAD until all are taken. Returns false if there are none. */
static bool hold(struct source_tick *tick, const struct source_thread *thread)
{
    if (untaken.are_held) return true;
    bool is_unread = untaken.is_unread;
    untaken.is_unread = false;
    if (!is_unread || !thread->clock || !sample_request_hold(thread->clock, &untaken.signals)) return false;
    tick->counters[RECORDING_SIGNALS] += untaken.signals.count;
    untaken.count = thread->clock->reply_count + (thread->clock->long_calls.count > 0);
    untaken.are_held = true;
    return true;
}

/* Gives each reply an equal share of the CPU time that the signals stand for, except that of long calls, whose reply is
 * the last one. */
static enum source_offer take(struct source_tick *tick, struct source_thread *thread, void *state,
                              struct source_stack *ret)
{
    *ret = (struct source_stack){0};
    if (!hold(tick, thread)) return SOURCE_NO;
    struct sample_request *request = thread->clock;
    uint32_t i = untaken.next++, short_count = request->reply_count;
    if (i == untaken.count) {
        release(thread);
        return SOURCE_NO;
    }
    struct sample_reply *reply = i < short_count ? &request->replies[i] : &request->long_call_reply;
    bool was_in_call = registers_are_in_call(&reply->registers);
    if (!reply_stack_read(tick, thread, reply, thread->account.cpu_ns, &ret->found)) return SOURCE_HAS;
    if (!untaken.has_time) untaken.has_time = find_time(tick, thread, state, was_in_call);
    if (!untaken.has_time) {
        untaken.next = untaken.count; /* the replies stand for no time */
        return SOURCE_HAS;
    }
    uint64_t part_ns = source_unwritten_ns(thread, untaken.cpu_ns);
    if (i < short_count) part_ns = difference(part_ns, untaken.long_calls_ns) / (short_count - i);
    ret->kind = SOURCE_STACK_RUNNING;
    ret->cpu_ns = thread->account.written_cpu_ns + part_ns;
    return SOURCE_HAS;
}

const struct source cpu_clock_source = {
    .sight = SOURCE_SEES_RUNNING,
    .state_bytes = sizeof(struct cpu_clock_state),
    .prepare = prepare,
    .offer = offer,
    .observe = observe,
    .take = take,
    .want = want,
    .room = room,
    .forget = forget,
};
