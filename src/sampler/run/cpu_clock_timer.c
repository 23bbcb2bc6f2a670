/* Threads that run, where the kernel grants no perf timer: in most containers, and for ordinary users of Debian and
 * Ubuntu. A signal from the sampler thread comes from another processor, is seen some 10 to 80 µs later, mostly in the
 * thread's next system call, and ends that call if it sleeps. A timer on the thread's CPU clock has neither fault
 * (sample_requests.h). It goes off at the kernel's ticks only, mostly each 4 ms, and these meet a thread with the same
 * chance at each instant of its CPU time, unless it is in step with them. One of the signals between two scans is
 * chosen at random and stands for all of them; each stands for the time between two ticks. So no place has more weight
 * because the thread sleeps before or after it. If the ticks do not meet the thread, the sampler thread sends signals.
 * SPDX-License-Identifier: MIT */
#include "sampler/run/cpu_clock_timer.h"

#include "sampler/run/run_queue_waits.h"
#include "sampler/run/signal_source.h"
#include "sampler/run/timer.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "base/seccomp_filter.h"
#include "base/unsigned.h"
#include "sampler/run/interpreted_threads.h"
#include "sampler/ledger/ledger.h"
#include "sampler/source/remote_unwind.h"
#include "sampler/source/signal_choice.h"
#include "sampler/source/signal_gate.h"
#include "sampler/source/sample_requests.h"

#include <sys/utsname.h>

enum {
    KEPT_SIGNALS = 4,       /* signals by which their number may differ from the CPU time, by chance */
    UNCOVERED_SIGNALS = 10, /* signals that may be missing before the sampler thread sends some, too */
    LONG_CALL_SIGNALS = 2,  /* length of a long call, in ticks */
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
static uint64_t timer_signal_length(const struct sampler *sampler)
{
    enum { SIGNALS_IN_5_PERIODS = 12, MOST_NS = 4000000 };
    uint64_t wanted_ns = least(sampler->tick.period_ns * 5 / SIGNALS_IN_5_PERIODS, MOST_NS);
    uint64_t ticks = sampler->timers.kernel_tick_ns ? wanted_ns / sampler->timers.kernel_tick_ns : 0;
    return ticks > 1 ? ticks * sampler->timers.kernel_tick_ns : sampler->timers.kernel_tick_ns;
}

/* Returns the interval of the timer, which goes off at the first tick after it. A short interval makes it go off at
 * each tick, even if the thread runs for less than a tick at a time. */
static uint64_t interval_ns(const struct sampler *sampler)
{
    enum { SHORT_NS = 100000 };
    return sampler->timers.signal_ns > sampler->timers.kernel_tick_ns
               ? sampler->timers.signal_ns - sampler->timers.kernel_tick_ns / 2
               : SHORT_NS;
}

static uint32_t signals_in_period(const struct sampler *sampler)
{
    return (uint32_t)greatest(1, sampler->tick.period_ns / sampler->timers.signal_ns);
}

void cpu_clock_timer_prepare(struct sampler *sampler)
{
    struct timespec tick = {0};
    sampler->timers.kernel_tick_ns = 0;
    if (!filter_allows(FILTER_TIMERS) || !has_deferred_timers()) return;
    (void)kernel_call3(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, kernel_address(&tick), 0);
    sampler->timers.kernel_tick_ns = (uint64_t)tick.tv_nsec;
    sampler->timers.signal_ns = sampler->counters[RECORDING_CLOCK_TICK_NS] = timer_signal_length(sampler);
}

bool cpu_clock_timer_is_wanted(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    if (thread->cpu_clock.request || sampler->timers.kernel_tick_ns == 0) return false;
    if (timer_sees_user_code(thread))
        return thread->ledger.records.has_run && timer_wants_reply(sampler, thread, cpu_ns);
    return timer_is_denied(sampler, thread);
}

static void note_reading(const struct sampler *sampler, struct target_thread *thread, uint64_t uncovered_ns)
{
    thread->cpu_clock.read_at = (struct timer_signals_reading){thread->ledger.cpu_ns, thread->ledger.waits.delay_ns,
                                                               sampler->tick.start_ns, uncovered_ns};
}

/* Returns true if THREAD has slept since the previous reading: it has not run all the time, apart from waits for a
 * processor.
 */
static bool has_slept(const struct sampler *sampler, const struct target_thread *thread)
{
    const struct timer_signals_reading *before = &thread->cpu_clock.read_at;
    uint64_t ran_ns = thread->ledger.cpu_ns - before->cpu_ns, span_ns = sampler->tick.start_ns - before->tick_ns;
    return ran_ns + (thread->ledger.waits.delay_ns - before->wait_ns) < span_ns - span_ns / 16;
}

/* Returns the CPU time of THREAD up to the last scan that COUNT signals, all since the previous reading, do not stand
 * for. However many ticks meet a thread in a call, the signal comes once, at the call's end. For a thread that has
 * slept this is unknown, and 0. */
static uint64_t uncovered_ns(const struct sampler *sampler, const struct target_thread *thread, uint32_t count)
{
    const struct timer_signals_reading *before = &thread->cpu_clock.read_at;
    uint64_t ran_ns = thread->ledger.cpu_ns - before->cpu_ns;
    return has_slept(sampler, thread) ? 0
                                      : difference(before->uncovered_ns + ran_ns, count * sampler->timers.signal_ns);
}

struct timer_signals cpu_clock_timer_all_signals(const struct sampler *sampler, struct target_thread *thread,
                                                 struct timer_signals signals)
{
    uint64_t ns = uncovered_ns(sampler, thread, signals.count);
    uint32_t unseen = signals.in_call > 0 ? (uint32_t)(ns / sampler->timers.signal_ns) : 0;
    note_reading(sampler, thread,
                 signals.in_call > 0 ? 0 : least(ns, thread->ledger.cpu_ns - thread->cpu_clock.read_at.cpu_ns));
    signals.count += unseen;
    signals.in_call += unseen;
    return signals;
}

uint64_t cpu_clock_timer_open_call_ns(const struct sampler *sampler, const struct target_thread *thread)
{
    uint64_t ns = thread->cpu_clock.read_at.uncovered_ns;
    return ns >= LONG_CALL_SIGNALS * sampler->timers.signal_ns ? ns : 0;
}

bool cpu_clock_timer_meets_long_call(const struct sampler *sampler, const struct target_thread *thread)
{
    bool are_counted = thread->cpu_clock.request && timer_sees_user_code(thread); /* only then the reading is noted */
    return are_counted && uncovered_ns(sampler, thread, 0) >= LONG_CALL_SIGNALS * sampler->timers.signal_ns;
}

void cpu_clock_timer_arm(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    if (cpu_ns < thread->signal.none_until_cpu_ns) return;
    struct signal_choice choice = signal_choose(&thread->files);
    if (choice.number == 0 || (choice.is_asleep && signal_source_is_in_sigwait(thread, cpu_ns))) return;
    struct sample_request *request = sample_request_take(thread->files.tid, sampler->modules.current, choice.reading);
    if (!request) return;
    interpreted_threads_prepare(request, thread);
    thread->cpu_clock.request = request;
    thread->cpu_clock.number = choice.number;
    thread->cpu_clock.reading = choice.reading;
    thread->cpu_clock.checked_ns = sampler->tick.start_ns;
    thread->cpu_clock.start_cpu_ns = cpu_ns;
    note_reading(sampler, thread, 0);
    timer_note_cpu_clock_start(sampler, thread);
    sample_request_prefer(request, timer_preferred_origin(thread));
    struct request_timing timing = {.interval_ns = interval_ns(sampler), .signals_a_reply = signals_in_period(sampler)};
    /* Where another timer sees user code, the number of signals says how long a call was (cpu_clock_timer_all_signals),
     * and no call is a long one. */
    uint64_t long_call_ns = timer_sees_user_code(thread) ? 0 : LONG_CALL_SIGNALS * sampler->timers.signal_ns;
    timing.long_call_intervals = (uint32_t)((long_call_ns + timing.interval_ns - 1) / timing.interval_ns);
    if (!signal_gate_arm(request, choice.number, timing)) cpu_clock_timer_forget(thread);
}

void cpu_clock_timer_check(struct sampler *sampler, struct target_thread *thread)
{
    enum { EVERY_NS = 50000000 };
    if (!thread->cpu_clock.request) return;
    if (!sample_request_is_armed(thread->cpu_clock.request) ||
        signal_handler_user(thread->cpu_clock.number) != SIGNAL_OF_SAMPLER) {
        cpu_clock_timer_forget(thread);
        return;
    }
    /* The state that is checked before each other signal (signal_choice.h) can change while the timer runs. */
    if (sampler->tick.start_ns < thread->cpu_clock.checked_ns + EVERY_NS) return;
    struct signal_choice choice = signal_choose(&thread->files);
    thread->cpu_clock.checked_ns = sampler->tick.start_ns;
    bool has_changed = choice.number != thread->cpu_clock.number || choice.reading != thread->cpu_clock.reading;
    if (has_changed || (choice.is_asleep && signal_source_is_in_sigwait(thread, thread->ledger.cpu_ns)))
        cpu_clock_timer_forget(thread);
}

uint64_t cpu_clock_timer_room(const struct sampler *sampler)
{
    return REPLIES_MAX * signals_in_period(sampler) * sampler->timers.signal_ns / sampler->tick.period_ns;
}

/* Returns the time that THREAD neither ran nor waited, plus a constant, ns. A wait is counted at its end, so this falls
 * when a wait ends, and then grows only when the thread sleeps. */
static int64_t asleep_ns(const struct sampler *sampler, const struct target_thread *thread)
{
    return (int64_t)(sampler->tick.start_ns - thread->ledger.cpu_ns - thread->ledger.waits.delay_ns);
}

bool cpu_clock_timer_has_run_on(const struct sampler *sampler, struct target_thread *thread)
{
    enum { OPEN_WAIT_NS_MAX = 16000000 };
    if (run_queue_waits_are_asked(thread)) return false;
    if (sampler->tick.mode == RECORDING_CPU) return true;
    int64_t more_ns = asleep_ns(sampler, thread) - thread->cpu_clock.asleep_ns;
    if (more_ns >= 0 && more_ns <= OPEN_WAIT_NS_MAX) return true;
    thread->cpu_clock.asleep_ns += more_ns;
    return more_ns < 0;
}

bool cpu_clock_timer_is_late(const struct sampler *sampler, const struct target_thread *thread, uint64_t unwritten_ns)
{
    return unwritten_ns > UNCOVERED_SIGNALS * sampler->timers.signal_ns + sampler->tick.period_ns;
}

/* Returns the CPU time that SIGNALS stand for. It may differ from the CPU clock by the time of some signals, but the
 * difference must not grow. The time after the last signal may be of a long call that continues. */
static uint64_t weight_ns(const struct sampler *sampler, const struct target_thread *thread,
                          struct timer_signals signals)
{
    uint64_t met_cpu_ns =
        thread->cpu_clock.start_cpu_ns + signals.intervals * thread->cpu_clock.request->timing.interval_ns;
    uint64_t met_ns = ledger_unwritten_cpu_ns(&thread->ledger, least(met_cpu_ns, thread->ledger.cpu_ns));
    uint64_t signals_ns = signals.count * sampler->timers.signal_ns,
             least_ns = difference(met_ns, KEPT_SIGNALS * sampler->timers.signal_ns);
    return greatest(least_ns, least(signals_ns, ledger_unwritten_cpu_ns(&thread->ledger, thread->ledger.cpu_ns)));
}

/* Returns the part of ALL_NS that is of long calls. Each other signal is worth a tick, and long calls have the rest, as
 * far as the timer confirms it. Ticks also miss a thread that has slept: then all signals are worth the same. */
static uint64_t long_calls_ns(const struct sampler *sampler, const struct target_thread *thread,
                              struct timer_signals signals, uint64_t all_ns)
{
    const struct long_calls_total *calls = &thread->cpu_clock.request->long_calls;
    if (calls->count == 0) return 0;
    uint64_t equal_ns = all_ns / signals.count * calls->count;
    if (has_slept(sampler, thread)) return equal_ns;
    uint64_t rest_ns = difference(all_ns, (signals.count - calls->count) * sampler->timers.signal_ns);
    return greatest(equal_ns, least(rest_ns, calls->intervals * thread->cpu_clock.request->timing.interval_ns));
}

struct timer_signals_time cpu_clock_timer_time_of(const struct sampler *sampler, struct target_thread *thread,
                                                  struct timer_signals signals)
{
    uint64_t ns = weight_ns(sampler, thread, signals);
    struct timer_signals_time time = {.cpu_ns = thread->ledger.cpu_written_ns + ns,
                                      .long_calls_ns = long_calls_ns(sampler, thread, signals, ns)};
    note_reading(sampler, thread, 0);
    return time;
}

void cpu_clock_timer_forget(struct target_thread *thread)
{
    if (thread->cpu_clock.request) sample_request_give_back(thread->cpu_clock.request);
    thread->cpu_clock.request = NULL;
}

void cpu_clock_timer_forget_all(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->threads.count; i++) cpu_clock_timer_forget(sampler->threads.items[i].thread);
}

bool cpu_clock_timer_renew_all(struct sampler *sampler)
{
    uint32_t renewed = 0;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        if (thread->cpu_clock.request && sample_request_renew(thread->cpu_clock.request, sampler->modules.current))
            renewed++;
    }
    return renewed == sample_requests_used();
}
