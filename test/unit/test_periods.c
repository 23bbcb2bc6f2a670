/* Simulates how a timer that sees user code only divides its periods (sample_credit.h): a thread that is in calls, in
 * page faults and in user code by chance, a timer, and signals at the kernel's ticks. Compares the time that stacks of
 * each kind stand for with the time that the thread spent there: many signals give no bias, and calls get no more than
 * the time inside the kernel. SPDX-License-Identifier: MIT */
#include "sampler/source/sample_credit.h"
#include "sampler/source/chance.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PERIOD_NS = 2000000, PERIODS = 2000, RUNS = 400, TICK_PERIODS = 2 };

enum place { USER, CALL, FAULT, PLACES };

/* For how many periods the thread is in calls and in page faults with which chance. */
struct phase {
    int periods;
    double calls, faults;
};

struct program {
    uint64_t random_state;
    const struct phase *phase;
    int left;
};

static double by_chance(struct program *program)
{
    return (double)chance_number(&program->random_state) / 2147483648.0;
}

static enum place where(struct program *program)
{
    double at = by_chance(program);
    if (at < program->phase->calls) return CALL;
    return at < program->phase->calls + program->phase->faults ? FAULT : USER;
}

/* The time that stacks of each kind stand for in one run, in periods. */
struct result {
    double given[PLACES];
    uint64_t kernel;
};

struct pending_reply {
    struct timer_signals signals;
    bool is_there, was_in_call;
};

/* Counts a signal and perhaps replaces REPLY, as signal_entry.S does. */
static void send_signal(struct program *program, struct pending_reply *reply, enum signal_origin preferred)
{
    bool in_call = where(program) == CALL;
    reply->signals.count++;
    reply->signals.in_call += in_call;
    uint32_t of_kind = in_call ? reply->signals.in_call : reply->signals.count - reply->signals.in_call;
    bool is_preferred = preferred == (in_call ? ORIGIN_IN_CALL : ORIGIN_OUTSIDE);
    if (!is_preferred && preferred != ORIGIN_ANY && reply->signals.count > of_kind) return;
    if (by_chance(program) * (preferred == ORIGIN_ANY ? reply->signals.count : of_kind) >= 1) return;
    reply->was_in_call = in_call;
    reply->is_there = true;
}

/* The ways to receive stacks in calls: from the thread's CPU clock, or by a request while the thread was inside the
 * kernel. */
enum way { BY_CLOCK, BY_REQUEST };

struct sampled {
    struct sample_credit credit;
    struct pending_reply reply;
    enum signal_origin preferred;
    bool is_asked;
    uint64_t user;         /* stacks that were not read yet */
    uint64_t open_periods; /* periods of a call that continues */
    uint64_t written_ns;
};

/* The time that is given to stacks and was not yet, in periods. */
static double given(struct sampled *sampled, uint64_t period)
{
    uint64_t ns = sample_credit_accounted_cpu_ns(&sampled->credit, period * PERIOD_NS, period * PERIOD_NS);
    double periods = ns > sampled->written_ns ? (double)(ns - sampled->written_ns) / PERIOD_NS : 0;
    sampled->written_ns += (uint64_t)(periods * PERIOD_NS);
    return periods;
}

/* Credits the timer's stacks, then the reply, as tick.c does. */
static void scan(struct sampled *sampled, enum way way, uint64_t period, struct result *result)
{
    struct sample_credit *credit = &sampled->credit;
    struct pending_reply reply = sampled->reply;
    credit->user += sampled->user;
    if (sample_credit_is_due(credit)) sample_credit_lend(credit, sampled->user, period - sample_credit_given(credit));
    if (sampled->user > 0) result->given[USER] += given(sampled, period);
    sampled->user = 0;
    sample_credit_note_request(credit, period - sample_credit_given(credit));
    if (reply.is_there) {
        if (sample_credit_accept(credit, reply.signals, reply.was_in_call, sampled->open_periods * PERIOD_NS))
            result->given[reply.was_in_call ? CALL : FAULT] += given(sampled, period);
        sampled->reply = (struct pending_reply){.signals.are_all = way == BY_CLOCK};
        sampled->preferred = way == BY_CLOCK ? sample_credit_preferred_origin(credit) : ORIGIN_ANY;
    }
    sampled->is_asked = period > sample_credit_given(credit);
}

static struct result run(struct program *program, enum way way, unsigned periods_between_scans)
{
    struct sampled sampled = {
        .credit.period_ns = PERIOD_NS, .reply.signals.are_all = way == BY_CLOCK, .preferred = ORIGIN_ANY};
    struct result result = {0};
    for (uint64_t period = 1; period <= PERIODS; period++) {
        enum place place = where(program);
        sampled.user += place == USER;
        result.kernel += place != USER;
        if (way == BY_CLOCK ? period % TICK_PERIODS == 0 : sampled.is_asked)
            send_signal(program, &sampled.reply, sampled.preferred);
        sampled.is_asked = false;
        if (program->left-- == 1) program->left = (++program->phase)->periods;
        if (period % periods_between_scans == 0) scan(&sampled, way, period, &result);
    }
    return result;
}

struct summary {
    double mean[PLACES], deviation[PLACES]; /* parts of the time */
    double over;                            /* the most that calls had beyond what was inside the kernel */
};

static struct summary simulate(const struct phase *phases, enum way way, unsigned periods_between_scans)
{
    struct program program = {.random_state = 20261126};
    struct summary summary = {0};
    double squares[PLACES] = {0};
    for (int i = 0; i < RUNS; i++) {
        program.phase = phases;
        program.left = phases->periods;
        struct result result = run(&program, way, periods_between_scans);
        for (int place = 0; place < PLACES; place++) {
            double part = result.given[place] / PERIODS;
            summary.mean[place] += part / RUNS;
            squares[place] += part * part / RUNS;
        }
        summary.over = fmax(summary.over, result.given[CALL] - (double)result.kernel);
    }
    for (int place = 0; place < PLACES; place++)
        summary.deviation[place] = sqrt(squares[place] - summary.mean[place] * summary.mean[place]);
    return summary;
}

/* The share of calls is CALLS, within BIAS, and single runs deviate from it as the signals do, or less. Answers from
 * outside stand for FAULTS, or where the signals are too few by chance, for a little more. */
static void check(const char *name, const struct phase *phases, enum way way, double calls, double faults, double bias)
{
    double of_signals = sqrt(calls * (1 - calls) * TICK_PERIODS / PERIODS);
    for (unsigned periods = 1; periods <= (way == BY_CLOCK ? 16 : 1); periods *= 4) {
        struct summary summary = simulate(phases, way, periods);
        const double *mean = summary.mean;
        printf("# %s, a scan each %u periods: calls %.2f %% (%.2f), outside %.2f, user code %.2f; over %.1f\n", name,
               periods, 100 * mean[CALL], 100 * summary.deviation[CALL], 100 * mean[FAULT], 100 * mean[USER],
               summary.over);
        CHECK(fabs(mean[CALL] - calls) <= bias);
        CHECK(summary.deviation[CALL] <= 1.2 * of_signals);
        CHECK(mean[FAULT] <= faults + 0.02 && mean[FAULT] >= faults - 0.0075);
        CHECK(mean[CALL] + mean[FAULT] + mean[USER] > 0.985);
        CHECK(summary.over <= 1);
    }
}

TEST(calls_have_their_part_where_the_clock_asks)
{
    check("few calls", (const struct phase[]){{0, 0.01, 0.006}}, BY_CLOCK, 0.01, 0.006, 0.0025);
    check("more", (const struct phase[]){{0, 0.03, 0.01}}, BY_CLOCK, 0.03, 0.01, 0.0025);
    check("many", (const struct phase[]){{0, 0.11, 0.05}}, BY_CLOCK, 0.11, 0.05, 0.0025);
    check("and no faults", (const struct phase[]){{0, 0.11, 0}}, BY_CLOCK, 0.11, 0, 0.006);
    check("nearly always", (const struct phase[]){{0, 0.9, 0}}, BY_CLOCK, 0.9, 0, 0.006);
    check("at first", (const struct phase[]){{1000, 0.8, 0}, {0, 0, 0.01}}, BY_CLOCK, 0.4, 0.005, 0.005);
    check("at last", (const struct phase[]){{1000, 0, 0.01}, {0, 0.8, 0}}, BY_CLOCK, 0.4, 0.005, 0.005);
    check("never", (const struct phase[]){{0, 0, 0.3}}, BY_CLOCK, 0, 0.3, 0);
}

TEST(calls_have_their_part_where_they_are_asked_for)
{
    check("few calls", (const struct phase[]){{0, 0.01, 0.006}}, BY_REQUEST, 0.01, 0.006, 0.0025);
    check("many", (const struct phase[]){{0, 0.11, 0.05}}, BY_REQUEST, 0.11, 0.05, 0.008);
    check("at first", (const struct phase[]){{1000, 0.8, 0}, {0, 0, 0.01}}, BY_REQUEST, 0.4, 0.005, 0.008);
}

/* User code for 5 periods, then a call for 40, in which the signal of the first signal waits for the call's end: it
 * stands for all of them. A scan each 4 periods meets a call's beginning with a signal from before it. */
TEST(calls_of_many_periods_have_their_part)
{
    enum { IN_USER = 5, ROUND = 45, ROUNDS = 20, SCAN = 4 };
    struct sampled sampled = {.credit.period_ns = PERIOD_NS};
    struct result result = {0};
    uint32_t waiting = 0; /* signals */
    for (uint64_t period = 1; period <= ROUNDS * ROUND; period++) {
        bool in_call = period % ROUND >= IN_USER, is_end = (period + 1) % ROUND == 0;
        sampled.user += !in_call;
        waiting += in_call;
        if (!in_call || is_end) {
            sampled.reply.signals.count += in_call ? waiting : 1;
            sampled.reply.signals.in_call += in_call ? waiting : 0;
            sampled.reply.signals.are_all = sampled.reply.is_there = true;
            if (in_call || sampled.reply.signals.in_call == 0) sampled.reply.was_in_call = in_call;
            if (is_end) waiting = 0;
        }
        sampled.open_periods = waiting;
        if (period % SCAN == 0) scan(&sampled, BY_CLOCK, period, &result);
    }
    double calls = result.given[CALL] / (ROUNDS * ROUND), outside = result.given[FAULT] / (ROUNDS * ROUND);
    printf("# calls %.2f %%, outside %.2f\n", 100 * calls, 100 * outside);
    CHECK(fabs(calls - (double)(ROUND - IN_USER) / ROUND) < 0.01);
    CHECK(outside < 0.01);
}

TEST_MAIN()
