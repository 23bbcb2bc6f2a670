/* Writes what the ledger is told and what it writes to OFFBEAT_TRACE.PID, for test_ledger_replay. Linked into a
 * liboffbeat for tests alone, in which the linker puts these functions (--wrap) in front of the real ones.
 *
 * A line is a call: its name, the number of the thread, then KEY=VALUE of each input that has changed since the
 * thread's last call, all in hexadecimal. Lines that follow belong to it: "?" is an answer to a question of the ledger,
 * ">" a record that it wrote, "=" a state after the call. SPDX-License-Identifier: MIT */
#include "base/kernel.h"
#include "sampler/ledger.h"
#include "sampler/kernel/process_info.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 20, LINE_ROOM = 4096, THREADS = 4096 };

static char path[1024], buffer[BUFFER];
static size_t used;
static bool is_inside, is_in_record;
static pid_t owner; /* thread in the open call; other threads may ask the same questions */

static bool is_in_call(void)
{
    return is_inside && owner == thread_id();
}

/* Inputs and states of a thread, as last written. */
enum { KEYS = 32 };
static const char *const keys[KEYS] = {"mode",   "period",    "start",   "age",    "tick",        "now",     "span",
                                       "before", "stopped",   "starved", "cpu",    "state",       "missing", "number",
                                       "timer",  "preempted", "seen",    "where",  "ends",        "routine", "created",
                                       "first",  "wall",      "lifecpu", "sleeps", "preemptions", "budget"};
static struct traced {
    const struct target_thread *thread;
    uint64_t values[KEYS];
    uint64_t cpu_written_ns, wait_ns, timer_ns;
    bool has_run, has_blocked, is_open;
} threads[THREADS];
static size_t thread_count;

__attribute__((constructor)) static void read_path(void)
{
    const char *text = getenv("OFFBEAT_TRACE");
    if (text && strlen(text) < sizeof(path) - 16) strcpy(path, text);
}

static void put(const char *text)
{
    size_t size = strlen(text);
    if (used + size > sizeof(buffer)) return;
    memcpy(buffer + used, text, size);
    used += size;
}

static void put_number(uint64_t number)
{
    char digits[17];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do digits[--at] = "0123456789abcdef"[number & 15];
    while (number >>= 4);
    put(digits + at);
}

static void put_field(const char *before, uint64_t number)
{
    put(before);
    put_number(number);
}

static void put_double(const char *before, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    put_field(before, bits);
}

static void flush(void)
{
    char full[sizeof(path) + 16];
    char digits[16], *at = digits + sizeof(digits) - 1;
    *at = '\0';
    for (unsigned pid = (unsigned)process_id(); pid > 0; pid /= 10) *--at = (char)('0' + pid % 10);
    strcpy(full, path);
    strcat(full, ".");
    strcat(full, at);
    if (used == 0 || !path[0]) return;
    int file = kernel_open(full, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) (void)kernel_write(file, buffer, used);
    if (file >= 0) kernel_close(file);
    used = 0;
}

static struct traced *traced_of(const struct target_thread *thread, bool begins)
{
    size_t i = 0;
    while (i < thread_count && threads[i].thread != thread) i++;
    if (i < thread_count && begins && threads[i].is_open) {
        threads[i].thread = NULL;
        i = thread_count;
    }
    if (i == THREADS) i = THREADS - 1;
    if (i == thread_count) {
        thread_count++;
        threads[i] = (struct traced){.thread = thread};
    }
    threads[i].is_open |= begins;
    return &threads[i];
}

static void note_outside_changes(struct traced *traced, const struct target_thread *thread)
{
    bool is_new_recording =
        (traced->has_run && !thread->ledger.has_run) || (traced->has_blocked && !thread->ledger.has_blocked);
    if (is_new_recording) put_field("again ", (uint64_t)(traced - threads)), put("\n");
    if (traced->timer_ns && !thread->ledger.preempted_ns && !thread->ledger.has_seen_switch)
        put_field("forget ", (uint64_t)(traced - threads)), put("\n");
}

static void begin(const char *name, const struct sampler *sampler, const struct target_thread *thread, bool opens)
{
    struct traced *traced = traced_of(thread, opens);
    const struct thread_event *life = &thread->life;
    uint64_t values[KEYS] = {0};
    memcpy(values, traced->values, sizeof(values));
    if (used > BUFFER / 2) flush();
    note_outside_changes(traced, thread);
    if (sampler) {
        const uint64_t of_sampler[] = {sampler->options.mode,   sampler->period_ns, sampler->recording_start_ns,
                                       sampler->age_ns,         sampler->tick,      sampler->tick_ns,
                                       sampler->tick_span_ns,   sampler->before_ns, sampler->stopped_ns,
                                       sampler->sampler_starved};
        memcpy(values, of_sampler, sizeof(of_sampler));
        values[26] = sampler->switches_in_tick;
    }
    const uint64_t of_thread[] = {thread->cpu_ns_seen,
                                  thread->state,
                                  thread->is_missing,
                                  thread->number,
                                  thread->timer.control != NULL,
                                  thread->timer.preempted_ns,
                                  thread->timer.has_seen_switch,
                                  thread->waits.are_where_it_runs,
                                  life->ends,
                                  life->routine,
                                  life->created_ns,
                                  life->start_wait_ns,
                                  life->wall_ns,
                                  life->cpu_ns,
                                  life->sleeps,
                                  life->preemptions};
    memcpy(values + 10, of_thread, sizeof(of_thread));
    put(name);
    put_field(" ", (uint64_t)(traced - threads));
    for (size_t i = 0; i < KEYS; i++) {
        if (values[i] == traced->values[i]) continue;
        put(" ");
        put(keys[i]);
        put_field("=", values[i]);
    }
    memcpy(traced->values, values, sizeof(values));
    owner = thread_id();
    is_inside = true;
}

static void end(const struct sampler *sampler, const struct target_thread *thread, uint64_t unseen_ns)
{
    struct traced *traced = traced_of(thread, false);
    const struct ledger *ledger = &thread->ledger;
    is_inside = is_in_record = false;
    uint64_t wait_ns = ledger_unwritten_wait_ns(thread);
    if (ledger->cpu_written_ns != traced->cpu_written_ns || wait_ns != traced->wait_ns) {
        put_field("\n=written ", ledger->cpu_written_ns);
        put_field(" ", wait_ns);
    }
    if (thread->state != traced->values[11]) put_field("\n=state ", thread->state);
    if (sampler && sampler->counters[RECORDING_UNSEEN_WAITS_NS] != unseen_ns)
        put_field("\n=unseen ", sampler->counters[RECORDING_UNSEEN_WAITS_NS] - unseen_ns);
    put("\n");
    traced->values[11] = thread->state;
    traced->cpu_written_ns = ledger->cpu_written_ns;
    traced->wait_ns = wait_ns;
    traced->timer_ns = ledger->preempted_ns + ledger->has_seen_switch;
    traced->has_run = ledger->has_run;
    traced->has_blocked = ledger->has_blocked;
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

static uint64_t unseen_of(const struct sampler *sampler)
{
    return sampler ? sampler->counters[RECORDING_UNSEEN_WAITS_NS] : 0;
}

#define WRAP(name, of, parameters, arguments, more, opens)                                                             \
    void __real_ledger_##name parameters;                                                                              \
    void __wrap_ledger_##name parameters;                                                                              \
    void __wrap_ledger_##name parameters                                                                               \
    {                                                                                                                  \
        uint64_t unseen_ns = unseen_of(of);                                                                            \
        begin(#name, of, thread, opens);                                                                               \
        more;                                                                                                          \
        __real_ledger_##name arguments;                                                                                \
        end(of, thread, unseen_ns);                                                                                    \
    }
#define STACK put_field(" flags=", stack->flags), put_field(" count=", stack->count)

WRAP(open_existing, NULL, (struct target_thread * thread, uint64_t cpu_ns), (thread, cpu_ns),
     put_field(" arg=", cpu_ns), false)
WRAP(open, NULL, (struct target_thread * thread), (thread), (void)0, true)
#define WITH_THREAD struct sampler *sampler, struct target_thread *thread
WRAP(open_forked, sampler, (WITH_THREAD, uint64_t cpu_ns), (sampler, thread, cpu_ns), put_field(" arg=", cpu_ns), false)
WRAP(note_creation, sampler, (WITH_THREAD), (sampler, thread), (void)0, false)
WRAP(begin_tick, sampler, (WITH_THREAD), (sampler, thread), (void)0, false)
WRAP(read_run_queue_wait, sampler, (WITH_THREAD), (sampler, thread), (void)0, false)
WRAP(credit_running, sampler, (WITH_THREAD, uint64_t cpu_ns, const struct found_stack *stack),
     (sampler, thread, cpu_ns, stack), (put_field(" arg=", cpu_ns), STACK), false)
WRAP(credit_wait, sampler, (WITH_THREAD, const struct found_stack *stack), (sampler, thread, stack), STACK, false)
WRAP(credit_blocked, sampler, (WITH_THREAD, const struct found_stack *stack), (sampler, thread, stack), STACK, false)
WRAP(credit_sleep, sampler, (WITH_THREAD, const struct found_stack *stack), (sampler, thread, stack), STACK, false)
WRAP(write_lost, sampler, (WITH_THREAD, uint64_t cpu_ns, enum recording_loss cause), (sampler, thread, cpu_ns, cause),
     (put_field(" arg=", cpu_ns), put_field(" cause=", cause)), false)
WRAP(write_unreadable, sampler, (WITH_THREAD), (sampler, thread), (void)0, false)
WRAP(note_state, sampler, (struct sampler * sampler, const struct target_thread *thread), (sampler, thread), (void)0,
     false)
WRAP(end_tick, sampler, (WITH_THREAD), (sampler, thread), (void)0, false)
WRAP(close, sampler, (WITH_THREAD, uint64_t cpu_ns), (sampler, thread, cpu_ns), put_field(" arg=", cpu_ns), false)
WRAP(close_as_reported, sampler, (WITH_THREAD, uint64_t cpu_ns), (sampler, thread, cpu_ns), put_field(" arg=", cpu_ns),
     false)
WRAP(write_rest, sampler, (WITH_THREAD), (sampler, thread), (void)0, false)

void __real_short_lived_threads_write_rest(struct sampler *sampler);
void __wrap_short_lived_threads_write_rest(struct sampler *sampler);
void __wrap_short_lived_threads_write_rest(struct sampler *sampler)
{
    put("sums\n");
    __real_short_lived_threads_write_rest(sampler);
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

#define ASK(type, name, parameters, arguments, log)                                                                    \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        type answer = __real_##name arguments;                                                                         \
        if (is_in_call()) log;                                                                                         \
        return answer;                                                                                                 \
    }
ASK(bool, thread_read_delay, (struct target_thread * thread, uint64_t *ret_ns), (thread, ret_ns),
    (put_field("\n?delay ", answer), put_field(" ", answer ? *ret_ns : 0)))
ASK(uint64_t, monotonic_ns, (void), (), put_field("\n?clock ", answer))
ASK(bool, context_switches_count_waits, (struct target_thread * thread, struct ended_waits *ret), (thread, ret),
    (put_field("\n?waits ", answer), put_double(" ", answer ? ret->woken : 0),
     put_double(" ", answer ? ret->others : 0)))
ASK(bool, context_switches_count_last_waits, (const struct target_thread *thread, struct ended_waits *ret),
    (thread, ret),
    (put_field("\n?lastwaits ", answer), put_double(" ", answer ? ret->woken : 0),
     put_double(" ", answer ? ret->others : 0)))
ASK(bool, run_queue_waits_are_seen, (const struct sampler *sampler, const struct target_thread *thread),
    (sampler, thread), put_field("\n?observed ", answer))
ASK(uint64_t, timer_switching_ns, (const struct target_thread *thread), (thread), put_field("\n?switching ", answer))

/* --- Records ------------------------------------------------------------------------------------------------------ */

void __real_recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room);
void __wrap_recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room);
void __wrap_recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room)
{
    is_in_record = is_inside;
    if (is_in_record) put_field("\n>", kind);
    __real_recording_begin(writer, kind, room);
}

void __real_recording_number(struct recording_writer *writer, uint64_t number);
void __wrap_recording_number(struct recording_writer *writer, uint64_t number);
void __wrap_recording_number(struct recording_writer *writer, uint64_t number)
{
    if (is_in_record) put_field(" ", number);
    __real_recording_number(writer, number);
}

static void put_time(struct recording_time time)
{
    put_field(" ", time.cpu_ns);
    put_field(" ", time.runnable_ns);
    put_field(" ", time.blocked_ns);
}

void __real_recording_time(struct recording_writer *writer, struct recording_time time);
void __wrap_recording_time(struct recording_writer *writer, struct recording_time time);
void __wrap_recording_time(struct recording_writer *writer, struct recording_time time)
{
    if (is_in_record) put_time(time);
    __real_recording_time(writer, time);
}

#define SAMPLE_PARAMETERS                                                                                              \
    (struct recording_writer * writer, uint32_t thread, struct recording_time time, uint32_t flags,                    \
     const uint64_t *addresses, size_t count, struct recording_stack *last)
void __real_recording_sample SAMPLE_PARAMETERS;
void __wrap_recording_sample SAMPLE_PARAMETERS;
void __wrap_recording_sample SAMPLE_PARAMETERS
{
    if (is_in_call()) {
        put_field("\n>", RECORDING_SAMPLE);
        put_field(" ", thread);
        put_time(time);
        put_field(" ", flags);
        put_field(" ", count);
    }
    __real_recording_sample(writer, thread, time, flags, addresses, count, last);
}

void __real_recording_writer_close(struct recording_writer *writer);
void __wrap_recording_writer_close(struct recording_writer *writer);
void __wrap_recording_writer_close(struct recording_writer *writer)
{
    flush();
    __real_recording_writer_close(writer);
}
