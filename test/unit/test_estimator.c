/* The estimator of doc/decisions/sampler.md, simulated: a thread that computes and is blocked in turn, in two places
 * each, against ticks and timers at random. The accounting (ledger.c) and the rules of chance (chance.h) are the
 * sampler's own; the clocks and the recording are doubles. What the recording says of each place is compared with what
 * the thread did: the sums must be equal, the shares of places without bias, and spread as independent samples are.
 * SPDX-License-Identifier: MIT */
#include "sampler/ledger.h"
#include "sampler/kernel/process_info.h"
#include "sampler/source/chance.h"
#include "test.h"

#include <math.h>

enum { PLACES = 2, RUNS_MIN = 400, RUNS_MAX = 4000, BURSTS_MAX = 40000000, TICKS_A_RUN = 1000 };
enum { SHORT_DIVISOR = 8 };           /* divisor of the runs unless OFFBEAT_TEST_LONG is set (./dev nightly) */
static const double first_part = 0.3; /* share of the bursts and of the waits in the first place */

/* --- What happens ------------------------------------------------------------------------------------------------- */

struct program {
    uint64_t random_state, burst_ns;
    uint64_t now_ns, cpu_ns, part_end_ns;
    bool is_blocked;
    unsigned place;
    uint64_t truth_ns[2][PLACES]; /* running, blocked */
};

static uint64_t about(struct program *program)
{
    return program->burst_ns / 2 + chance_number(&program->random_state) % program->burst_ns;
}

static void begin_part(struct program *program)
{
    program->is_blocked = !program->is_blocked;
    program->place = (double)chance_number(&program->random_state) < first_part * 2147483648.0 ? 0 : 1;
    program->part_end_ns = program->now_ns + about(program);
}

static void pass(struct program *program, uint64_t ns)
{
    program->now_ns += ns;
    if (!program->is_blocked) program->cpu_ns += ns;
    program->truth_ns[program->is_blocked][program->place] += ns;
}

/* --- The recording, as its reader understands it ------------------------------------------------------------------ */

static struct {
    uint64_t written_ns[2][PLACES], without_stack_ns;
    unsigned last[2];
    bool has_last[2], is_written;  /* something of the open tick */
    double weights[2], squares[2]; /* sums over the samples */
    uint64_t fields[8];
    unsigned field_count;
    enum recording_kind kind;
} recording;

static uint64_t sum_of(struct recording_time time)
{
    return time.cpu_ns + time.runnable_ns + time.blocked_ns;
}

static void account_answer(bool is_blocked, uint64_t ns)
{
    if (recording.has_last[is_blocked])
        recording.written_ns[is_blocked][recording.last[is_blocked]] += ns;
    else
        recording.without_stack_ns += ns;
}

void recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room)
{
    (void)writer;
    (void)room;
    recording.kind = kind;
    recording.field_count = 0;
    recording.is_written |= kind == RECORDING_WAITING;
}

void recording_number(struct recording_writer *writer, uint64_t number)
{
    (void)writer;
    recording.fields[recording.field_count++] = number;
}

void recording_time(struct recording_writer *writer, struct recording_time time)
{
    (void)writer;
    if (recording.kind == RECORDING_MORE) account_answer(recording.fields[1] == RECORDING_OF_BLOCKED, sum_of(time));
}

void recording_sample(struct recording_writer *writer, uint32_t thread, struct recording_time time, uint32_t flags,
                      const uint64_t *addresses, size_t count, struct recording_stack *last)
{
    (void)writer, (void)thread, (void)count, (void)last;
    bool is_blocked = flags & RECORDING_BLOCKED;
    recording.has_last[is_blocked] = recording.is_written = true;
    recording.last[is_blocked] = (unsigned)addresses[0];
    account_answer(is_blocked, sum_of(time));
    recording.weights[is_blocked] += (double)sum_of(time);
    recording.squares[is_blocked] += (double)sum_of(time) * (double)sum_of(time);
}

static uint64_t delay_ns; /* 0: it never waits for a processor */

bool thread_read_delay(struct target_thread *thread, uint64_t *ret_ns)
{
    (void)thread;
    *ret_ns = delay_ns;
    return true;
}

bool context_switches_count_waits(struct target_thread *thread, struct ended_waits *ret)
{
    (void)thread;
    (void)ret;
    return false;
}

bool context_switches_count_last_waits(const struct target_thread *thread, struct ended_waits *ret)
{
    (void)thread;
    (void)ret;
    return false;
}

uint64_t monotonic_ns(void)
{
    return 0;
}

struct short_lived_sums *short_lived_routine(struct sampler *sampler, uint64_t routine)
{
    (void)routine;
    return &sampler->short_lived_threads.routines[0];
}

bool run_queue_waits_are_seen(const struct sampler *sampler, const struct target_thread *thread)
{
    (void)sampler;
    (void)thread;
    return false;
}

static uint64_t switching_ns;

uint64_t timer_switching_ns(const struct target_thread *thread)
{
    return switching_ns - thread->credit.switching_written_ns;
}

/* --- The sampler, as tick.c does it for a thread with a timer ----------------------------------------------------- */

struct simulation {
    struct program program;
    struct sampler sampler;
    struct target_thread thread;
    uint64_t timer_cpu_ns; /* CPU time of the next timer signal, ns */
    uint64_t taken[64];    /* places of its samples since the tick before */
    unsigned taken_count;
};

/* The thread continues until UNTIL_NS, while its timer takes samples. */
static void run_until(struct simulation *simulation, uint64_t until_ns)
{
    struct program *program = &simulation->program;
    while (program->now_ns < until_ns) {
        uint64_t end_ns = program->part_end_ns < until_ns ? program->part_end_ns : until_ns;
        uint64_t left_ns = end_ns - program->now_ns, to_timer_ns = simulation->timer_cpu_ns - program->cpu_ns;
        if (!program->is_blocked && to_timer_ns <= left_ns) {
            pass(program, to_timer_ns);
            if (simulation->taken_count < 64) simulation->taken[simulation->taken_count++] = program->place;
            simulation->timer_cpu_ns +=
                chance_timer_ns(&simulation->sampler.random_state, simulation->sampler.period_ns);
            continue;
        }
        pass(program, left_ns);
        if (program->now_ns == program->part_end_ns) begin_part(program);
    }
}

static void account_taken(struct simulation *simulation, uint64_t cpu_ns)
{
    struct target_thread *thread = &simulation->thread;
    for (unsigned i = 0; i < simulation->taken_count; i++) {
        struct found_stack stack = {&simulation->taken[i], 1, 0};
        uint64_t part_ns = ledger_unwritten_cpu_ns(thread, cpu_ns) / (simulation->taken_count - i);
        ledger_credit_running(&simulation->sampler, thread, thread->ledger.cpu_written_ns + part_ns, &stack);
    }
    simulation->taken_count = 0;
}

static void scan(struct simulation *simulation)
{
    struct target_thread *thread = &simulation->thread;
    struct program *program = &simulation->program;
    bool is_asleep = program->cpu_ns == thread->cpu_ns_seen && thread->state == THREAD_BLOCKED;
    thread->cpu_ns_seen = program->cpu_ns;
    recording.is_written = false;
    if (!is_asleep) {
        uint64_t place = program->place;
        struct found_stack stack = {&place, 1, 0};
        ledger_begin_tick(&simulation->sampler, thread);
        ledger_read_run_queue_wait(&simulation->sampler, thread);
        account_taken(simulation, program->cpu_ns);
        if (program->is_blocked)
            ledger_credit_blocked(&simulation->sampler, thread, &stack);
        else
            thread->state = THREAD_RUNNABLE;
        ledger_end_tick(&simulation->sampler, thread);
    }
    if (!recording.is_written) account_answer(true, simulation->sampler.tick_span_ns);
}

static void tick_at(struct simulation *simulation, uint64_t now_ns)
{
    struct sampler *sampler = &simulation->sampler;
    run_until(simulation, now_ns);
    sampler->tick++;
    sampler->tick_span_ns = now_ns - sampler->tick_ns;
    sampler->tick_ns = now_ns;
    scan(simulation);
}

static void simulate(struct simulation *simulation, uint64_t seed, uint64_t burst_ns, uint64_t period_ns)
{
    memset(simulation, 0, sizeof(*simulation));
    memset(&recording, 0, sizeof(recording));
    simulation->program = (struct program){.random_state = seed * 7919, .burst_ns = burst_ns};
    struct sampler *sampler = &simulation->sampler;
    sampler->period_ns = period_ns;
    sampler->random_state = seed;
    simulation->timer_cpu_ns = chance_number(&sampler->random_state) % period_ns;
    ledger_open_existing(&simulation->thread, 0);
    ledger_open(&simulation->thread);
    begin_part(&simulation->program);
    for (uint64_t i = 0; i < TICKS_A_RUN; i++)
        tick_at(simulation, chance_tick_ns(&sampler->random_state, i * period_ns, period_ns));
    ledger_write_rest(sampler, &simulation->thread);
}

/* --- What is measured --------------------------------------------------------------------------------------------- */

struct figures {
    double bias,
        of_mean; /* the share of the first place, of CPU time or of blocked time, and the deviation of its bias */
    double deviation, predicted;
};

static double share(const uint64_t ns[PLACES])
{
    return (double)ns[0] / (double)(ns[0] + ns[1]);
}

static void check_sums(const struct simulation *simulation)
{
    const struct program *program = &simulation->program;
    uint64_t unit = RECORDING_TIME_UNIT_NS, written_ns = recording.without_stack_ns;
    for (unsigned i = 0; i < PLACES; i++) written_ns += recording.written_ns[0][i] + recording.written_ns[1][i];
    CHECK(written_ns <= program->now_ns && program->now_ns - written_ns < 3 * unit);
}

/* Short bursts take long to simulate. */
static unsigned runs_of(uint64_t burst_ns, uint64_t period_ns)
{
    uint64_t runs = BURSTS_MAX / (period_ns * TICKS_A_RUN / burst_ns + 1);
    if (runs < RUNS_MIN) runs = RUNS_MIN;
    if (runs > RUNS_MAX) runs = RUNS_MAX;
    return (unsigned)(getenv("OFFBEAT_TEST_LONG") ? runs : runs / SHORT_DIVISOR);
}

static void measure(uint64_t burst_ns, uint64_t period_ns, bool is_blocked, struct figures *ret)
{
    static struct simulation simulation;
    unsigned runs = runs_of(burst_ns, period_ns);
    double sum = 0, squares = 0, predicted = 0;
    for (uint64_t run = 1; run <= runs; run++) {
        simulate(&simulation, run, burst_ns, period_ns);
        check_sums(&simulation);
        double error = share(recording.written_ns[is_blocked]) - share(simulation.program.truth_ns[is_blocked]);
        sum += error;
        squares += error * error;
        predicted += recording.squares[is_blocked] / recording.weights[is_blocked] / recording.weights[is_blocked];
    }
    double mean = sum / runs;
    *ret = (struct figures){.bias = mean, .deviation = sqrt(squares / runs - mean * mean)};
    ret->of_mean = ret->deviation / sqrt(runs);
    ret->predicted = sqrt(first_part * (1 - first_part) * predicted / runs);
}

static const uint64_t bursts_ns[] = {10000, 100000, 1000000, 10000000, 100000000, 1000000000};
static const uint64_t periods_ns[] = {1000000, 3000000, 10000000};

/* A run must hold many bursts, or its truth is no share: then there is nothing to estimate. */
static bool is_long_enough(uint64_t burst_ns, uint64_t period_ns)
{
    return burst_ns * 8 <= period_ns * TICKS_A_RUN;
}

static void print_figures(bool is_blocked, uint64_t burst_ns, uint64_t period_ns, const struct figures *figures)
{
    printf("# %s, bursts of %g ms, ticks of %g ms: bias %+.3f %% (deviation %.3f %%), deviation %.2f %%, predicted "
           "%.2f %%\n",
           is_blocked ? "blocked" : "CPU", (double)burst_ns / 1e6, (double)period_ns / 1e6, 100 * figures->bias,
           100 * figures->of_mean, 100 * figures->deviation, 100 * figures->predicted);
}

/* Independent samples deviate as is predicted. Those that are closer than bursts, several in one, deviate by less. */
static void check_deviation(uint64_t burst_ns, uint64_t period_ns, const struct figures *figures)
{
    const double tolerance =
        getenv("OFFBEAT_TEST_LONG") ? 0.15 : 0.4; /* 400 runs know a deviation to 3.5 %, 50 to 10 % */
    CHECK(figures->deviation < figures->predicted * (1 + tolerance));
    if (burst_ns * 10 <= period_ns) CHECK(figures->deviation > figures->predicted * (1 - tolerance));
}

/* Each bias within its own deviation, and that of all together, which is known better, below a thousandth. */
static void check_estimator(bool is_blocked)
{
    const double bias_max = 0.001, deviations = 3.5;
    double weights = 0, sum = 0;
    for (size_t b = 0; b < sizeof(bursts_ns) / sizeof(bursts_ns[0]); b++) {
        for (size_t p = 0; p < sizeof(periods_ns) / sizeof(periods_ns[0]); p++) {
            struct figures figures;
            if (!is_long_enough(bursts_ns[b], periods_ns[p])) continue;
            measure(bursts_ns[b], periods_ns[p], is_blocked, &figures);
            print_figures(is_blocked, bursts_ns[b], periods_ns[p], &figures);
            CHECK(fabs(figures.bias) < bias_max || fabs(figures.bias) < deviations * figures.of_mean);
            check_deviation(bursts_ns[b], periods_ns[p], &figures);
            double weight = 1 / (figures.of_mean * figures.of_mean + bias_max * bias_max);
            weights += weight;
            sum += weight * figures.bias;
        }
    }
    printf("# all together: bias %+.4f %%\n", 100 * sum / weights);
    CHECK(fabs(sum / weights) < bias_max);
}

TEST(shares_of_cpu_time_have_no_bias_and_the_variance_that_is_predicted)
{
    check_estimator(false);
}

TEST(estimates_blocked_time_without_bias_and_as_precisely_as_said)
{
    check_estimator(true);
}

/* It was seen for 100 ms, ran for 10 of them and waited for a processor for 60. Its last 50 ms, of which it ran for 5,
 * were seen by nobody. Late ticks may have met threads of its routine, a quarter of them asleep. */
TEST(the_unseen_end_of_a_thread_is_like_its_life_or_that_of_others)
{
    enum { MS = 1000000 };
    static struct sampler sampler;
    const struct {
        enum recording_mode mode;
        uint64_t met, running_us, blocked_us;
    } cases[] = {
        {RECORDING_WALL, 0, 5000 + 30000, 15000}, /* two thirds of the 45 ms */
        {RECORDING_WALL, 40, 37500, 12500},
        {RECORDING_CPU, 40, 5000, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        sampler = (struct sampler){.options.mode = cases[i].mode, .period_ns = 10 * MS, .tick_ns = 1100 * MS};
        sampler.short_lived_threads.routines[0] =
            (struct short_lived_sums){.late_ticks = cases[i].met, .late_ticks_asleep = cases[i].met / 4};
        struct target_thread thread = {.cpu_ns_seen = 15 * MS, .state = THREAD_BLOCKED};
        thread.life = (struct thread_event){.ends = 1, .created_ns = 1000 * MS, .wall_ns = 150 * MS, .cpu_ns = 15 * MS};
        thread.life.sleeps = 1;
        thread.ledger = (struct ledger){.cpu_written_ns = 10 * MS, .delay_ns = 60 * MS, .runnable_written_ns = 60 * MS};
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = recording.has_last[1] = true;
        ledger_close_as_reported(&sampler, &thread, 5 * MS);
        CHECK_UINT(recording.written_ns[0][0], cases[i].running_us * 1000);
        CHECK_UINT(recording.written_ns[1][0], cases[i].blocked_us * 1000);
    }
}

/* A thread that was created 150 ms after the beginning of the recording, and listed before it first ran. It says so
 * before the first tick, after it, or at its end. */
TEST(a_thread_begins_when_it_was_created_even_if_listed_before_it_ran)
{
    enum { MS = 1000000 };
    static struct sampler sampler;
    static struct target_thread thread;
    for (unsigned says_at = 0; says_at < 3; says_at++) {
        const struct thread_event news = {.created_ns = 1150 * MS, .start_wait_ns = 20 * MS, .wall_ns = 20 * MS};
        sampler = (struct sampler){.options.mode = RECORDING_WALL, .period_ns = 10 * MS};
        sampler.recording_start_ns = 1000 * MS;
        thread = (struct target_thread){.state = THREAD_RUNNABLE};
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = true;
        ledger_open_existing(&thread, 0);
        ledger_open(&thread);
        for (unsigned tick = 0; tick < 2; tick++) {
            if (says_at == tick) thread.life = news;
            if (says_at == tick && tick > 0) ledger_note_creation(&sampler, &thread);
            sampler.tick_span_ns = tick > 0 ? 10 * MS : 160 * MS;
            ledger_begin_tick(&sampler, &thread);
        }
        thread.life = news;
        sampler.tick_ns = 1170 * MS;
        ledger_close_as_reported(&sampler, &thread, 0);
        CHECK_UINT(recording.written_ns[0][0], 20 * MS);
    }
}

/* Two ticks, at 100 and 110 ms, scan a thread that lives for 4 ms. It was created before them, after the threads of the
 * first one were listed, or while the first one lasted for so long that the second one was over. It says so before the
 * first scan or after it. */
TEST(a_thread_that_begins_or_ends_while_a_tick_lasts_has_its_own_time)
{
    enum { MS = 1000000 };
    static const unsigned created_ms[] = {93, 95, 97, 99, 101, 104, 108, 112};
    static struct sampler sampler;
    static struct target_thread thread;
    for (size_t i = 0; i < 2 * sizeof(created_ms) / sizeof(created_ms[0]); i++) {
        struct thread_event news = {.created_ns = (uint64_t)created_ms[i / 2] * MS, .wall_ns = 4 * MS};
        sampler = (struct sampler){.options.mode = RECORDING_WALL, .period_ns = 10 * MS};
        thread = (struct target_thread){.state = THREAD_RUNNABLE};
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = true;
        ledger_open(&thread);
        for (unsigned tick = 0; tick < 2; tick++) {
            if (tick == i % 2) thread.life = news;
            if (tick > 0 && i % 2) ledger_note_creation(&sampler, &thread);
            sampler.tick_ns = (100 + 10 * (uint64_t)tick) * MS;
            sampler.tick_span_ns = 10 * MS;
            ledger_begin_tick(&sampler, &thread);
        }
        ledger_close_as_reported(&sampler, &thread, 0);
        CHECK_UINT(recording.written_ns[0][0], 4 * MS);
    }
}

/* It was created at 95 ms and ends at 495; at 300 ms another recording begins. */
TEST(a_thread_that_lives_in_two_recordings_has_its_time_in_each)
{
    enum { MS = 1000000 };
    static struct sampler sampler;
    static struct target_thread thread;
    sampler = (struct sampler){.options.mode = RECORDING_WALL, .period_ns = 10 * MS, .tick_span_ns = 10 * MS};
    thread = (struct target_thread){.state = THREAD_RUNNABLE, .life.created_ns = 95 * MS};
    memset(&recording, 0, sizeof(recording));
    recording.has_last[0] = true;
    ledger_open(&thread);
    for (uint64_t ms = 100; ms <= 490; ms += 10) {
        sampler.tick_ns = ms * MS;
        ledger_begin_tick(&sampler, &thread);
        if (ms != 300) continue;
        ledger_write_rest(&sampler, &thread);
        CHECK_UINT(recording.written_ns[0][0], 205 * MS);
        sampler.recording_start_ns = ms * MS;
    }
    thread.life.wall_ns = 400 * MS;
    ledger_close_as_reported(&sampler, &thread, 0);
    CHECK_UINT(recording.written_ns[0][0], 400 * MS);
}

/* Ticks are late. A timer saw 100 ms of waits of one thread, 60 of them after it was preempted. Another one without a
 * timer, of the same routine, was seen for 200 ms, in which it ran for 10 and waited for 50. It may still wait. */
TEST(waits_that_no_timer_saw_are_divided_as_those_that_one_saw)
{
    enum { MS = 1000000 };
    static struct sampler sampler;
    static struct target_thread timed, other;
    static struct perf_event_mmap_page *control = (void *)&sampler; /* any: there is a timer */
    uint64_t place = 1;
    struct found_stack stack = {&place, 1, 0};
    for (unsigned is_sampled = 0; is_sampled < 2; is_sampled++) {
        sampler = (struct sampler){.options.mode = RECORDING_WALL, .period_ns = 10 * MS, .tick_span_ns = 400 * MS};
        sampler.sampler_starved = true;
        timed = other = (struct target_thread){.state = THREAD_RUNNABLE, .cpu_ns_seen = 10 * MS};
        timed.ledger = other.ledger = (struct ledger){.has_delay = true, .pending_ns = 200 * MS};
        timed.timer = (struct perf_timer){.control = control, .preempted_ns = 60 * MS};
        timed.ledger.has_seen_switch = true;
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = recording.has_last[1] = true;
        delay_ns = 50 * MS;
        ledger_read_run_queue_wait(&sampler, &other); /* before anything is known */
        CHECK_UINT(recording.written_ns[0][0] + recording.written_ns[1][0], 0);
        delay_ns = 100 * MS;
        ledger_read_run_queue_wait(&sampler, &timed);
        CHECK_UINT(recording.written_ns[1][0], 40 * MS);
        if (is_sampled) ledger_credit_running(&sampler, &other, 10 * MS, &stack);
        ledger_write_rest(&sampler, &other);
        CHECK_UINT(recording.written_ns[0][0] + recording.written_ns[0][1], 180 * MS);
        CHECK_UINT(recording.written_ns[1][0], 40 * MS + 20 * MS);
    }
    delay_ns = 0;
}

/* A thread ran for 10 of 200 ms and waited for 50, as the kernel counted; it is awake at the last scan. Its waiting
 * time since then is at most half of the time since the scan before, and no more than late ticks leave to threads of
 * its routine, of which they met every second one asleep. */
TEST(a_thread_that_no_scan_met_asleep_has_blocked_time)
{
    enum { MS = 1000000 };
    static struct sampler sampler;
    const struct {
        uint64_t span_ms, met, open_ms, blocked_ms;
    } cases[] = {{40, 0, 200, 120}, {160, 0, 200, 60}, {400, 0, 200, 0}, {160, 10, 200, 100}, {160, 10, 400, 140}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        sampler = (struct sampler){.options.mode = RECORDING_WALL, .period_ns = 10 * MS};
        sampler.tick_span_ns = cases[i].span_ms * MS;
        struct target_thread thread = {.state = THREAD_RUNNABLE, .cpu_ns_seen = 10 * MS};
        thread.ledger = (struct ledger){.has_delay = true, .pending_ns = 200 * MS};
        thread.ledger.since_asleep_ns = cases[i].open_ms * MS;
        for (uint64_t met = 0; met < cases[i].met; met++) {
            thread.state = met % 2 ? THREAD_RUNNABLE : THREAD_BLOCKED;
            ledger_note_state(&sampler, &thread);
        }
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = recording.has_last[1] = true;
        delay_ns = 50 * MS;
        ledger_read_run_queue_wait(&sampler, &thread);
        ledger_write_rest(&sampler, &thread);
        CHECK_UINT(recording.written_ns[0][0] + recording.written_ns[0][1], (200 - cases[i].blocked_ms) * MS);
        CHECK_UINT(recording.written_ns[1][0], cases[i].blocked_ms * MS);
    }
    delay_ns = 0;
}

/* A thread waited for 50 ms while ticks were late. */
TEST(unknown_waits_are_divided_when_enough_others_are_known_or_at_the_end)
{
    enum { MS = 1000000 };
    static struct sampler sampler;
    const struct found_stack stack = {.addresses = (const uint64_t[]){0}, .count = 1};
    for (int is_end = 0; is_end < 2; is_end++) {
        sampler = (struct sampler){.options.mode = RECORDING_WALL, .period_ns = 10 * MS, .sampler_starved = true};
        struct short_lived_sums *routine = short_lived_routine(&sampler, 0);
        struct target_thread thread = {.state = THREAD_RUNNABLE, .cpu_ns_seen = 10 * MS};
        thread.ledger = (struct ledger){.has_delay = true, .pending_ns = 70 * MS};
        memset(&recording, 0, sizeof(recording));
        recording.has_last[1] = true;
        delay_ns = 50 * MS;
        ledger_read_run_queue_wait(&sampler, &thread);
        routine->woken_waits = 4, routine->other_waits = 36;
        ledger_credit_running(&sampler, &thread, 10 * MS, &stack);
        CHECK_UINT(recording.written_ns[0][0], 10 * MS);
        thread.cpu_ns_seen = 20 * MS;
        if (!is_end) routine->woken_waits = 80, routine->other_waits = 320;
        if (is_end)
            ledger_write_rest(&sampler, &thread);
        else
            ledger_credit_running(&sampler, &thread, 20 * MS, &stack);
        CHECK_UINT(recording.written_ns[0][0], is_end ? 65 * MS : 60 * MS);
        CHECK_UINT(recording.written_ns[1][0], is_end ? 5 * MS : 10 * MS);
    }
    delay_ns = 0;
}

/* 3 of 10 ms on a processor were switches to other threads; 190 of 200 ms were spent asleep. */
TEST(time_of_switches_is_spent_where_the_thread_sleeps)
{
    enum { MS = 1000000 };
    static struct sampler sampler;
    const struct found_stack running = {.addresses = (const uint64_t[]){0}, .count = 1};
    const struct found_stack sleeping = {.addresses = (const uint64_t[]){1}, .count = 1};
    for (enum recording_mode mode = RECORDING_WALL; mode <= RECORDING_CPU; mode++) {
        sampler = (struct sampler){.options.mode = mode, .period_ns = 10 * MS};
        struct target_thread thread = {.state = THREAD_RUNNABLE, .cpu_ns_seen = 10 * MS};
        thread.ledger = (struct ledger){.has_delay = true, .pending_ns = 200 * MS};
        memset(&recording, 0, sizeof(recording));
        switching_ns = 3 * MS;
        ledger_credit_blocked(&sampler, &thread, &sleeping);
        CHECK_UINT(recording.written_ns[1][1], mode == RECORDING_WALL ? 193 * MS : 3 * MS);
        ledger_credit_running(&sampler, &thread, 10 * MS, &running);
        ledger_write_rest(&sampler, &thread);
        CHECK_UINT(recording.written_ns[0][0], 7 * MS);
        CHECK_UINT(timer_switching_ns(&thread), 0);
    }
}

TEST_MAIN()
