/* SPDX-License-Identifier: MIT */
#include "sampler/run/taken_stacks.h"

#include "base/unsigned.h"
#include "sampler/run/interpreted_threads.h"
#include "sampler/kernel/process_info.h"
#include "sampler/source/remote_unwind.h"
#include "sampler/run/walk_tables.h"
#include "sampler/run/thread_time.h"
#include "sampler/run/timer.h"
#include "sampler/run/run_queue_waits.h"
#include "sampler/run/cpu_clock_timer.h"

/* Walks the stack of SAMPLE. Returns false if it is not available yet, or never will be. A stack in our own handler is
 * not used: the reply has the place that the handler interrupted, and the kernel's copy does not reach there. */
static bool walk_sample(struct sampler *sampler, struct target_thread *thread, const struct perf_timer_sample *sample,
                        struct found_stack *ret_stack)
{
    static uint64_t addresses[RECORDING_FRAMES_MAX]; /* the sampler thread's alone */
    size_t count = 0;
    enum unwind_outcome outcome = UNWIND_PENDING;
    if (sample_requests_hold_stack(sample->registers.values[MACHINE_SP])) return false;
    for (unsigned i = 0; outcome == UNWIND_PENDING && i < MODULES_MAX; i++) {
        if (!timer_walk(sampler, thread, sample, addresses, &count, &outcome)) return false;
        if (outcome != UNWIND_PENDING) break;
        enum modules_result table = walk_table_build(sampler, addresses, count);
        if (table == MODULES_NOTHING) outcome = UNWIND_NO_TABLE;
        if (table != MODULES_LATER) continue;
        walk_table_wait(sampler, thread, thread->ledger.cpu_ns);
        return false;
    }
    if (outcome == UNWIND_PENDING) outcome = UNWIND_NO_TABLE; /* without memory there will never be a table */
    sampler->counters[RECORDING_TIMER_STACKS]++;
    *ret_stack = (struct found_stack){addresses, count, outcome | RECORDING_WITHOUT_SIGNAL};
    return true;
}

/* Writes STACK, where THREAD slept: it has just been woken, and spent no CPU time there. */
static void write_slept(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack)
{
    if (!sampler_is_cpu_mode(sampler)) thread_time_credit_blocked(sampler, thread, true, stack);
}

/* Gives each of NEWS an equal share of the unwritten CPU time up to CPU_NS. A sample on request is taken when THREAD
 * has run for 10 µs: if it was woken and waited for a processor before that, the sample is in the call in which it
 * slept. */
static void write_samples(struct sampler *sampler, struct target_thread *thread, const struct perf_timer_news *news,
                          uint64_t cpu_ns)
{
    struct perf_timer_sample sample;
    struct found_stack stack;
    bool was_asked = timer_was_asked(thread, news);
    for (uint32_t i = 0; i < news->kept_count; i++) {
        uint64_t part_ns = ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) / (news->kept_count - i);
        if (!perf_timer_sample(&thread->perf.timer, news, i, &sample) || !walk_sample(sampler, thread, &sample, &stack))
            continue;
        if (i == 0 && was_asked && threads_sleep_at(sample.registers.values[MACHINE_IP])) {
            write_slept(sampler, thread, &stack);
            timer_sample_soon(sampler, thread);
        } else {
            thread_time_credit_running(sampler, thread, thread->ledger.cpu_written_ns + part_ns, &stack);
        }
    }
}

/* Reads the stack of REPLY by THREAD, which was asked at CPU_NS of its clock. Returns false if it needs a table first.
 */
static bool read_reply(struct sampler *sampler, struct target_thread *thread, struct sample_reply *reply,
                       uint64_t cpu_ns, struct found_stack *ret_stack)
{
    interpreted_threads_finish(sampler, reply);
    *ret_stack = (struct found_stack){reply->addresses, reply->address_count, reply->outcome};
    sampler->counters[RECORDING_ANSWERS]++;
    sampler->counters[RECORDING_ANSWERS_IN_CALL] += registers_are_in_call(&reply->registers);
    if (ret_stack->flags != UNWIND_PENDING) return true;
    enum modules_result table = walk_table_build(sampler, ret_stack->addresses, ret_stack->count);
    if (table != MODULES_NOTHING) walk_table_wait(sampler, thread, cpu_ns);
    thread->scan.ticks_without_table++;
    walk_tables_build_ahead(sampler, thread);
    ret_stack->flags = UNWIND_NO_TABLE;
    return table == MODULES_NOTHING;
}

/* Finds the time that THREAD's replies, some of SIGNALS, stand for. Returns false if there is none. */
static bool find_time_of_signals(struct sampler *sampler, struct target_thread *thread, struct timer_signals signals,
                                 bool was_in_call, struct timer_signals_time *ret_time)
{
    if (timer_sees_user_code(thread) && thread->ledger.records.has_run) {
        timer_note_request(sampler, thread);
        signals = cpu_clock_timer_all_signals(sampler, thread, signals);
        bool is_accepted = sample_credit_accept(&thread->perf.credit, signals, was_in_call,
                                                cpu_clock_timer_open_call_ns(sampler, thread));
        *ret_time =
            (struct timer_signals_time){.cpu_ns = timer_accounted_cpu_ns(sampler, thread, thread->ledger.cpu_ns)};
        return is_accepted;
    }
    *ret_time = cpu_clock_timer_time_of(sampler, thread, signals);
    return true;
}

/* Gives each reply an equal share of the CPU time that SIGNALS stand for, except that of long calls, whose reply is the
 * last one. */
static void write_replies(struct sampler *sampler, struct target_thread *thread, struct timer_signals signals)
{
    struct found_stack stack;
    struct sample_request *request = thread->cpu_clock.request;
    uint32_t short_count = request->reply_count, count = short_count + (request->long_calls.count > 0);
    struct timer_signals_time time = {0};
    bool has_time = false;
    for (uint32_t i = 0; i < count; i++) {
        struct sample_reply *reply = i < short_count ? &request->replies[i] : &request->long_call_reply;
        bool was_in_call = registers_are_in_call(&reply->registers);
        if (!read_reply(sampler, thread, reply, thread->ledger.cpu_ns, &stack)) continue;
        if (!has_time) has_time = find_time_of_signals(sampler, thread, signals, was_in_call, &time);
        if (!has_time) return;
        uint64_t part_ns = ledger_unwritten_cpu_ns(&thread->ledger, time.cpu_ns);
        if (i < short_count) part_ns = difference(part_ns, time.long_calls_ns) / (short_count - i);
        thread_time_credit_running(sampler, thread, thread->ledger.cpu_written_ns + part_ns, &stack);
    }
}

/* Writes the stacks that THREAD's CPU clock has taken since the previous scan, if it has such a timer. */
static void write_timer_replies(struct sampler *sampler, struct target_thread *thread)
{
    struct timer_signals signals;
    if (!thread->cpu_clock.request || !sample_request_hold(thread->cpu_clock.request, &signals)) return;
    sampler->counters[RECORDING_SIGNALS] += signals.count;
    write_replies(sampler, thread, signals);
    if (timer_sees_user_code(thread) && sample_credit_periods_between(&thread->perf.credit) > 0) {
        cpu_clock_timer_forget(thread);
        return;
    }
    sample_request_prefer(thread->cpu_clock.request, timer_preferred_origin(thread));
    sample_request_release(thread->cpu_clock.request);
}

void taken_stacks_credit(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                         const struct found_stack *of_wait)
{
    struct perf_timer_news news;
    struct perf_timer_sample stop;
    struct found_stack found;
    bool has_samples = timer_fetch(sampler, thread, &news) > 0;
    thread_time_read_delay(sampler, thread);
    run_queue_waits_note(sampler, thread, ledger_unwritten_wait_ns(&thread->ledger));
    if (!of_wait && run_queue_waits_fetch_stop(sampler, thread, &stop) && walk_sample(sampler, thread, &stop, &found))
        of_wait = &found;
    if (of_wait) thread_time_credit_wait(sampler, thread, of_wait);
    if (has_samples && timer_sees_user_code(thread)) cpu_ns = timer_accounted_cpu_ns(sampler, thread, cpu_ns);
    if (has_samples) write_samples(sampler, thread, &news, cpu_ns);
    write_timer_replies(sampler, thread);
}

static void take_reply(struct sampler *sampler, struct target_thread *thread, struct sample_request *request)
{
    struct found_stack stack;
    struct sample_reply *reply = &request->replies[0];
    bool was_in_call = registers_are_in_call(&reply->registers);
    bool was_in_long_call = /* at the last scan, and before */
        was_in_call && (thread->signal.ticks_asked > 0 || cpu_clock_timer_meets_long_call(sampler, thread));
    uint64_t cpu_ns = was_in_long_call ? thread->ledger.cpu_ns : thread->signal.cpu_ns_at_request;
    if (!read_reply(sampler, thread, reply, cpu_ns, &stack)) return;
    /* The thread ran at the check and slept when it was asked: it did not spend its time where it sleeps. */
    if (registers_are_asleep(&reply->registers)) return;
    /* Beside many runnable threads, most threads that are asked wait for a processor. One that was woken replies from
     * the call in which it slept, where it spends no CPU time. Where processors are free, a thread that is on none was
     * mostly stopped by the sampler itself, wherever it was. */
    if (thread->signal.waits_at_request && threads_sleep_at(reply->registers.values[MACHINE_IP])) {
        write_slept(sampler, thread, &stack);
        return;
    }
    if (thread->signal.is_for_wait) {
        run_queue_waits_note_reply(thread, was_in_call);
        taken_stacks_credit(sampler, thread, thread->ledger.cpu_ns, &stack);
        return;
    }
    if (timer_sees_user_code(thread) && thread->ledger.records.has_run) {
        /* A reply outside of a system call is a page fault, an interrupt, or a thread that has just left the call. */
        if (was_in_long_call) timer_note_request(sampler, thread);
        struct timer_signals one = {.count = 1, .in_call = was_in_call, .are_all = was_in_long_call};
        if (!sample_credit_accept(&thread->perf.credit, one, was_in_call, 0)) return;
        if (thread_cpu_ns(thread->files.tid, &cpu_ns)) cpu_ns = timer_accounted_cpu_ns(sampler, thread, cpu_ns);
    }
    thread_time_credit_running(sampler, thread, cpu_ns, &stack);
}

void taken_stacks_fetch_replies(struct sampler *sampler)
{
    if (sample_requests_used() == 0) return;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        if (!thread->request || sample_request_phase(thread->request) != REQUEST_DONE) continue;
        take_reply(sampler, thread, thread->request);
        sample_request_give_back(thread->request);
        thread->request = NULL;
    }
}
