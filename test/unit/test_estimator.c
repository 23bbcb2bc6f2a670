/* The estimator of doc/decisions/sampler.md, simulated: a thread that computes and is blocked in turn, in two places
 * each, against ticks and timers at random. The accounting (ledger.c) and the rules of chance (chance.h) are the
 * sampler's own; the recording is a double. What the recording says of each place is compared with what
 * the thread did: the sums must be equal, the shares of places without bias, and spread as independent samples are.
 * SPDX-License-Identifier: MIT */
#include "sampler/ledger/ledger.h"
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

static void note_sample(void *context, struct ledger *ledger, struct recording_time time,
                        const struct found_stack *stack)
{
    (void)context, (void)ledger;
    bool is_blocked = stack->flags & RECORDING_BLOCKED;
    recording.has_last[is_blocked] = recording.is_written = true;
    recording.last[is_blocked] = (unsigned)stack->addresses[0];
    account_answer(is_blocked, sum_of(time));
    recording.weights[is_blocked] += (double)sum_of(time);
    recording.squares[is_blocked] += (double)sum_of(time) * (double)sum_of(time);
}

static void note_more(void *context, struct ledger *ledger, enum recording_share share, struct recording_time time)
{
    (void)context, (void)ledger;
    account_answer(share == RECORDING_OF_BLOCKED, sum_of(time));
}

static void note_waiting(void *context, struct ledger *ledger)
{
    (void)context, (void)ledger;
    recording.is_written = true;
}

static void note_woken(void *context, struct ledger *ledger, uint64_t wait_ns)
{
    (void)context, (void)ledger, (void)wait_ns;
}

static const struct ledger_sink sink = {
    .sample = note_sample, .more = note_more, .waiting = note_waiting, .woken = note_woken};
static struct routine_table routines;

static struct ledger_tick tick_of(enum recording_mode mode, uint64_t period_ns)
{
    routines = (struct routine_table){0};
    return (struct ledger_tick){.mode = mode, .period_ns = period_ns, .sink = &sink, .routines = &routines};
}

static uint64_t delay_ns; /* 0: it never waits for a processor */

static void note_delay(const struct ledger_tick *tick, struct ledger *ledger, struct ledger_timer timer)
{
    struct ledger_delay delay = {.ns = delay_ns, .timer = timer};
    ledger_note_delay(tick, ledger, &delay);
}

static const struct ledger_timer no_timer = {0};

static void close_as_reported(const struct ledger_tick *tick, struct ledger *ledger, uint64_t unseen_cpu_ns)
{
    const struct ledger_end end = {.unseen_cpu_ns = unseen_cpu_ns};
    ledger_note_creation(tick, ledger);
    (void)ledger_close_as_reported(tick, ledger, &end);
}

/* --- The sampler, as tick.c does it for a thread with a timer ----------------------------------------------------- */

struct simulation {
    struct program program;
    uint64_t random_state;
    struct ledger_tick tick;
    struct ledger ledger;
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
            simulation->timer_cpu_ns += chance_timer_ns(&simulation->random_state, simulation->tick.period_ns);
            continue;
        }
        pass(program, left_ns);
        if (program->now_ns == program->part_end_ns) begin_part(program);
    }
}

static void account_taken(struct simulation *simulation, uint64_t cpu_ns)
{
    struct ledger *ledger = &simulation->ledger;
    for (unsigned i = 0; i < simulation->taken_count; i++) {
        struct found_stack stack = {&simulation->taken[i], 1, 0};
        uint64_t part_ns = ledger_unwritten_cpu_ns(ledger, cpu_ns) / (simulation->taken_count - i);
        (void)ledger_credit_running(&simulation->tick, ledger, ledger->cpu_written_ns + part_ns, false, &stack);
    }
    simulation->taken_count = 0;
}

static void scan(struct simulation *simulation)
{
    struct ledger *ledger = &simulation->ledger;
    struct program *program = &simulation->program;
    bool is_asleep = program->cpu_ns == ledger->cpu_ns && ledger->state == LEDGER_BLOCKED;
    ledger->cpu_ns = program->cpu_ns;
    recording.is_written = false;
    if (!is_asleep) {
        uint64_t place = program->place;
        struct found_stack stack = {&place, 1, 0};
        ledger_begin_tick(&simulation->tick, ledger);
        note_delay(&simulation->tick, ledger, no_timer);
        account_taken(simulation, program->cpu_ns);
        if (program->is_blocked)
            (void)ledger_credit_blocked(&simulation->tick, ledger, 0, &stack);
        else
            ledger->state = LEDGER_RUNNABLE;
        ledger_end_tick(&simulation->tick, ledger);
    }
    if (!recording.is_written) account_answer(true, simulation->tick.span_ns);
}

static void tick_at(struct simulation *simulation, uint64_t now_ns)
{
    struct ledger_tick *tick = &simulation->tick;
    run_until(simulation, now_ns);
    tick->number++;
    tick->span_ns = now_ns - tick->start_ns;
    tick->start_ns = now_ns;
    scan(simulation);
}

static void simulate(struct simulation *simulation, uint64_t seed, uint64_t burst_ns, uint64_t period_ns)
{
    memset(simulation, 0, sizeof(*simulation));
    memset(&recording, 0, sizeof(recording));
    simulation->program = (struct program){.random_state = seed * 7919, .burst_ns = burst_ns};
    simulation->tick = tick_of(RECORDING_WALL, period_ns);
    simulation->random_state = seed;
    simulation->timer_cpu_ns = chance_number(&simulation->random_state) % period_ns;
    ledger_open_existing(&simulation->ledger, 0);
    ledger_open(&simulation->ledger);
    begin_part(&simulation->program);
    for (uint64_t i = 0; i < TICKS_A_RUN; i++)
        tick_at(simulation, chance_tick_ns(&simulation->random_state, i * period_ns, period_ns));
    (void)ledger_write_rest(&simulation->tick, &simulation->ledger, false);
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
    struct ledger_tick tick;
    const struct {
        enum recording_mode mode;
        uint64_t met, running_us, blocked_us;
    } cases[] = {
        {RECORDING_WALL, 0, 5000 + 30000, 15000}, /* two thirds of the 45 ms */
        {RECORDING_WALL, 40, 37500, 12500},
        {RECORDING_CPU, 40, 5000, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tick = tick_of(cases[i].mode, 10 * MS);
        tick.start_ns = 1100 * MS;
        routine_sums_of(&routines, 0)->waits =
            (struct routine_waits){.late_ticks = cases[i].met, .late_ticks_asleep = cases[i].met / 4};
        struct ledger ledger = {.cpu_ns = 15 * MS, .state = LEDGER_BLOCKED};
        ledger.life = (struct thread_event){.ends = 1, .created_ns = 1000 * MS, .wall_ns = 150 * MS, .cpu_ns = 15 * MS};
        ledger.life.sleeps = 1;
        ledger.cpu_written_ns = 10 * MS;
        ledger.waits = (struct ledger_waits){.delay_ns = 60 * MS, .written_ns = 60 * MS};
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = recording.has_last[1] = true;
        close_as_reported(&tick, &ledger, 5 * MS);
        CHECK_UINT(recording.written_ns[0][0], cases[i].running_us * 1000);
        CHECK_UINT(recording.written_ns[1][0], cases[i].blocked_us * 1000);
    }
}

/* A thread that was created 150 ms after the beginning of the recording, and listed before it first ran. It says so
 * before the first tick, after it, or at its end. */
TEST(a_thread_begins_when_it_was_created_even_if_listed_before_it_ran)
{
    enum { MS = 1000000 };
    struct ledger_tick tick;
    struct ledger ledger;
    for (unsigned says_at = 0; says_at < 3; says_at++) {
        const struct thread_event news = {.created_ns = 1150 * MS, .start_wait_ns = 20 * MS, .wall_ns = 20 * MS};
        tick = tick_of(RECORDING_WALL, 10 * MS);
        tick.recording_start_ns = 1000 * MS;
        ledger = (struct ledger){.state = LEDGER_RUNNABLE};
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = true;
        ledger_open_existing(&ledger, 0);
        ledger_open(&ledger);
        for (unsigned number = 0; number < 2; number++) {
            if (says_at == number) ledger.life = news;
            if (says_at == number && number > 0) ledger_note_creation(&tick, &ledger);
            tick.span_ns = number > 0 ? 10 * MS : 160 * MS;
            ledger_begin_tick(&tick, &ledger);
        }
        ledger.life = news;
        tick.start_ns = 1170 * MS;
        close_as_reported(&tick, &ledger, 0);
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
    struct ledger_tick tick;
    struct ledger ledger;
    for (size_t i = 0; i < 2 * sizeof(created_ms) / sizeof(created_ms[0]); i++) {
        struct thread_event news = {.created_ns = (uint64_t)created_ms[i / 2] * MS, .wall_ns = 4 * MS};
        tick = tick_of(RECORDING_WALL, 10 * MS);
        ledger = (struct ledger){.state = LEDGER_RUNNABLE};
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = true;
        ledger_open(&ledger);
        for (unsigned number = 0; number < 2; number++) {
            if (number == i % 2) ledger.life = news;
            if (number > 0 && i % 2) ledger_note_creation(&tick, &ledger);
            tick.start_ns = (100 + 10 * (uint64_t)number) * MS;
            tick.span_ns = 10 * MS;
            ledger_begin_tick(&tick, &ledger);
        }
        close_as_reported(&tick, &ledger, 0);
        CHECK_UINT(recording.written_ns[0][0], 4 * MS);
    }
}

/* It was created at 95 ms and ends at 495; at 300 ms another recording begins. */
TEST(a_thread_that_lives_in_two_recordings_has_its_time_in_each)
{
    enum { MS = 1000000 };
    struct ledger_tick tick;
    struct ledger ledger;
    tick = tick_of(RECORDING_WALL, 10 * MS);
    tick.span_ns = 10 * MS;
    ledger = (struct ledger){.state = LEDGER_RUNNABLE, .life.created_ns = 95 * MS};
    memset(&recording, 0, sizeof(recording));
    recording.has_last[0] = true;
    ledger_open(&ledger);
    for (uint64_t ms = 100; ms <= 490; ms += 10) {
        tick.start_ns = ms * MS;
        ledger_begin_tick(&tick, &ledger);
        if (ms != 300) continue;
        (void)ledger_write_rest(&tick, &ledger, false);
        CHECK_UINT(recording.written_ns[0][0], 205 * MS);
        tick.recording_start_ns = ms * MS;
    }
    ledger.life.wall_ns = 400 * MS;
    close_as_reported(&tick, &ledger, 0);
    CHECK_UINT(recording.written_ns[0][0], 400 * MS);
}

/* Ticks are late. A timer saw 100 ms of waits of one thread, 60 of them after it was preempted. Another one without a
 * timer, of the same routine, was seen for 200 ms, in which it ran for 10 and waited for 50. It may still wait. */
TEST(waits_that_no_timer_saw_are_divided_as_those_that_one_saw)
{
    enum { MS = 1000000 };
    struct ledger_tick tick;
    struct ledger timed, other;
    const struct ledger_timer timer = {.is_there = true, .has_seen_switch = true, .preempted_ns = 60 * MS};
    uint64_t place = 1;
    struct found_stack stack = {&place, 1, 0};
    for (unsigned is_sampled = 0; is_sampled < 2; is_sampled++) {
        tick = tick_of(RECORDING_WALL, 10 * MS);
        tick.span_ns = 400 * MS;
        tick.is_starved = true;
        timed = other = (struct ledger){.state = LEDGER_RUNNABLE, .cpu_ns = 10 * MS};
        timed.waits.has_delay = other.waits.has_delay = true;
        timed.wall.pending_ns = other.wall.pending_ns = 200 * MS;
        timed.waits.has_seen_switch = true;
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = recording.has_last[1] = true;
        delay_ns = 50 * MS;
        note_delay(&tick, &other, no_timer); /* before anything is known */
        CHECK_UINT(recording.written_ns[0][0] + recording.written_ns[1][0], 0);
        delay_ns = 100 * MS;
        note_delay(&tick, &timed, timer);
        CHECK_UINT(recording.written_ns[1][0], 40 * MS);
        if (is_sampled) (void)ledger_credit_running(&tick, &other, 10 * MS, false, &stack);
        (void)ledger_write_rest(&tick, &other, false);
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
    struct ledger_tick tick;
    const struct {
        uint64_t span_ms, met, open_ms, blocked_ms;
    } cases[] = {{40, 0, 200, 120}, {160, 0, 200, 60}, {400, 0, 200, 0}, {160, 10, 200, 100}, {160, 10, 400, 140}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tick = tick_of(RECORDING_WALL, 10 * MS);
        tick.span_ns = cases[i].span_ms * MS;
        struct ledger ledger = {.state = LEDGER_RUNNABLE, .cpu_ns = 10 * MS};
        ledger.waits.has_delay = true;
        ledger.wall.pending_ns = 200 * MS;
        ledger.wall.since_asleep_ns = cases[i].open_ms * MS;
        for (uint64_t met = 0; met < cases[i].met; met++) {
            ledger.state = met % 2 ? LEDGER_RUNNABLE : LEDGER_BLOCKED;
            ledger_note_state(&tick, &ledger);
        }
        memset(&recording, 0, sizeof(recording));
        recording.has_last[0] = recording.has_last[1] = true;
        delay_ns = 50 * MS;
        note_delay(&tick, &ledger, no_timer);
        (void)ledger_write_rest(&tick, &ledger, false);
        CHECK_UINT(recording.written_ns[0][0] + recording.written_ns[0][1], (200 - cases[i].blocked_ms) * MS);
        CHECK_UINT(recording.written_ns[1][0], cases[i].blocked_ms * MS);
    }
    delay_ns = 0;
}

/* A thread waited for 50 ms while ticks were late. */
TEST(unknown_waits_are_divided_when_enough_others_are_known_or_at_the_end)
{
    enum { MS = 1000000 };
    struct ledger_tick tick;
    const struct found_stack stack = {.addresses = (const uint64_t[]){0}, .count = 1};
    for (int is_end = 0; is_end < 2; is_end++) {
        tick = tick_of(RECORDING_WALL, 10 * MS);
        tick.is_starved = true;
        struct routine_waits *routine = &routine_sums_of(&routines, 0)->waits;
        struct ledger ledger = {.state = LEDGER_RUNNABLE, .cpu_ns = 10 * MS};
        ledger.waits.has_delay = true;
        ledger.wall.pending_ns = 70 * MS;
        memset(&recording, 0, sizeof(recording));
        recording.has_last[1] = true;
        delay_ns = 50 * MS;
        note_delay(&tick, &ledger, no_timer);
        routine->woken = 4, routine->others = 36;
        (void)ledger_credit_running(&tick, &ledger, 10 * MS, false, &stack);
        CHECK_UINT(recording.written_ns[0][0], 10 * MS);
        ledger.cpu_ns = 20 * MS;
        if (!is_end) routine->woken = 80, routine->others = 320;
        if (is_end)
            (void)ledger_write_rest(&tick, &ledger, false);
        else
            (void)ledger_credit_running(&tick, &ledger, 20 * MS, false, &stack);
        CHECK_UINT(recording.written_ns[0][0], is_end ? 65 * MS : 60 * MS);
        CHECK_UINT(recording.written_ns[1][0], is_end ? 5 * MS : 10 * MS);
    }
    delay_ns = 0;
}

/* 3 of 10 ms on a processor were switches to other threads; 190 of 200 ms were spent asleep. */
TEST(time_of_switches_is_spent_where_the_thread_sleeps)
{
    enum { MS = 1000000 };
    struct ledger_tick tick;
    const struct found_stack running = {.addresses = (const uint64_t[]){0}, .count = 1};
    const struct found_stack sleeping = {.addresses = (const uint64_t[]){1}, .count = 1};
    for (enum recording_mode mode = RECORDING_WALL; mode <= RECORDING_CPU; mode++) {
        tick = tick_of(mode, 10 * MS);
        struct ledger ledger = {.state = LEDGER_RUNNABLE, .cpu_ns = 10 * MS};
        ledger.waits.has_delay = true;
        ledger.wall.pending_ns = 200 * MS;
        memset(&recording, 0, sizeof(recording));
        CHECK_UINT(ledger_credit_blocked(&tick, &ledger, 3 * MS, &sleeping), 3 * MS);
        CHECK_UINT(recording.written_ns[1][1], mode == RECORDING_WALL ? 193 * MS : 3 * MS);
        (void)ledger_credit_running(&tick, &ledger, 10 * MS, false, &running);
        (void)ledger_write_rest(&tick, &ledger, false);
        CHECK_UINT(recording.written_ns[0][0], 7 * MS);
    }
}

TEST_MAIN()
