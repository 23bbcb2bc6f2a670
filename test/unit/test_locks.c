/* SPDX-License-Identifier: MIT */
#include "base/invariant.h"
#include "sdk/locks.h"
#include "test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The wait status of a child in which a failed invariant aborts and RUN returns what it checked. */
static int status_of(bool (*run)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)close(STDERR_FILENO);
        invariant_set_aborts(true);
        _exit(run() ? 42 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static bool is_aborted(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static bool is_well(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

static bool takes_all_in_order(void)
{
    lock_take(LOCK_TURN);
    lock_check_order(LOCK_CALLS);
    lock_note_taken(LOCK_CALLS);
    lock_take(LOCK_PROFILER);
    lock_take(LOCK_SENDER);
    lock_take(LOCK_LINES);
    bool holds = lock_any_is_held() && lock_is_held(LOCK_LINES);
    lock_give(LOCK_LINES);
    lock_give(LOCK_SENDER);
    lock_give(LOCK_PROFILER);
    lock_note_given(LOCK_CALLS);
    lock_give(LOCK_TURN);
    return holds && !lock_any_is_held();
}

static bool takes_the_profilers_with_the_senders(void)
{
    lock_take(LOCK_SENDER);
    lock_take(LOCK_PROFILER);
    return true;
}

static bool takes_one_twice(void)
{
    lock_take(LOCK_SENDER);
    lock_check_order(LOCK_SENDER);
    return true;
}

static bool calls_the_program_with_a_lock(void)
{
    lock_take(LOCK_PROFILER);
    lock_check_order(LOCK_CALLS);
    return true;
}

static bool calls_the_program_in_a_call(void)
{
    lock_note_taken(LOCK_CALLS);
    lock_check_order(LOCK_CALLS);
    return true;
}

static bool waits_for_the_turn_out_of_order(void)
{
    lock_take(LOCK_PROFILER);
    return lock_take_until(LOCK_TURN, UINT64_MAX);
}

static bool uses_what_it_has_not_locked(void)
{
    return lock_check_held(LOCK_PROFILER);
}

TEST(locks_may_be_taken_in_their_order)
{
    CHECK(is_well(status_of(takes_all_in_order)));
    CHECK(is_well(status_of(calls_the_program_in_a_call)));
}

TEST(a_wrong_order_aborts_under_test)
{
    CHECK(is_aborted(status_of(takes_the_profilers_with_the_senders)));
    CHECK(is_aborted(status_of(takes_one_twice)));
    CHECK(is_aborted(status_of(calls_the_program_with_a_lock)));
}

TEST(a_lock_with_a_deadline_may_be_out_of_order)
{
    CHECK(is_well(status_of(waits_for_the_turn_out_of_order)));
}

TEST(a_missing_lock_aborts_under_test)
{
    CHECK(is_aborted(status_of(uses_what_it_has_not_locked)));
}

TEST(a_wrong_order_is_counted_in_the_field_and_the_lock_taken)
{
    unsigned before = invariant_failures();
    invariant_set_aborts(false);
    lock_take(LOCK_SENDER);
    lock_take(LOCK_PROFILER);
    CHECK(lock_is_held(LOCK_PROFILER));
    CHECK_UINT(invariant_failures(), before + 1);
    lock_give(LOCK_PROFILER);
    lock_give(LOCK_SENDER);
    CHECK(!lock_any_is_held());
}

/* As in a child that a signal handler forks: its locks are free, and what the handler interrupted gives them up. */
TEST(a_forked_child_holds_nothing_and_may_return_to_what_held_a_lock)
{
    unsigned before = invariant_failures();
    lock_take(LOCK_PROFILER);
    locks_forget();
    CHECK(!lock_any_is_held());
    CHECK(lock_check_held(LOCK_PROFILER));
    lock_give(LOCK_PROFILER);
    lock_take(LOCK_PROFILER);
    lock_give(LOCK_PROFILER);
    CHECK_UINT(invariant_failures(), before);
}

TEST_MAIN()
