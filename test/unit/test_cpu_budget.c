/* Tests how much rarer samples are for a share of a processor.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "recorder/cpu_budget.h"

#define SECOND UINT64_C(1000000000)

/* Runs SECONDS, in which recording takes SAMPLING_NS a second if samples are as asked, and FIXED_NS in any case.
 * Returns the part of a processor that the last half took, millionths. */
static uint64_t run(struct cpu_budget *budget, unsigned seconds, uint64_t sampling_ns, uint64_t fixed_ns)
{
    uint64_t used_ns = budget->used_ns, half_ns = 0;
    for (unsigned i = 0; i < seconds; i++) {
        if (i == seconds / 2) half_ns = used_ns;
        used_ns += fixed_ns + (uint64_t)((double)sampling_ns / budget->slowness);
        (void)cpu_budget_note(budget, budget->time_ns + SECOND, used_ns);
    }
    return (used_ns - half_ns) / (seconds - seconds / 2) / 1000;
}

TEST(samples_are_rarer_until_they_cost_the_share)
{
    struct cpu_budget budget;
    cpu_budget_begin(&budget, 10000, SECOND);
    budget.used_ns = 0;
    uint64_t share = run(&budget, 200, SECOND / 20, SECOND / 1000); /* 5 % and 0.1 %, of 1 % */
    CHECK(share > 8000 && share < 11000);
    CHECK(budget.is_exceeded && budget.slowness > 4 && budget.slowness < 8);
}

TEST(samples_are_as_asked_again_when_they_cost_less)
{
    struct cpu_budget budget;
    cpu_budget_begin(&budget, 10000, SECOND);
    budget.used_ns = 0;
    (void)run(&budget, 60, SECOND / 20, 0);
    CHECK(budget.slowness > 3);
    (void)run(&budget, 120, SECOND / 1000, 0);
    CHECK(budget.slowness == 1 && !budget.is_exceeded);
}

TEST(a_burst_does_not_slow_for_long)
{
    struct cpu_budget budget;
    cpu_budget_begin(&budget, 10000, SECOND);
    budget.used_ns = 0;
    (void)cpu_budget_note(&budget, budget.time_ns + SECOND, 10 * SECOND); /* 1 000 seconds of the share */
    CHECK(budget.slowness == 2);
    (void)run(&budget, 60, SECOND / 1000, 0);
    CHECK(budget.slowness == 1);
}

TEST(no_share_changes_nothing)
{
    struct cpu_budget budget;
    cpu_budget_begin(&budget, 0, SECOND);
    CHECK(!cpu_budget_check(&budget, 100 * SECOND));
    CHECK(budget.slowness == 1);
}

TEST_MAIN()
