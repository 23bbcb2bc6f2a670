/* SPDX-License-Identifier: MIT */
#include "sampler/run/signal_source.h"

#include "sampler/run/interpreted_threads.h"
#include "sampler/run/policy.h"
#include "sampler/source/remote_unwind.h"
#include "sampler/source/signal_choice.h"
#include "sampler/source/signal_gate.h"
#include "sampler/run/walk_tables.h"
#include "sampler/run/timer.h"
#include "sampler/run/run_queue_waits.h"

/* Opens a timer for THREAD, which cannot receive a signal. A thread that blocks signals for a moment, for example while
 * it starts, gets time: its next stack counts for the CPU time until then. */
static void do_without_signal(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    timer_note_busy(sampler, thread);
    if (ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) < POLICY_PERIODS_TO_WAIT * sampler->tick.period_ns) return;
    bool is_in_kernel = timer_sees_user_code(thread);
    if (is_in_kernel) {
        timer_note_request(sampler, thread);
        sample_credit_give_up(&thread->perf.credit);
        cpu_ns = timer_accounted_cpu_ns(sampler, thread, cpu_ns);
    }
    ledger_write_lost(&sampler->tick, &thread->ledger, cpu_ns,
                      is_in_kernel ? RECORDING_LOST_IN_KERNEL : RECORDING_LOST_UNANSWERED);
}

void signal_source_watch(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    if (sample_request_phase(thread->request) != REQUEST_OPEN) return;
    if (cpu_ns <= thread->signal.cpu_ns_at_request + sampler->tick.period_ns / 4) return;
    if (++thread->signal.ticks_asked % (POLICY_TICKS_WITHOUT_REPLY_MAX + 1) != 0) return;
    if (signal_choose(&thread->files).number == thread->signal.number) return;
    sample_request_give_back(thread->request);
    thread->request = NULL;
    if (ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) >= POLICY_PERIODS_TO_WAIT * sampler->tick.period_ns)
        ledger_write_lost(&sampler->tick, &thread->ledger, cpu_ns, RECORDING_LOST_UNANSWERED);
}

bool signal_source_is_in_sigwait(struct target_thread *thread, uint64_t cpu_ns)
{
    if (!thread_awaits_signals(&thread->files)) return false;
    thread->signal.none_until_cpu_ns = cpu_ns + LEFT_ALONE_NS;
    return true;
}

/* Returns true if THREAD may be inside of a call that sleeps, and a signal would end that call early (poll, after its
 * timeout, returns EINTR), until it has run for a while without going to sleep: a thread that was woken and waits for a
 * processor is still in the call. */
static bool may_be_in_sleep(struct target_thread *thread, uint64_t cpu_ns, uint64_t sleep_count)
{
    if (sleep_count == thread->signal.sleep_count) return cpu_ns < thread->signal.cpu_ns_at_sleep + POLICY_LASTING_NS;
    thread->signal.sleep_count = sleep_count;
    thread->signal.cpu_ns_at_sleep = cpu_ns;
    return true;
}

/* Sends a request to THREAD. If it can receive no signal, its time may be lost. If it sleeps, in sigwait for example,
 * the request is postponed. On an idle machine a thread that is awake has a processor. On a busy one, and where it is
 * known that the thread waits for one, it is asked only if it was preempted. */
static void send_request(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns, bool is_waiting)
{
    walk_tables_prepare(sampler);
    struct signal_choice choice = signal_choose(&thread->files);
    bool may_sleep = may_be_in_sleep(thread, cpu_ns, choice.sleep_count);
    uint64_t now_cpu_ns = cpu_ns;
    bool waits = is_waiting || (sampler->schedule.is_late &&
                                !(thread_cpu_ns(thread->files.tid, &now_cpu_ns) && now_cpu_ns != cpu_ns));
    if (waits && may_sleep) return;
    if (choice.number == 0) {
        do_without_signal(sampler, thread, cpu_ns);
        return;
    }
    if (choice.is_asleep) {
        (void)signal_source_is_in_sigwait(thread, cpu_ns); /* if so, no signal is sent for a while */
        return;
    }
    struct sample_request *request = sample_request_take(thread->files.tid, sampler->modules.current, choice.reading);
    if (!request) return;
    interpreted_threads_prepare(request, thread);
    sampler->counters[RECORDING_SIGNALS]++;
    thread->request = request;
    thread->signal.number = choice.number;
    thread->signal.cpu_ns_at_request = cpu_ns;
    timer_note_request(sampler, thread);
    thread->signal.ticks_asked = 0;
    thread->signal.is_for_wait = false;
    thread->signal.waits_at_request = sampler->schedule.is_late && waits;
    if (!signal_gate_send(request, choice.number)) {
        thread->request = NULL;
        sample_request_give_back(request);
    }
}

void signal_source_ask(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    uint32_t requests_max = policy_requests_max(sampler, thread);
    if (sampler->spent.requests >= requests_max || cpu_ns < thread->signal.none_until_cpu_ns) return;
    sampler->spent.requests++;
    send_request(sampler, thread, cpu_ns, false);
}

void signal_source_ask_unless_asleep(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    if (sampler->spent.requests++ < policy_requests_max(sampler, thread)) send_request(sampler, thread, cpu_ns, true);
}

void signal_source_ask_for_wait(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    signal_source_ask_unless_asleep(sampler, thread, cpu_ns);
    thread->signal.is_for_wait = thread->request && (thread->perf.timer.control || run_queue_waits_are_asked(thread));
    if (run_queue_waits_are_asked(thread)) run_queue_waits_note_request(sampler, thread, thread->request);
}
