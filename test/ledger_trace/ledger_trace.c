/* Writes what the ledger is told and what it writes to OFFBEAT_TRACE.PID, for test_ledger_replay. Linked into a
 * liboffbeat for tests alone, in which the linker puts these functions (--wrap) in front of the real ones.
 *
 * A line is a call: its name, the number of the thread, then KEY=VALUE of each input that has changed since the
 * thread's last call, all in hexadecimal. Lines that follow belong to it: "?" is an observation,
 * ">" a record that it wrote, "=" a state after the call. SPDX-License-Identifier: MIT */
#include "base/kernel.h"
#include "sampler/run/sampler_state.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 20, LINE_ROOM = 4096, THREADS = 4096 };

static char path[1024], buffer[BUFFER];
static size_t used;
static bool is_inside, is_in_record;
static pid_t owner; /* thread in the open call; other threads may ask the same questions */

static bool is_in_call(void)
{
    return is_inside && owner == kernel_thread_id();
}

/* Inputs and states of a thread, as last written. */
enum { KEYS = 26, STATE = 11 };
static const char *const keys[KEYS] = {"mode",   "period",    "start",   "age",    "tick",       "now",     "span",
                                       "before", "stopped",   "starved", "cpu",    "state",      "missing", "number",
                                       "timer",  "preempted", "seen",    "where",  "ends",       "routine", "created",
                                       "first",  "wall",      "lifecpu", "sleeps", "preemptions"};
static struct traced {
    const struct ledger *ledger;
    uint64_t values[KEYS];
    uint64_t cpu_written_ns, wait_ns;
    bool is_open;
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
    for (unsigned pid = (unsigned)kernel_process_id(); pid > 0; pid /= 10) *--at = (char)('0' + pid % 10);
    strcpy(full, path);
    strcat(full, ".");
    strcat(full, at);
    if (used == 0 || !path[0]) return;
    int file = kernel_open(full, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) (void)kernel_write(file, buffer, used);
    if (file >= 0) kernel_close(file);
    used = 0;
}

static struct traced *traced_of(const struct ledger *ledger, bool begins)
{
    size_t i = 0;
    while (i < thread_count && threads[i].ledger != ledger) i++;
    if (i < thread_count && begins && threads[i].is_open) {
        threads[i].ledger = NULL;
        i = thread_count;
    }
    if (i == THREADS) i = THREADS - 1;
    if (i == thread_count) {
        thread_count++;
        threads[i] = (struct traced){.ledger = ledger};
    }
    threads[i].is_open |= begins;
    return &threads[i];
}

static void gather(const struct ledger_tick *tick, const struct ledger *ledger, uint64_t values[KEYS])
{
    const struct thread_event *life = &ledger->life;
    if (tick) {
        const uint64_t of_tick[] = {
            tick->mode,     tick->period_ns, tick->recording_start_ns, values[3],        tick->number,
            tick->start_ns, tick->span_ns,   tick->before_ns,          tick->stopped_ns, tick->is_starved};
        memcpy(values, of_tick, sizeof(of_tick));
    }
    values[10] = ledger->cpu_ns;
    values[STATE] = ledger->state;
    values[13] = ledger->records.number;
    const uint64_t of_life[] = {life->ends,    life->routine, life->created_ns, life->start_wait_ns,
                                life->wall_ns, life->cpu_ns,  life->sleeps,     life->preemptions};
    memcpy(values + 18, of_life, sizeof(of_life));
}

static void set_timer(const struct ledger_timer *timer, uint64_t values[KEYS])
{
    values[14] = timer->is_there;
    values[15] = timer->preempted_ns;
    values[16] = timer->has_seen_switch;
}

/* Writes the first line of a call. TIMER and ENDING are inputs of some calls, NULL for the others. */
static void begin(const char *name, const struct ledger_tick *tick, const struct ledger *ledger,
                  const struct ledger_timer *timer, const struct ledger_end *ending)
{
    struct traced *traced = traced_of(ledger, strcmp(name, "open") == 0);
    uint64_t values[KEYS];
    memcpy(values, traced->values, sizeof(values));
    if (used > BUFFER / 2) flush();
    gather(tick, ledger, values);
    if (timer) set_timer(timer, values);
    if (ending) {
        values[12] = ending->is_missing;
        values[14] = ending->has_timer;
    }
    put(name);
    put_field(" ", (uint64_t)(traced - threads));
    for (size_t i = 0; i < KEYS; i++) {
        if (values[i] == traced->values[i]) continue;
        put(" ");
        put(keys[i]);
        put_field("=", values[i]);
    }
    memcpy(traced->values, values, sizeof(values));
    owner = kernel_thread_id();
    is_inside = true;
}

static void end(const struct ledger *ledger, uint64_t where_it_ran_ns)
{
    struct traced *traced = traced_of(ledger, false);
    is_inside = is_in_record = false;
    uint64_t wait_ns = ledger_unwritten_wait_ns(ledger);
    if (ledger->cpu_written_ns != traced->cpu_written_ns || wait_ns != traced->wait_ns) {
        put_field("\n=written ", ledger->cpu_written_ns);
        put_field(" ", wait_ns);
    }
    if (ledger->state != traced->values[STATE]) put_field("\n=state ", ledger->state);
    if (where_it_ran_ns > 0) put_field("\n=unseen ", where_it_ran_ns);
    put("\n");
    traced->values[STATE] = ledger->state;
    traced->cpu_written_ns = ledger->cpu_written_ns;
    traced->wait_ns = wait_ns;
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

#define WRAP(name, parameters, arguments, tick, timer, ending, more)                                                   \
    void __real_ledger_##name parameters;                                                                              \
    void __wrap_ledger_##name parameters;                                                                              \
    void __wrap_ledger_##name parameters                                                                               \
    {                                                                                                                  \
        begin(#name, tick, ledger, timer, ending);                                                                     \
        more;                                                                                                          \
        __real_ledger_##name arguments;                                                                                \
        end(ledger, 0);                                                                                                \
    }
#define WRAP_TIME(name, parameters, arguments, ending, more)                                                           \
    struct recording_time __real_ledger_##name parameters;                                                             \
    struct recording_time __wrap_ledger_##name parameters;                                                             \
    struct recording_time __wrap_ledger_##name parameters {                                                            \
        begin(#name, tick, ledger, NULL, ending);                                                                      \
        more;                                                                                                          \
        struct recording_time time = __real_ledger_##name arguments;                                                   \
        end(ledger, strcmp(#name, "credit_wait") == 0 ? 0 : time.runnable_ns);                                         \
        return time;                                                                                                   \
    }
#define WRAP_BLOCKED(name)                                                                                             \
    uint64_t __real_ledger_##name(LEDGER, uint64_t switching_ns, const struct found_stack *stack);                     \
    uint64_t __wrap_ledger_##name(LEDGER, uint64_t switching_ns, const struct found_stack *stack);                     \
    uint64_t __wrap_ledger_##name(LEDGER, uint64_t switching_ns, const struct found_stack *stack)                      \
    {                                                                                                                  \
        begin(#name, tick, ledger, NULL, NULL);                                                                        \
        STACK;                                                                                                         \
        put_field("\n?switching ", switching_ns);                                                                      \
        uint64_t written_ns = __real_ledger_##name(tick, ledger, switching_ns, stack);                                 \
        end(ledger, 0);                                                                                                \
        return written_ns;                                                                                             \
    }
#define LEDGER const struct ledger_tick *tick, struct ledger *ledger
#define STACK (put_field(" flags=", stack->flags), put_field(" count=", stack->count))
#define SIMPLE(name) WRAP(name, (LEDGER), (tick, ledger), tick, NULL, NULL, (void)0)

static void put_waits(const char *name, const struct ended_waits *waits)
{
    put(name);
    put_field(" ", waits != NULL);
    put_double(" ", waits ? waits->woken : 0);
    put_double(" ", waits ? waits->others : 0);
}

static void put_delay(const struct ledger_delay *delay)
{
    put_field("\n?delay 1 ", delay->ns);
    put_field("\n?clock ", delay->read_ns);
    if (delay->waits) put_waits("\n?waits", delay->waits);
}

WRAP(open_existing, (struct ledger * ledger, uint64_t cpu_ns), (ledger, cpu_ns), NULL, NULL, NULL,
     put_field(" arg=", cpu_ns))
WRAP(open, (struct ledger * ledger), (ledger), NULL, NULL, NULL, (void)0)
WRAP(open_forked, (LEDGER, uint64_t cpu_ns, uint64_t age_ns), (tick, ledger, cpu_ns, age_ns), tick, NULL, NULL,
     (put_field(" arg=", cpu_ns), put_field(" age=", age_ns)))
WRAP(begin_recording, (struct ledger * ledger, uint32_t number), (ledger, number), NULL, NULL, NULL,
     put_field(" arg=", number))
WRAP(forget_timer, (struct ledger * ledger), (ledger), NULL, NULL, NULL, (void)0)
SIMPLE(note_creation)
SIMPLE(begin_tick)
SIMPLE(write_unreadable)
SIMPLE(end_tick)
WRAP(note_state, (const struct ledger_tick *tick, const struct ledger *ledger), (tick, ledger), tick, NULL, NULL,
     (void)0)
WRAP(note_delay, (LEDGER, const struct ledger_delay *delay), (tick, ledger, delay), tick, &delay->timer, NULL,
     put_delay(delay))
WRAP(write_lost, (LEDGER, uint64_t cpu_ns, enum recording_loss cause), (tick, ledger, cpu_ns, cause), tick, NULL, NULL,
     (put_field(" arg=", cpu_ns), put_field(" cause=", cause)))
WRAP_TIME(credit_running, (LEDGER, uint64_t cpu_ns, bool is_observed, const struct found_stack *stack),
          (tick, ledger, cpu_ns, is_observed, stack), NULL,
          (put_field(" arg=", cpu_ns), STACK, put_field("\n?observed ", is_observed)))
WRAP_TIME(credit_wait, (LEDGER, const struct found_stack *stack), (tick, ledger, stack), NULL, STACK)
WRAP_BLOCKED(credit_blocked)
WRAP_BLOCKED(credit_sleep)
WRAP_TIME(close, (LEDGER, const struct ledger_end *ending), (tick, ledger, ending), ending,
          put_field(" arg=", ending->unseen_cpu_ns))
WRAP_TIME(close_as_reported, (LEDGER, const struct ledger_end *ending), (tick, ledger, ending), ending,
          (put_field(" arg=", ending->unseen_cpu_ns), put_waits("\n?lastwaits", ending->waits)))
WRAP_TIME(write_rest, (LEDGER, bool has_timer), (tick, ledger, has_timer), NULL, put_field(" timer=", has_timer))

void __real_short_lived_threads_write_rest(struct sampler *sampler);
void __wrap_short_lived_threads_write_rest(struct sampler *sampler);
void __wrap_short_lived_threads_write_rest(struct sampler *sampler)
{
    put("sums\n");
    __real_short_lived_threads_write_rest(sampler);
}

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
