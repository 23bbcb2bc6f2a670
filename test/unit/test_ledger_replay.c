/* Replays what ledgers of real programs were told (test/ledger_trace), and compares what they write then, record by
 * record. SPDX-License-Identifier: MIT */
#include "sampler/ledger/recording_sink.h"
#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, LINES = 256, LINE = 512 };

static struct routine_table routines;
static struct ledger_sink sink;
static struct ledger_tick tick;
static struct ledger ledgers[THREADS];
static struct ledger_timer timers[THREADS]; /* timers, as of the last call */
static bool are_where_they_run[THREADS], are_missing[THREADS];
static uint64_t unseen_waits_ns;

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

/* --- In the place of the recording -------------------------------------------------------------------------------- */

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
    uint64_t mode, period, start, age, tick, now, span, before, stopped, starved;
    uint64_t written, wait;
} inputs[THREADS];

static void set_tick(struct inputs *values)
{
#define KEEP(name) values->name = field(#name, values->name)
    KEEP(mode), KEEP(period), KEEP(start), KEEP(age), KEEP(tick), KEEP(now), KEEP(span), KEEP(before), KEEP(stopped);
    KEEP(starved);
    tick = (struct ledger_tick){
        .mode = (enum recording_mode)values->mode,
        .period_ns = values->period,
        .recording_start_ns = values->start,
        .number = (uint32_t)values->tick,
        .start_ns = values->now,
        .span_ns = values->span,
        .before_ns = values->before,
        .stopped_ns = values->stopped,
        .is_starved = values->starved,
        .sink = &sink,
        .routines = &routines,
    };
}

static void set_thread(size_t number)
{
    struct ledger *ledger = &ledgers[number];
    struct ledger_timer *timer = &timers[number];
    struct thread_event *life = &ledger->life;
    ledger->cpu_ns = field("cpu", ledger->cpu_ns);
    ledger->state = (enum ledger_state)field("state", ledger->state);
    ledger->records.number = (uint32_t)field("number", ledger->records.number);
    are_missing[number] = field("missing", are_missing[number]);
    are_where_they_run[number] = field("where", are_where_they_run[number]);
    timer->is_there = field("timer", timer->is_there);
    timer->preempted_ns = field("preempted", timer->preempted_ns);
    timer->has_seen_switch = field("seen", timer->has_seen_switch);
    life->ends = (uint32_t)field("ends", life->ends);
    life->routine = field("routine", life->routine);
    life->created_ns = field("created", life->created_ns);
    life->start_wait_ns = field("first", life->start_wait_ns);
    life->wall_ns = field("wall", life->wall_ns);
    life->cpu_ns = field("lifecpu", life->cpu_ns);
    life->sleeps = field("sleeps", life->sleeps);
    life->preemptions = field("preemptions", life->preemptions);
}

static const struct ended_waits *answer_waits(const char *name, struct ended_waits *ret)
{
    uint64_t numbers[3] = {0};
    if (!answer(name, numbers, 3) || !numbers[0]) return NULL;
    memcpy(&ret->woken, &numbers[1], sizeof(double));
    memcpy(&ret->others, &numbers[2], sizeof(double));
    return ret;
}

static bool has_answer(const char *name)
{
    for (size_t i = 0; i < line_count; i++) {
        if (lines[i][0] == '?' && strncmp(lines[i] + 1, name, strlen(name)) == 0) return true;
    }
    return false;
}

/* Notes the delay that was read, if it was. The counts of switches are limited in a tick, so the trace may lack them.
 */
static void note_delay(size_t number)
{
    uint64_t numbers[2] = {0}, read_ns = 0;
    struct ended_waits waits;
    if (!has_answer("delay") || !answer("delay", numbers, 2) || !numbers[0]) return;
    (void)answer("clock", &read_ns, 1);
    struct ledger_delay delay = {.ns = numbers[1], .read_ns = read_ns, .timer = timers[number]};
    if (has_answer("waits")) {
        CHECK(ledger_wants_waits(&ledgers[number], delay.ns, &delay.timer));
        delay.waits = answer_waits("waits", &waits);
    }
    ledger_note_delay(&tick, &ledgers[number], &delay);
}

static struct recording_time close_ledger(size_t number, uint64_t unseen_cpu_ns, bool is_reported)
{
    struct ended_waits waits;
    struct ledger_end end = {unseen_cpu_ns, timers[number].is_there, are_missing[number], NULL};
    if (!is_reported) return ledger_close(&tick, &ledgers[number], &end);
    ledger_note_creation(&tick, &ledgers[number]);
    if (has_answer("lastwaits")) end.waits = answer_waits("lastwaits", &waits);
    return ledger_close_as_reported(&tick, &ledgers[number], &end);
}

static uint64_t number_answer(const char *name)
{
    uint64_t number = 0;
    (void)answer(name, &number, 1);
    return number;
}

static bool is_call(const char *name)
{
    size_t size = strcspn(call, " ");
    return size == strlen(name) && strncmp(call, name, size) == 0;
}

/* Makes a call that gives time to a stack, or to none. Returns what was written for where the thread ran. */
static struct recording_time credit(size_t number)
{
    static const uint64_t addresses[RECORDING_FRAMES_MAX];
    struct found_stack stack = {addresses, field("count", 0), (uint32_t)field("flags", 0)};
    struct ledger *ledger = &ledgers[number];
    uint64_t cpu_ns = field("arg", 0);
    if (is_call("credit_running"))
        return ledger_credit_running(&tick, ledger, cpu_ns, number_answer("observed"), &stack);
    if (is_call("credit_wait"))
        (void)ledger_credit_wait(&tick, ledger, &stack);
    else if (is_call("credit_blocked"))
        (void)ledger_credit_blocked(&tick, ledger, number_answer("switching"), &stack);
    else if (is_call("credit_sleep"))
        (void)ledger_credit_sleep(&tick, ledger, number_answer("switching"), &stack);
    else if (is_call("write_lost"))
        ledger_write_lost(&tick, ledger, cpu_ns, (enum recording_loss)field("cause", 0));
    else if (is_call("write_unreadable"))
        ledger_write_unreadable(&tick, ledger);
    else
        CHECK(false);
    return (struct recording_time){0};
}

/* Makes a call at the end of the thread or of the recording. Returns false if the call is another one. */
static bool end(size_t number, struct recording_time *ret_time)
{
    uint64_t unseen_cpu_ns = field("arg", 0);
    if (is_call("write_rest"))
        *ret_time = ledger_write_rest(&tick, &ledgers[number], timers[number].is_there);
    else if (is_call("close") || is_call("close_as_reported"))
        *ret_time = close_ledger(number, unseen_cpu_ns, is_call("close_as_reported"));
    else
        return false;
    return true;
}

static void make_call(size_t number)
{
    struct ledger *ledger = &ledgers[number];
    struct recording_time time = {0};
    if (is_call("open_existing"))
        ledger_open_existing(ledger, field("arg", 0));
    else if (is_call("open"))
        ledger_open(ledger);
    else if (is_call("open_forked"))
        ledger_open_forked(&tick, ledger, field("arg", 0), inputs[number].age);
    else if (is_call("note_creation"))
        ledger_note_creation(&tick, ledger);
    else if (is_call("begin_tick"))
        ledger_begin_tick(&tick, ledger);
    else if (is_call("note_delay"))
        note_delay(number);
    else if (is_call("note_state"))
        ledger_note_state(&tick, ledger);
    else if (is_call("end_tick"))
        ledger_end_tick(&tick, ledger);
    else if (is_call("begin_recording"))
        ledger_begin_recording(ledger, (uint32_t)field("arg", 0));
    else if (is_call("forget_timer"))
        ledger_forget_timer(ledger);
    else if (!end(number, &time))
        time = credit(number);
    if (!are_where_they_run[number]) unseen_waits_ns += time.runnable_ns;
}

/* Writes the states that the call has changed. */
static void put_states(const struct ledger *ledger, struct inputs *values, enum ledger_state state, uint64_t unseen_ns)
{
    uint64_t wait_ns = ledger_unwritten_wait_ns(ledger);
    if (ledger->cpu_written_ns != values->written || wait_ns != values->wait) {
        put("=written");
        add(ledger->cpu_written_ns), add(wait_ns);
    }
    values->written = ledger->cpu_written_ns;
    values->wait = wait_ns;
    if (ledger->state != state) put("=state"), add(ledger->state);
    if (unseen_waits_ns != unseen_ns) put("=unseen"), add(unseen_waits_ns - unseen_ns);
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
        routines = (struct routine_table){0};
        return true;
    }
    size_t number = strtoull(at, NULL, 16) % THREADS;
    set_tick(&inputs[number]);
    set_thread(number);
    enum ledger_state state = ledgers[number].state;
    uint64_t unseen_ns = unseen_waits_ns;
    written_count = answer_at = 0;
    make_call(number);
    put_states(&ledgers[number], &inputs[number], state, unseen_ns);
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
    sink = recording_sink_of(NULL);
    routines = (struct routine_table){0};
    memset(ledgers, 0, sizeof(ledgers));
    memset(timers, 0, sizeof(timers));
    memset(inputs, 0, sizeof(inputs));
    memset(are_missing, 0, sizeof(are_missing));
    memset(are_where_they_run, 0, sizeof(are_where_they_run));
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
