/* Replays what ledgers of real programs were told (test/ledger_trace), and compares what they write then, record by
 * record. SPDX-License-Identifier: MIT */
#include "sampler/ledger.h"
#include "sampler/kernel/process_info.h"
#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, LINES = 256, LINE = 512 };

static struct sampler sampler;
static struct target_thread threads[THREADS];

/* --- The lines of a call ------------------------------------------------------------------------------------------ */

static char call[LINE], lines[LINES][LINE], written[LINES][LINE];
static size_t line_count, written_count, answer_at;

static void put(const char *text)
{
    if (written_count < LINES) (void)snprintf(written[written_count++], LINE, "%s", text);
}

static void add(uint64_t number)
{
    char *line = written[written_count - 1];
    size_t size = strlen(line);
    (void)snprintf(line + size, LINE - size, " %lx", (unsigned long)number);
}

static uint64_t field(const char *name, uint64_t otherwise)
{
    char key[32];
    (void)snprintf(key, sizeof(key), " %s=", name);
    const char *at = strstr(call, key);
    return at ? strtoull(at + strlen(key), NULL, 16) : otherwise;
}

/* Reads the numbers of the next answer NAME. Returns false if the ledger was not asked then. */
static bool answer(const char *name, uint64_t *numbers, size_t count)
{
    for (; answer_at < line_count; answer_at++) {
        const char *line = lines[answer_at];
        if (line[0] != '?') continue;
        if (strncmp(line + 1, name, strlen(name)) != 0) break;
        const char *at = line + 1 + strlen(name);
        char *end = NULL;
        for (size_t i = 0; i < count; i++, at = end) numbers[i] = strtoull(at, &end, 16);
        answer_at++;
        return true;
    }
    put("? (a question that was not asked then)");
    return false;
}

/* --- In the place of the kernel and of the recording -------------------------------------------------------------- */

bool thread_read_delay(struct target_thread *thread, uint64_t *ret_ns)
{
    uint64_t numbers[2] = {0};
    (void)thread;
    if (!answer("delay", numbers, 2) || !numbers[0]) return false;
    *ret_ns = numbers[1];
    return true;
}

uint64_t monotonic_ns(void)
{
    uint64_t now_ns = 0;
    (void)answer("clock", &now_ns, 1);
    return now_ns;
}

static bool answer_waits(const char *name, struct ended_waits *ret)
{
    uint64_t numbers[3] = {0};
    if (!answer(name, numbers, 3) || !numbers[0]) return false;
    memcpy(&ret->woken, &numbers[1], sizeof(double));
    memcpy(&ret->others, &numbers[2], sizeof(double));
    return true;
}

bool context_switches_count_waits(struct target_thread *thread, struct ended_waits *ret)
{
    (void)thread;
    return answer_waits("waits", ret);
}

bool context_switches_count_last_waits(const struct target_thread *thread, struct ended_waits *ret)
{
    (void)thread;
    return answer_waits("lastwaits", ret);
}

bool run_queue_waits_are_seen(const struct sampler *unused, const struct target_thread *thread)
{
    uint64_t is_seen = 0;
    (void)unused, (void)thread;
    (void)answer("observed", &is_seen, 1);
    return is_seen;
}

uint64_t timer_switching_ns(const struct target_thread *thread)
{
    uint64_t ns = 0;
    (void)thread;
    (void)answer("switching", &ns, 1);
    return ns;
}

struct short_lived_sums *short_lived_routine(struct sampler *unused, uint64_t routine)
{
    struct short_lived_threads *lives = &sampler.short_lived_threads;
    (void)unused;
    for (size_t i = 0; i < lives->routine_count; i++) {
        if (lives->routines[i].routine == routine) return &lives->routines[i];
    }
    CHECK(lives->routine_count < SHORT_LIVED_ROUTINES - 1);
    lives->routines[lives->routine_count] = (struct short_lived_sums){.routine = routine};
    return &lives->routines[lives->routine_count++];
}

void recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room)
{
    char text[16];
    (void)writer, (void)room;
    (void)snprintf(text, sizeof(text), ">%x", kind);
    put(text);
}

void recording_number(struct recording_writer *writer, uint64_t number)
{
    (void)writer;
    add(number);
}

void recording_time(struct recording_writer *writer, struct recording_time time)
{
    (void)writer;
    add(time.cpu_ns), add(time.runnable_ns), add(time.blocked_ns);
}

void recording_sample(struct recording_writer *writer, uint32_t thread, struct recording_time time, uint32_t flags,
                      const uint64_t *addresses, size_t count, struct recording_stack *last)
{
    (void)addresses, (void)last;
    recording_begin(writer, RECORDING_SAMPLE, 0);
    add(thread);
    recording_time(writer, time);
    add(flags), add(count);
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

/* Inputs of a thread as of its last call. Keys that a call leaves out have not changed since. */
static struct inputs {
    uint64_t mode, period, start, age, tick, now, span, before, stopped, starved, budget;
    uint64_t written, wait;
} inputs[THREADS];

static void set_sampler(struct inputs *values)
{
#define KEEP(name) values->name = field(#name, values->name)
    KEEP(mode), KEEP(period), KEEP(start), KEEP(age), KEEP(tick), KEEP(now), KEEP(span), KEEP(before), KEEP(stopped);
    KEEP(starved), KEEP(budget);
    sampler.options.mode = (enum recording_mode)values->mode;
    sampler.period_ns = values->period;
    sampler.recording_start_ns = values->start;
    sampler.age_ns = values->age;
    sampler.tick = (uint32_t)values->tick;
    sampler.tick_ns = values->now;
    sampler.tick_span_ns = values->span;
    sampler.before_ns = values->before;
    sampler.stopped_ns = values->stopped;
    sampler.sampler_starved = values->starved;
    sampler.switches_in_tick = (uint32_t)values->budget;
}

static void set_thread(struct target_thread *thread)
{
    struct thread_event *life = &thread->life;
    thread->cpu_ns_seen = field("cpu", thread->cpu_ns_seen);
    thread->state = (enum thread_state)field("state", thread->state);
    thread->is_missing = field("missing", thread->is_missing);
    thread->number = (uint32_t)field("number", thread->number);
    thread->timer.control = field("timer", thread->timer.control != NULL) ? (void *)&sampler : NULL;
    thread->timer.preempted_ns = field("preempted", thread->timer.preempted_ns);
    thread->timer.has_seen_switch = field("seen", thread->timer.has_seen_switch);
    thread->waits.are_where_it_runs = field("where", thread->waits.are_where_it_runs);
    life->ends = (uint32_t)field("ends", life->ends);
    life->routine = field("routine", life->routine);
    life->created_ns = field("created", life->created_ns);
    life->start_wait_ns = field("first", life->start_wait_ns);
    life->wall_ns = field("wall", life->wall_ns);
    life->cpu_ns = field("lifecpu", life->cpu_ns);
    life->sleeps = field("sleeps", life->sleeps);
    life->preemptions = field("preemptions", life->preemptions);
}

static void make_call(struct target_thread *thread)
{
    static const uint64_t addresses[RECORDING_FRAMES_MAX];
    struct found_stack stack = {addresses, field("count", 0), (uint32_t)field("flags", 0)};
    uint64_t cpu_ns = field("arg", 0);
    size_t name_size = strcspn(call, " ");
#define IS(name) (name_size == strlen(name) && strncmp(call, name, name_size) == 0)
    if (IS("open_existing"))
        ledger_open_existing(thread, cpu_ns);
    else if (IS("open"))
        ledger_open(thread);
    else if (IS("open_forked"))
        ledger_open_forked(&sampler, thread, cpu_ns);
    else if (IS("note_creation"))
        ledger_note_creation(&sampler, thread);
    else if (IS("begin_tick"))
        ledger_begin_tick(&sampler, thread);
    else if (IS("read_run_queue_wait"))
        ledger_read_run_queue_wait(&sampler, thread);
    else if (IS("credit_running"))
        ledger_credit_running(&sampler, thread, cpu_ns, &stack);
    else if (IS("credit_wait"))
        ledger_credit_wait(&sampler, thread, &stack);
    else if (IS("credit_blocked"))
        ledger_credit_blocked(&sampler, thread, &stack);
    else if (IS("credit_sleep"))
        ledger_credit_sleep(&sampler, thread, &stack);
    else if (IS("write_lost"))
        ledger_write_lost(&sampler, thread, cpu_ns, (enum recording_loss)field("cause", 0));
    else if (IS("write_unreadable"))
        ledger_write_unreadable(&sampler, thread);
    else if (IS("note_state"))
        ledger_note_state(&sampler, thread);
    else if (IS("end_tick"))
        ledger_end_tick(&sampler, thread);
    else if (IS("close"))
        ledger_close(&sampler, thread, cpu_ns);
    else if (IS("close_as_reported"))
        ledger_close_as_reported(&sampler, thread, cpu_ns);
    else if (IS("write_rest"))
        ledger_write_rest(&sampler, thread);
    else if (IS("again"))
        thread->ledger.has_blocked = thread->ledger.has_run = thread->ledger.has_written_routine = false;
    else if (IS("forget"))
        thread->ledger.preempted_ns = thread->ledger.has_seen_switch = 0;
    else
        CHECK(false);
}

/* Writes the states that the call has changed. */
static void put_states(struct target_thread *thread, struct inputs *values, enum thread_state state, uint64_t unseen_ns)
{
    uint64_t wait_ns = ledger_unwritten_wait_ns(thread);
    if (thread->ledger.cpu_written_ns != values->written || wait_ns != values->wait) {
        put("=written");
        add(thread->ledger.cpu_written_ns), add(wait_ns);
    }
    values->written = thread->ledger.cpu_written_ns;
    values->wait = wait_ns;
    if (thread->state != state) put("=state"), add(thread->state);
    uint64_t *counted_ns = &sampler.counters[RECORDING_UNSEEN_WAITS_NS];
    if (*counted_ns != unseen_ns) put("=unseen"), add(*counted_ns - unseen_ns);
}

static bool is_as_expected(void)
{
    size_t at = 0;
    for (size_t i = 0; i < line_count; i++) {
        if (lines[i][0] == '?') continue;
        if (at == written_count || strcmp(lines[i], written[at++]) != 0) return false;
    }
    return at == written_count;
}

static bool replay_call(void)
{
    const char *at = strchr(call, ' ');
    if (!at) { /* "sums": those of the routines are written and begin again */
        memset(&sampler.short_lived_threads, 0, sizeof(sampler.short_lived_threads));
        return true;
    }
    size_t number = strtoull(at, NULL, 16);
    CHECK(number < THREADS);
    struct target_thread *thread = &threads[number % THREADS];
    struct inputs *values = &inputs[number % THREADS];
    set_sampler(values);
    set_thread(thread);
    enum thread_state state = thread->state;
    uint64_t unseen_ns = sampler.counters[RECORDING_UNSEEN_WAITS_NS];
    written_count = answer_at = 0;
    make_call(thread);
    put_states(thread, values, state, unseen_ns);
    return is_as_expected();
}

static void print_difference(const char *path, size_t number)
{
    printf("# %s, call %zu: %s\n", path, number, call);
    for (size_t i = 0; i < line_count; i++) printf("#   traced:   %s\n", lines[i]);
    for (size_t i = 0; i < written_count; i++) printf("#   replayed: %s\n", written[i]);
}

/* Replays PATH up to the first difference. Returns the number of calls. */
static size_t replay(const char *path)
{
    char next[LINE] = "";
    size_t count = 0;
    FILE *file = fopen(path, "r");
    memset(&sampler, 0, sizeof(sampler));
    memset(threads, 0, sizeof(threads));
    memset(inputs, 0, sizeof(inputs));
    bool has_next = file && fgets(next, sizeof(next), file);
    for (bool is_equal = true; has_next && is_equal; count++) {
        next[strcspn(next, "\n")] = '\0';
        strcpy(call, next);
        line_count = written_count = 0;
        while ((has_next = fgets(next, sizeof(next), file)) && strchr("?>=", next[0])) {
            next[strcspn(next, "\n")] = '\0';
            CHECK(line_count < LINES);
            strcpy(lines[line_count++ % LINES], next);
        }
        is_equal = replay_call();
        if (!is_equal) print_difference(path, count);
        CHECK(is_equal);
    }
    if (file) fclose(file);
    return count;
}

TEST(ledgers_write_what_they_wrote_in_real_programs)
{
    enum { SITUATIONS_MIN = 20, CALLS_MIN = 10 };
    glob_t found;
    CHECK(glob(OFFBEAT_LEDGER_TRACES "/*.trace", 0, NULL, &found) == 0);
    CHECK(found.gl_pathc >= SITUATIONS_MIN);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        size_t count = replay(found.gl_pathv[i]);
        printf("# %s: %zu calls\n", strrchr(found.gl_pathv[i], '/') + 1, count);
        CHECK(count >= CALLS_MIN);
    }
    globfree(&found);
}

TEST_MAIN()
