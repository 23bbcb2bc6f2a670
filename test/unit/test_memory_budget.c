/* Tests how many files with code the recorder closes.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "recorder/memory_budget.h"

TEST(files_beyond_the_maximum_are_closed_at_once)
{
    struct memory_budget budget = {.bytes_max = 1000};
    CHECK_UINT(memory_budget_note(&budget, 1000, 100, 100), 0);
    CHECK(!budget.is_exceeded);
    CHECK_UINT(memory_budget_note(&budget, 1000, 600, 100), 500);
    CHECK(!budget.is_exceeded);
}

TEST(too_little_memory_closes_a_part_that_does_not_hold_up_the_recorder)
{
    struct memory_budget budget = {.bytes_max = 1000};
    CHECK_UINT(memory_budget_note(&budget, 1001, 20, 100), 6);
    CHECK(budget.is_exceeded);
    CHECK_UINT(memory_budget_note(&budget, 1001, 3000, 3000), 32);
    CHECK_UINT(memory_budget_note(&budget, 1001, 3000, 2900), 100);
    CHECK_UINT(memory_budget_note(&budget, 999, 3000, 3000), 0);
    CHECK(!budget.is_exceeded);
}

TEST(any_memory_is_allowed_without_a_maximum)
{
    struct memory_budget budget = {.bytes_max = 0};
    CHECK_UINT(memory_budget_note(&budget, UINT64_MAX, 100, 100), 0);
    CHECK(!budget.is_exceeded);
    CHECK(memory_budget_own_bytes() > 0);
}

TEST_MAIN()
