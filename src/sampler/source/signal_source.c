/* Asks running threads for their stacks by a signal from the sampler thread.
 *
 * A signal takes about 10 µs to arrive. A thread that woke up only for a moment is then blocked again, or about to
 * block, and the signal would end its wait with EINTR. A thread that waits for a processor replies when it gets one, at
 * the instruction where it was stopped. SPDX-License-Identifier: MIT */
#include "sampler/kernel/cpu_clock.h"
#include "sampler/source/interpreted_stacks.h"
#include "sampler/source/reply_stack.h"
#include "sampler/source/signal_choice.h"
#include "sampler/source/signal_gate.h"
#include "sampler/source/sources.h"
#include "sampler/source/walk_tables.h"

enum {
    TICKS_WITHOUT_REPLY_MAX = 2, /* ticks of a running thread until it is checked whether it blocks the signal */
};

struct signal_state {
    int number;            /* number of the signal of the request */
    uint32_t ticks_asked;  /* ticks since the last request at which the thread had run */
    bool is_for_wait;      /* true if the reply is for a wait, because a timer measures the CPU time */
    bool waits_at_request; /* true if it was on no processor when it was asked, beside many threads */
    bool is_taken;         /* true if the reply was taken, and the request can be given back */
};

static void give_back(struct source_thread *thread, struct signal_state *own)
{
    if (thread->asked) sample_request_give_back(thread->asked);
    thread->asked = NULL;
    own->is_taken = false;
}

/* Gives up the request to THREAD if it blocks the signal. A thread that gets a processor runs the handler first, unless
 * it blocks the signal, or is in a long system call, at whose end it replies. */
static enum source_offer offer(struct source_tick *tick, struct source_thread *thread, void *state)
{
    struct signal_state *own = state;
    if (!thread->asked) return SOURCE_NO;
    enum request_phase phase = sample_request_phase(thread->asked);
    if (phase == REQUEST_DONE) return SOURCE_HAS;
    if (phase != REQUEST_OPEN || thread->clock_ns <= thread->asked_cpu_ns + tick->period_ns / 4)
        return SOURCE_WILL_HAVE;
    if (++own->ticks_asked % (TICKS_WITHOUT_REPLY_MAX + 1) != 0) return SOURCE_WILL_HAVE;
    if (signal_choose(thread->files).number == own->number) return SOURCE_WILL_HAVE;
    give_back(thread, own);
    if (source_unwritten_ns(thread, thread->clock_ns) >= SOURCE_PERIODS_TO_WAIT * tick->period_ns)
        thread->lost = (struct source_loss){true, RECORDING_LOST_UNANSWERED, thread->clock_ns};
    return SOURCE_DENIED;
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

/* Returns true if THREAD may be inside of a call that sleeps, and a signal would end that call early (poll, after its
 * timeout, returns EINTR), until it has run for a while without going to sleep: a thread that was woken and waits for a
 * processor is still in the call. */
static bool may_be_in_sleep(struct source_thread *thread, uint64_t sleep_count)
{
    if (sleep_count == thread->last_sleep.count)
        return thread->clock_ns < thread->last_sleep.cpu_ns + SOURCE_LASTING_NS;
    thread->last_sleep = (struct seen_sleep){sleep_count, thread->clock_ns};
    return true;
}

/* Sends a request to THREAD. Returns SOURCE_DENIED if it can receive no signal. If it sleeps, in sigwait for example,
 * the request is postponed. On an idle machine a thread that is awake has a processor. On a busy one, and where it is
 * known that the thread waits for one, it is asked only if it was preempted. */
static enum source_offer send(struct source_tick *tick, struct source_thread *thread, struct signal_state *own,
                              bool is_waiting)
{
    walk_tables_prepare(tick);
    struct signal_choice choice = signal_choose(thread->files);
    bool may_sleep = may_be_in_sleep(thread, choice.sleep_count);
    uint64_t now_ns = thread->clock_ns;
    bool waits =
        is_waiting || (tick->is_late && !(thread_cpu_ns(thread->files->tid, &now_ns) && now_ns != thread->clock_ns));
    if (waits && may_sleep) return SOURCE_NO;
    if (choice.number == 0) return SOURCE_DENIED;
    if (choice.is_asleep) {
        (void)thread_awaits_signals(thread->files, thread->clock_ns, &thread->no_signal_until_cpu_ns);
        return SOURCE_NO;
    }
    struct sample_request *request = sample_request_take(thread->files->tid, tick->modules->current, choice.reading);
    if (!request) return SOURCE_NO;
    interpreted_stacks_prepare(request, thread->interpreted);
    tick->counters[RECORDING_SIGNALS]++;
    thread->asked = request;
    thread->asked_cpu_ns = thread->clock_ns;
    timer_note_request(tick, thread);
    *own = (struct signal_state){.number = choice.number, .waits_at_request = tick->is_late && waits};
    if (!signal_gate_send(request, choice.number)) give_back(thread, own);
    return thread->asked ? SOURCE_WILL_HAVE : SOURCE_NO;
}

static enum source_offer ask_unless_asleep(struct source_tick *tick, struct source_thread *thread,
                                           struct signal_state *own)
{
    if (tick->spent->requests++ >= thread->account.requests_max) return SOURCE_NO;
    return send(tick, thread, own, true);
}

/* Asks THREAD, which waits for a processor, for its stack. It replies when it gets a processor; the reply is for that
 * wait if a timer measures its CPU time. A stop in the timer's last record is not enough to ask: the kernel also stops
 * threads that are about to sleep, if another one wakes them at that moment, and a signal ends such a call. */
static enum source_offer ask_for_wait(struct source_tick *tick, struct source_thread *thread, struct signal_state *own)
{
    enum source_offer result = ask_unless_asleep(tick, thread, own);
    bool are_asked = run_queue_waits_are_asked(thread);
    own->is_for_wait = thread->asked && (thread->timer.open || are_asked);
    if (are_asked) run_queue_waits_note_request(tick, thread, thread->asked);
    return result;
}

static enum source_offer want(struct source_tick *tick, struct source_thread *thread, void *state,
                              enum source_need need)
{
    if (need == SOURCE_WHERE_IT_WAITS) return ask_for_wait(tick, thread, state);
    if (need == SOURCE_NOW_UNLESS_ASLEEP) return ask_unless_asleep(tick, thread, state);
    bool is_left_alone = thread->clock_ns < thread->no_signal_until_cpu_ns;
    if (tick->spent->requests >= thread->account.requests_max || is_left_alone) return SOURCE_NO;
    tick->spent->requests++;
    return send(tick, thread, state, false);
}

/* --- The reply ---------------------------------------------------------------------------------------------------- */

/* Gives periods of a timer that sees user code to a reply. Returns false if it stands for none. A reply outside of a
 * system call is a page fault, an interrupt, or a thread that has just left the call. */
static bool accept_for_calls(struct source_tick *tick, struct source_thread *thread, bool was_in_call,
                             bool was_in_long_call, uint64_t *cpu_ns)
{
    struct timer_signals one = {.count = 1, .in_call = was_in_call, .are_all = was_in_long_call};
    if (was_in_long_call) timer_note_request(tick, thread);
    if (!sample_credit_accept(&thread->credit, one, was_in_call, 0)) return false;
    if (thread_cpu_ns(thread->files->tid, cpu_ns)) *cpu_ns = timer_accounted_cpu_ns(tick, thread, *cpu_ns);
    return true;
}

static struct source_stack read_reply(struct source_tick *tick, struct source_thread *thread, struct signal_state *own)
{
    const struct source_stack none = {.kind = SOURCE_STACK_NONE};
    struct source_stack stack = none;
    struct sample_reply *reply = &thread->asked->replies[0];
    bool was_in_call = registers_are_in_call(&reply->registers);
    bool was_in_long_call = /* at the last scan, and before */
        was_in_call && (own->ticks_asked > 0 || clock_signals_meet_long_call(tick, thread));
    stack.cpu_ns = was_in_long_call ? thread->account.cpu_ns : thread->asked_cpu_ns;
    if (!reply_stack_read(tick, thread, reply, stack.cpu_ns, &stack.found)) return none;
    /* The thread ran at the check and slept when it was asked: it did not spend its time where it sleeps. */
    if (registers_are_asleep(&reply->registers)) return none;
    /* Beside many runnable threads, most threads that are asked wait for a processor. One that was woken replies from
     * the call in which it slept, where it spends no CPU time. Where processors are free, a thread that is on none was
     * mostly stopped by the sampler itself, wherever it was. */
    if (own->waits_at_request && threads_sleep_at(reply->registers.values[MACHINE_IP])) {
        stack.kind = SOURCE_STACK_SLEPT;
    } else if (own->is_for_wait) {
        run_queue_waits_note_reply(thread, was_in_call);
        stack.kind = SOURCE_STACK_WAIT;
    } else if (!timer_asks_for_calls(thread) ||
               accept_for_calls(tick, thread, was_in_call, was_in_long_call, &stack.cpu_ns)) {
        stack.kind = SOURCE_STACK_RUNNING;
    }
    return stack;
}

static enum source_offer take(struct source_tick *tick, struct source_thread *thread, void *state,
                              struct source_stack *ret)
{
    struct signal_state *own = state;
    if (own->is_taken) give_back(thread, own);
    if (!thread->asked || sample_request_phase(thread->asked) != REQUEST_DONE) return SOURCE_NO;
    *ret = read_reply(tick, thread, own);
    own->is_taken = true;
    return SOURCE_HAS;
}

static void forget(struct source_tick *tick, struct source_thread *thread, void *state, enum source_end end)
{
    (void)tick;
    if (end == SOURCE_END_GONE) give_back(thread, state);
}

const struct source signal_source = {
    .sight = SOURCE_ASKS,
    .state_bytes = sizeof(struct signal_state),
    .offer = offer,
    .take = take,
    .want = want,
    .forget = forget,
};
