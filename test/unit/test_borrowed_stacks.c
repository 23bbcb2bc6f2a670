/* Many threads borrow many stacks: each has its own time, all of them together what the lenders have, and no more
 * samples are made than may be.  SPDX-License-Identifier: MIT */
#include "format/recording/borrowed_stacks.h"
#include "profile/incomplete.h"
#include "test.h"

#include <math.h>

enum { LENDERS = 200, BORROWERS = 600, VALUES = 5, SUM = 1, CPU = 2, RUNNABLE = 3, BLOCKED = 4, MS = 1000000 };

static struct profile profile;
static int64_t period; /* 0: not known, and every stack has its part */
static struct location_id routine, too_short;
static struct location_id routines[BORROWERS + 2];

static struct location_id location(uint64_t address, const char *name)
{
    struct function function = {.name = profile_text(&profile, name)};
    struct line line = {.function = profile_add_function(&profile, &function)};
    return profile_add_location(&profile, &(struct location){.address = address}, &line, 1);
}

static void add(struct thread_id thread, struct location_id leaf, int64_t cpu, int64_t runnable, int64_t blocked)
{
    struct stack_id root = profile_add_stack(&profile, (struct stack_id){0}, routine);
    struct sample sample = {.thread = thread, .stack = profile_add_stack(&profile, root, leaf)};
    profile_add_sample(&profile, &sample, (int64_t[VALUES]){1, cpu + runnable + blocked, cpu, runnable, blocked});
}

static struct thread_id thread(unsigned number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    struct thread_id id = profile_add_thread(&profile, &(struct thread){.id = profile_text(&profile, text)});
    routines[id.index] = routine;
    return id;
}

/* Lender I computes for I ms, with waits of 2 ms for each; every tenth has slept for 1 ms. */
static void begin(void)
{
    static const char *const types[VALUES] = {"samples", "wall", "cpu", "runnable", "blocked"};
    profile_init(&profile);
    for (unsigned i = 0; i < VALUES; i++) profile_add_value_type(&profile, types[i], i ? "nanoseconds" : "count");
    profile.period = period;
    routine = location(1, "run");
    too_short = location(2, NO_STACK_TOO_SHORT);
    struct thread_id lender = thread(1);
    for (unsigned i = 1; i <= LENDERS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        int64_t cpu = (int64_t)i * MS;
        add(lender, location(100 + i, name), cpu, 2 * cpu, i % 10 == 0 ? MS : 0);
    }
    for (unsigned i = 0; i < BORROWERS; i++) {
        struct thread_id borrower = thread(2 + i);
        add(borrower, too_short, 3 * MS, 60 * MS, MS);
        add(borrower, too_short, 0, 5 * MS, 0); /* it was woken */
    }
}

static const int64_t *values_of(size_t sample)
{
    return profile_sample_values(&profile, sample);
}

static void check_threads(size_t first)
{
    static int64_t sums[BORROWERS + 2][VALUES];
    memset(sums, 0, sizeof(sums));
    for (size_t i = first; i < profile.samples.count; i++) {
        const int64_t *values = values_of(i);
        CHECK_INT(values[SUM], values[CPU] + values[RUNNABLE] + values[BLOCKED]);
        for (unsigned j = 0; j < VALUES; j++) {
            CHECK(values[j] >= 0);
            sums[profile.samples.thread[i].index][j] += values[j];
        }
    }
    for (unsigned i = 2; i < BORROWERS + 2; i++) {
        CHECK_INT(sums[i][CPU], 3 * MS);
        CHECK_INT(sums[i][RUNNABLE], 65 * MS);
        CHECK_INT(sums[i][BLOCKED], 1 * MS);
        CHECK_INT(sums[i][0], 2);
    }
}

/* COLUMN's share of the lenders whose numbers are divisible by DIVISOR, among all borrowers, in percent. */
static double share(size_t first, unsigned column, unsigned divisor)
{
    double all = 0, part = 0;
    for (size_t i = first; i < profile.samples.count; i++) {
        struct stack_id stack = profile.samples.stack[i];
        uint64_t number = profile.locations.items[profile_stack_location(&profile, stack.index)].address - 100;
        all += (double)values_of(i)[column];
        if (number % divisor == 0) part += (double)values_of(i)[column];
    }
    return 100 * part / all;
}

static size_t borrow(size_t samples_max)
{
    begin();
    static bool borrows[BORROWERS + 2], slept[2 * (LENDERS + BORROWERS)];
    memset(borrows, true, sizeof(borrows));
    CHECK(profile_stack_limit(&profile) < sizeof(slept));
    uint64_t ns = borrow_stacks(&profile, routines, borrows, slept, samples_max);
    CHECK_UINT(ns, (uint64_t)BORROWERS * 69 * MS);
    CHECK(profile.samples.count <= LENDERS + samples_max);
    check_threads(LENDERS);
    return profile.samples.count - LENDERS;
}

static void borrow_exactly(double ret_shares[VALUES][2])
{
    CHECK(borrow(1000000) > BORROWERS * LENDERS);
    for (unsigned i = CPU; i < VALUES; i++) {
        ret_shares[i][0] = share(LENDERS, i, 10);
        ret_shares[i][1] = share(LENDERS, i, 2);
    }
    profile_fini(&profile);
}

TEST(each_borrower_has_all_stacks_where_there_is_room)
{
    double shares[VALUES][2];
    borrow_exactly(shares);
    CHECK(fabs(shares[CPU][0] - 2100.0 / 201) < 0.01);
    CHECK(fabs(shares[CPU][1] - 10100.0 / 201) < 0.01);
    CHECK(fabs(shares[BLOCKED][0] - 100) < 0.01);
}

/* Tried with three samples for each borrower, and with sixty. */
TEST(each_borrower_has_some_stacks_and_all_of_them_have_each)
{
    double exact[VALUES][2];
    borrow_exactly(exact);
    for (unsigned room = 6; room <= 120; room *= 20) {
        (void)borrow((size_t)BORROWERS * room);
        for (unsigned i = CPU; i < VALUES; i++) {
            CHECK(fabs(share(LENDERS, i, 10) - exact[i][0]) < 1.5);
            CHECK(fabs(share(LENDERS, i, 2) - exact[i][1]) < 1.5);
        }
        profile_fini(&profile);
    }
}

/* 64 and 5 ms of each borrower, in periods of 5 ms. */
TEST(a_borrower_has_as_many_stacks_as_its_periods)
{
    double exact[VALUES][2];
    borrow_exactly(exact);
    period = 5 * MS;
    size_t samples = borrow(1000000);
    CHECK(samples > (size_t)BORROWERS * 8 && samples <= (size_t)BORROWERS * (3 * 14 + 3 * 3));
    for (unsigned i = CPU; i < VALUES; i++) CHECK(fabs(share(LENDERS, i, 2) - exact[i][1]) < 1.5);
    profile_fini(&profile);
}

/* Ten lenders compute for 1 ms each, with a wait of 2 ms. One was seen asleep, and has no time but a wait after that.
 */
TEST(waits_after_sleeps_are_where_a_thread_was_seen_asleep)
{
    bool borrows[BORROWERS + 2] = {[2] = true}, slept[64] = {false};
    profile_init(&profile);
    for (unsigned i = 0; i < VALUES; i++) profile_add_value_type(&profile, i ? "wall" : "samples", "nanoseconds");
    routine = location(1, "run");
    too_short = location(2, NO_STACK_TOO_SHORT);
    struct thread_id lender = thread(1), borrower = thread(2);
    for (unsigned i = 0; i < 10; i++) add(lender, location(101, "compute"), MS, 2 * MS, 0);
    add(lender, location(102, "sleep"), 0, 7 * MS, 0);
    slept[profile.samples.stack[profile.samples.count - 1].index] = true;
    add(borrower, too_short, 3 * MS, 60 * MS, 0);
    add(borrower, too_short, 0, 5 * MS, 0);
    CHECK(profile_stack_limit(&profile) < sizeof(slept));
    CHECK_UINT(borrow_stacks(&profile, routines, borrows, slept, 1000), 68 * MS);
    CHECK(fabs(share(11, RUNNABLE, 2) - 100 * 5.0 / 65) < 0.01);
    CHECK(fabs(share(11, CPU, 2)) < 0.01);
    profile_fini(&profile);
}

TEST_MAIN()
