/* When the profiler runs, one by one, as a matrix, and as a long walk in which what must always hold is checked: SES-1,
 * SES-2, SES-3, SES-4, SES-5, SES-6, SES-7, SES-8, SES-9, SES-10, SES-11.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "sampler/sampler.h"
#include "sdk/lifecycle.h"

#include <math.h>

static struct lifecycle machine;
static const double yes = 0, no = 0.999; /* draws, for a rate of one half */

static const char *name_of(enum lifecycle_action action)
{
    static const char *const names[] = {"nothing", "start", "stop", "restart", "finish chunk", "keep on"};
    return names[action];
}

#define CHECK_STEP(step, expected)                                                                                     \
    do {                                                                                                               \
        struct lifecycle_step check_step = (step);                                                                     \
        CHECK_TEXT(name_of(check_step.action), (expected));                                                            \
    } while (0)

/* Checks that nothing is done, for the reason WHY. */
#define CHECK_NO_OPERATION(step, why)                                                                                  \
    do {                                                                                                               \
        struct lifecycle_step check_step = (step);                                                                     \
        CHECK_TEXT(name_of(check_step.action), "nothing");                                                             \
        CHECK(check_step.message &&strstr(check_step.message, (why)));                                                 \
    } while (0)

static struct lifecycle_options manual(void)
{
    return (struct lifecycle_options){.profile_session_sample_rate = 0.5};
}

static struct lifecycle_options trace(void)
{
    return (struct lifecycle_options){.mode = LIFECYCLE_TRACE, .profile_session_sample_rate = 0.5, .has_tracing = true};
}

static struct lifecycle_step begin(struct lifecycle_options options, double draw)
{
    return lifecycle_init(&machine, &options, LIFECYCLE_KEPT_NOTHING, draw, no);
}

static uint32_t token; /* token of the last root that started */

/* Starts a root in a trace of its own. */
static struct lifecycle_step root(bool is_sampled)
{
    static uint64_t last_trace = 1000;
    return lifecycle_root_started(&machine, is_sampled, ++last_trace, &token);
}

static struct lifecycle_step root_of(uint64_t trace)
{
    return lifecycle_root_started(&machine, true, trace, &token);
}

static struct lifecycle_step end(uint32_t of, bool is_sampled)
{
    return lifecycle_root_ended(&machine, of, is_sampled);
}

/* --- Rates and defaults ------------------------------------------------------------------------------------------- */

TEST(SES_1_threads_are_sampled_101_times_a_second_which_is_a_prime)
{
    CHECK_UINT(SAMPLER_FREQUENCY_DEFAULT, 101);
    for (unsigned i = 2; i * i <= SAMPLER_FREQUENCY_DEFAULT; i++) CHECK(SAMPLER_FREQUENCY_DEFAULT % i != 0);
}

TEST(SES_2_a_session_is_sampled_by_its_rate_once_and_by_default_not)
{
    begin((struct lifecycle_options){0}, 0);
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "not sampled");
    CHECK(!lifecycle_warning(&(struct lifecycle_options){0}, 0));
    begin((struct lifecycle_options){.profile_session_sample_rate = 1}, 0.999999);
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    begin(manual(), 0.5);
    for (int i = 0; i < 3; i++) CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "not sampled");
    begin(manual(), 0.499999);
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
}

TEST(SES_2_an_invalid_rate_samples_nothing)
{
    static const double rates[] = {-0.1, 1.1, NAN, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        begin((struct lifecycle_options){.profile_session_sample_rate = rates[i]}, 0);
        CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "not sampled");
    }
}

TEST(SES_3_the_lifecycle_is_manual_by_default)
{
    struct lifecycle_options options = {.profile_session_sample_rate = 1, .has_tracing = true};
    begin(options, 0);
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    CHECK(!lifecycle_warning(&options, 0));
}

/* --- Manual ------------------------------------------------------------------------------------------------------- */

TEST(SES_4_the_program_restarts_a_sampled_session_whatever_spans_do)
{
    begin(manual(), yes);
    for (int i = 0; i < 3; i++) {
        CHECK_STEP(lifecycle_start_profiler(&machine), "start");
        CHECK_STEP(root(true), "nothing");
        CHECK_STEP(lifecycle_chunk_ended(&machine), "nothing");
        CHECK_STEP(end(token, true), "nothing");
        CHECK_STEP(lifecycle_stop_profiler(&machine), "stop");
    }
}

TEST(SES_7_start_and_stop_that_do_nothing_say_why)
{
    begin(manual(), yes);
    CHECK_NO_OPERATION(lifecycle_stop_profiler(&machine), "is not running");
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "is running");
    begin(manual(), no);
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "not sampled");
    begin(trace(), yes);
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "profile_lifecycle is trace");
    CHECK_STEP(root(true), "start");
    CHECK_NO_OPERATION(lifecycle_stop_profiler(&machine), "profile_lifecycle is trace");
    CHECK_UINT(machine.profiler, LIFECYCLE_RUNNING);
}

/* --- Trace -------------------------------------------------------------------------------------------------------- */

TEST(SES_5_trace_without_tracing_is_reported)
{
    struct lifecycle_options options = trace();
    CHECK(!lifecycle_warning(&options, 0));
    options.has_tracing = false;
    CHECK(strstr(lifecycle_warning(&options, 0), "tracing is off"));
    CHECK(!lifecycle_warning(&options, 1));
}

TEST(SES_5_runs_from_the_first_sampled_root_to_the_last_chunk_end)
{
    begin(trace(), yes);
    CHECK_STEP(root(false), "nothing");
    CHECK_STEP(root(true), "start");
    uint32_t first = token;
    CHECK_STEP(root(true), "nothing");
    uint32_t second = token;
    CHECK_STEP(end(first, true), "nothing");
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(end(second, true), "nothing");
    CHECK_STEP(lifecycle_chunk_ended(&machine), "nothing"); /* the next begins */
    CHECK_STEP(end(token, true), "finish chunk");
    CHECK_STEP(lifecycle_chunk_ended(&machine), "stop");
    CHECK_STEP(lifecycle_chunk_ended(&machine), "nothing");
    CHECK_STEP(root(false), "nothing"); /* each root decides again */
    CHECK_STEP(end(token, false), "nothing");
    CHECK_STEP(root(true), "start");
}

TEST(SES_5_a_sampled_root_during_the_last_chunk_keeps_it_running)
{
    begin(trace(), yes);
    CHECK_STEP(root(true), "start");
    CHECK_STEP(end(token, true), "finish chunk");
    CHECK_STEP(root(false), "nothing");
    CHECK_STEP(root(true), "keep on");
    CHECK_STEP(lifecycle_chunk_ended(&machine), "nothing");
    CHECK_STEP(end(token, true), "finish chunk");
}

TEST(SES_5_an_unsampled_root_that_ends_beside_sampled_ones_stops_nothing)
{
    begin(trace(), yes);
    CHECK_STEP(root(true), "start");
    uint32_t sampled = token;
    for (int i = 0; i < 3; i++) {
        CHECK_STEP(root(false), "nothing");
        CHECK_STEP(end(token, false), "nothing");
    }
    CHECK_STEP(end(sampled, true), "finish chunk");
}

TEST(SES_6_a_session_that_is_not_sampled_is_never_profiled)
{
    begin(trace(), no);
    for (int i = 0; i < 3; i++) {
        CHECK_STEP(root(true), "nothing");
        CHECK_STEP(end(token, true), "nothing");
    }
}

/* --- V1 ----------------------------------------------------------------------------------------------------------- */

TEST(SES_8_V1_options_replace_session_options_with_a_warning)
{
    struct lifecycle_options options = trace();
    options.has_v1 = options.starts_on_app_start = true;
    CHECK(strstr(lifecycle_warning(&options, 0), "profile_session_sample_rate has no effect"));
    CHECK(strstr(lifecycle_warning(&options, 1), "profile_lifecycle has no effect"));
    CHECK(strstr(lifecycle_warning(&options, 2), "start_profiler_on_app_start has no effect"));
    CHECK(!lifecycle_warning(&options, 3));
    CHECK_STEP(lifecycle_init(&machine, &options, LIFECYCLE_KEPT_YES, yes, yes), "nothing");
    CHECK_UINT(machine.for_next_launch, LIFECYCLE_KEPT_NOTHING);
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "V1");
    CHECK_NO_OPERATION(lifecycle_stop_profiler(&machine), "V1");
}

TEST(SES_8_only_V1_options_or_only_session_options_give_no_warning)
{
    struct lifecycle_options options = {.has_v1 = true, .has_tracing = true};
    CHECK(!lifecycle_warning(&options, 0));
    options.profile_session_sample_rate = 1;
    CHECK(strstr(lifecycle_warning(&options, 0), "profile_session_sample_rate has no effect"));
    CHECK(!lifecycle_warning(&options, 1));
    options = trace();
    options.starts_on_app_start = true;
    CHECK(!lifecycle_warning(&options, 0));
    options = (struct lifecycle_options){.has_v1 = true};
    CHECK(strstr(lifecycle_warning(&options, 0), "tracing is off"));
}

TEST(SES_8_SES_9_V1_transactions_continue_in_a_new_session)
{
    begin((struct lifecycle_options){.has_v1 = true, .has_tracing = true, .is_ui = true}, no);
    CHECK_STEP(root(true), "start");
    uint32_t first = token;
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, no), "nothing");
    CHECK_STEP(end(first, true), "nothing");
    CHECK_STEP(end(token, true), "stop");
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(root(true), "start");
    CHECK_STEP(end(token, true), "stop");
}

TEST(SES_8_V1_transactions_start_and_stop_it_in_any_session)
{
    begin((struct lifecycle_options){.has_v1 = true, .has_tracing = true}, no);
    CHECK(!lifecycle_profiles_transaction(&machine, false, 1, 0));
    CHECK(!lifecycle_profiles_transaction(&machine, true, 0.5, 0.5));
    CHECK(!lifecycle_profiles_transaction(&machine, true, NAN, 0));
    CHECK(lifecycle_profiles_transaction(&machine, true, 0.5, 0.4));
    CHECK_STEP(root(true), "start");
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(end(token, true), "nothing");
    CHECK_STEP(end(token, true), "stop");
    CHECK_STEP(root(false), "nothing");
    begin(trace(), yes);
    CHECK(!lifecycle_profiles_transaction(&machine, true, 1, 0));
}

/* --- Sessions of a user ------------------------------------------------------------------------------------------- */

static struct lifecycle_options ui(struct lifecycle_options options)
{
    options.is_ui = true;
    return options;
}

TEST(SES_9_the_session_of_a_process_knows_no_background)
{
    begin(manual(), yes);
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    CHECK_NO_OPERATION(lifecycle_background(&machine), "lasts as long as the process");
    CHECK_NO_OPERATION(lifecycle_foreground(&machine, no), "lasts as long as the process");
    CHECK_STEP(lifecycle_stop_profiler(&machine), "stop");
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
}

TEST(SES_9_a_user_who_comes_back_begins_a_new_session_decided_again)
{
    begin(ui(manual()), yes);
    CHECK_NO_OPERATION(lifecycle_foreground(&machine, no), "in the foreground");
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    CHECK_STEP(lifecycle_background(&machine), "stop");
    CHECK_NO_OPERATION(lifecycle_background(&machine), "in the background");
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "the session has ended");
    CHECK_STEP(lifecycle_foreground(&machine, no), "nothing");
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "not sampled");
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, yes), "nothing");
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
}

TEST(SES_9_an_open_trace_extends_the_session_to_its_last_root)
{
    begin(ui(trace()), yes);
    CHECK_STEP(root(true), "start");
    uint32_t first = token;
    CHECK_STEP(root(true), "nothing");
    uint32_t second = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(root(true), "nothing"); /* no session */
    uint32_t between = token;
    CHECK_STEP(lifecycle_foreground(&machine, no), "nothing");
    CHECK_STEP(root(true), "nothing"); /* a session that is not sampled */
    CHECK_STEP(end(first, true), "nothing");
    CHECK_STEP(end(between, true), "nothing");
    CHECK_STEP(end(second, true), "finish chunk");
    CHECK_STEP(lifecycle_chunk_ended(&machine), "stop");
    CHECK_STEP(end(token, true), "nothing");
    CHECK_STEP(root(true), "nothing");
}

TEST(SES_9_a_new_profiler_follows_a_trace_of_the_old_session)
{
    begin(ui(trace()), yes);
    CHECK_STEP(root(true), "start");
    uint32_t first = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, yes), "nothing");
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(end(first, true), "restart");
    CHECK_STEP(end(token, true), "finish chunk");
}

/* "The existing profiling session continues until the last root span in that trace finishes". */
TEST(SES_9_a_later_root_of_a_carried_trace_carries_the_session_too)
{
    begin(ui(trace()), yes);
    CHECK_STEP(root_of(7), "start");
    uint32_t first = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(root_of(7), "nothing"); /* in the background, too */
    uint32_t second = token;
    CHECK_STEP(lifecycle_foreground(&machine, no), "nothing");
    CHECK_STEP(root_of(7), "nothing");
    uint32_t third = token;
    CHECK_STEP(end(first, true), "nothing");
    CHECK_STEP(end(second, true), "nothing");
    CHECK_STEP(end(third, true), "finish chunk");
    CHECK_STEP(root_of(7), "nothing"); /* the trace had no open root: this one is of the new session, not sampled */
}

TEST(SES_9_a_root_of_another_trace_does_not_carry_the_session)
{
    begin(ui(trace()), yes);
    CHECK_STEP(root_of(7), "start");
    uint32_t first = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(root_of(8), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, no), "nothing");
    CHECK_STEP(root_of(9), "nothing");
    CHECK_STEP(root_of(8), "nothing"); /* a root that began in the background belongs to no session */
    CHECK_STEP(end(first, true), "finish chunk");
}

TEST(SES_9_of_more_traces_than_are_kept_each_root_still_counts)
{
    enum { ROOTS = 3 * LIFECYCLE_TRACES_MAX };
    uint32_t tokens[ROOTS];
    begin(ui(trace()), yes);
    for (uint64_t i = 0; i < ROOTS; i++) {
        CHECK_STEP(root_of(i), i == 0 ? "start" : "nothing");
        tokens[i] = token;
    }
    for (size_t i = 0; i < ROOTS; i++) CHECK_STEP(end(tokens[i], true), i + 1 == ROOTS ? "finish chunk" : "nothing");
}

/* manual is "independent of spans": a trace does not carry what the program started. */
TEST(SES_16_manual_background_stops_at_once_also_with_an_open_trace)
{
    struct lifecycle_options options = ui(manual());
    options.has_tracing = true;
    begin(options, yes);
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    CHECK_STEP(root_of(7), "nothing");
    uint32_t open = token;
    CHECK_STEP(lifecycle_background(&machine), "stop");
    CHECK_STEP(lifecycle_foreground(&machine, yes), "nothing");
    CHECK_STEP(root_of(7), "nothing");
    CHECK_STEP(end(open, true), "nothing");
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
}

TEST(SES_9_SES_11_a_session_does_not_extend_the_previous_chunk)
{
    begin(ui(trace()), yes);
    CHECK_STEP(root(true), "start");
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, yes), "nothing");
    CHECK_STEP(end(token, true), "finish chunk");
    CHECK_STEP(root(true), "restart");
}

TEST(SES_9_no_session_follows_an_open_trace_in_the_background)
{
    begin(ui(trace()), yes);
    CHECK_STEP(root(true), "start");
    uint32_t first = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, yes), "nothing");
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(end(first, true), "finish chunk");
}

TEST(SES_9_a_carried_trace_is_carried_as_often_as_the_user_leaves)
{
    begin(ui(trace()), yes);
    CHECK_STEP(root(true), "start");
    for (int i = 0; i < 3; i++) {
        CHECK_STEP(lifecycle_background(&machine), "nothing");
        CHECK_STEP(lifecycle_foreground(&machine, no), "nothing");
    }
    CHECK_STEP(end(token, true), "finish chunk");
}

TEST(SES_9_a_trace_that_was_not_profiled_carries_nothing)
{
    begin(ui(trace()), no);
    CHECK_STEP(root(true), "nothing");
    uint32_t first = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, yes), "nothing");
    CHECK_STEP(root(true), "start");
    uint32_t second = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, no), "nothing");
    CHECK_STEP(end(first, true), "nothing"); /* older than the profiler */
    CHECK_STEP(end(second, true), "finish chunk");
}

TEST(SES_9_a_last_chunk_that_finishes_is_not_waited_for_in_the_background)
{
    begin(ui(trace()), yes);
    CHECK_STEP(root(true), "start");
    CHECK_STEP(end(token, true), "finish chunk");
    CHECK_STEP(lifecycle_background(&machine), "stop");
    begin(ui(trace()), yes);
    CHECK_STEP(root(true), "start");
    uint32_t first = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, no), "nothing");
    CHECK_STEP(root(true), "nothing"); /* open, but of a session that is not sampled */
    CHECK_STEP(end(first, true), "finish chunk");
    CHECK_STEP(lifecycle_background(&machine), "stop");
}

/* --- The program's start ------------------------------------------------------------------------------------------ */

static struct lifecycle_step launch(struct lifecycle_options options, enum lifecycle_kept kept, double draw,
                                    double draw_next)
{
    options.starts_on_app_start = true;
    return lifecycle_init(&machine, &options, kept, draw, draw_next);
}

TEST(SES_10_what_one_launch_decides_the_next_one_does)
{
    for (int mode = 0; mode < 2; mode++) {
        struct lifecycle_options options = mode ? trace() : manual();
        CHECK_STEP(launch(options, LIFECYCLE_KEPT_NOTHING, yes, no), "nothing"); /* the first: nothing was decided */
        CHECK_UINT(machine.for_next_launch, LIFECYCLE_KEPT_NO);
        CHECK_STEP(launch(options, machine.for_next_launch, yes, yes), "nothing");
        CHECK_UINT(machine.for_next_launch, LIFECYCLE_KEPT_YES);
        CHECK_STEP(launch(options, machine.for_next_launch, no, no), "start");
        CHECK_UINT(machine.for_next_launch, LIFECYCLE_KEPT_NO);
    }
    begin(manual(), yes);
    CHECK_UINT(machine.for_next_launch, LIFECYCLE_KEPT_NOTHING);
}

TEST(SES_10_the_option_is_off_by_default_whatever_is_kept)
{
    struct lifecycle_options options = manual();
    CHECK_STEP(lifecycle_init(&machine, &options, LIFECYCLE_KEPT_YES, yes, yes), "nothing");
    CHECK_UINT(machine.for_next_launch, LIFECYCLE_KEPT_NOTHING);
}

TEST(SES_10_manual_the_program_stops_the_profile_of_its_start)
{
    CHECK_STEP(launch(manual(), LIFECYCLE_KEPT_YES, no, no), "start");
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(end(token, true), "nothing");
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "is running");
    CHECK_STEP(lifecycle_chunk_ended(&machine), "nothing");
    CHECK_STEP(lifecycle_stop_profiler(&machine), "stop");
    CHECK_STEP(lifecycle_start_profiler(&machine), "start"); /* the launch's session is sampled as was kept */
}

TEST(SES_10_the_launch_profile_stops_with_the_launch_root)
{
    for (int is_sampled = 0; is_sampled < 2; is_sampled++) {
        CHECK_STEP(launch(trace(), LIFECYCLE_KEPT_YES, no, no), "start");
        CHECK_STEP(root(is_sampled), "nothing");
        CHECK_STEP(end(token, is_sampled), "stop");
        CHECK_STEP(root(true), "start");
        CHECK_STEP(end(token, true), "finish chunk");
    }
}

TEST(SES_10_trace_roots_that_overlap_that_of_the_start_keep_it_going)
{
    CHECK_STEP(launch(trace(), LIFECYCLE_KEPT_YES, no, no), "start");
    CHECK_STEP(root(true), "nothing");
    uint32_t first = token;
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(end(first, true), "nothing");
    CHECK_STEP(end(token, true), "finish chunk");
    for (int is_sampled = 0; is_sampled < 2; is_sampled++) {
        CHECK_STEP(launch(trace(), LIFECYCLE_KEPT_YES, no, no), "start");
        CHECK_STEP(root(is_sampled), "nothing");
        first = token;
        CHECK_STEP(root(true), "nothing");
        CHECK_STEP(end(token, true), "nothing"); /* the start is not over */
        CHECK_STEP(end(first, is_sampled), "stop");
    }
}

TEST(SES_10_trace_a_start_without_any_root_is_over_with_its_first_chunk)
{
    CHECK_STEP(launch(trace(), LIFECYCLE_KEPT_YES, no, no), "start");
    struct lifecycle_step step = lifecycle_chunk_ended(&machine);
    CHECK_STEP(step, "stop");
    CHECK(step.message);
    CHECK_STEP(root(true), "start");
}

TEST(SES_9_SES_10_an_unsampled_launch_root_extends_the_session)
{
    CHECK_STEP(launch(ui(trace()), LIFECYCLE_KEPT_YES, no, no), "start");
    CHECK_STEP(root(false), "nothing");
    uint32_t first = token;
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(root(true), "nothing"); /* neither in a session nor in the app start */
    CHECK_STEP(end(token, true), "nothing");
    CHECK_STEP(end(first, false), "stop");
    CHECK_STEP(launch(ui(trace()), LIFECYCLE_KEPT_YES, no, no), "start");
    CHECK_STEP(lifecycle_background(&machine), "stop"); /* there is no root yet */
}

TEST(SES_10_a_start_that_a_limit_ended_is_over)
{
    CHECK_STEP(launch(trace(), LIFECYCLE_KEPT_YES, no, no), "start");
    CHECK_STEP(lifecycle_set_limited(&machine, true), "stop");
    CHECK_STEP(lifecycle_set_limited(&machine, false), "nothing");
    CHECK(!lifecycle_chunk_ended(&machine).message);
    CHECK_STEP(root(false), "nothing");
    CHECK_STEP(root(true), "start");
    CHECK_STEP(end(token, true), "finish chunk"); /* the unsampled one is not that of the start */
}

TEST(SES_10_trace_without_tracing_starts_nothing)
{
    struct lifecycle_options options = trace();
    options.has_tracing = false;
    CHECK_STEP(launch(options, LIFECYCLE_KEPT_YES, yes, yes), "nothing");
    CHECK_UINT(machine.for_next_launch, LIFECYCLE_KEPT_NOTHING);
}

/* --- Limits and the end ------------------------------------------------------------------------------------------- */

TEST(a_server_that_wants_no_profiles_stops_it_until_the_next_start)
{
    begin(manual(), yes);
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    CHECK_STEP(lifecycle_set_limited(&machine, false), "nothing"); /* as a server repeats it */
    struct lifecycle_step step = lifecycle_set_limited(&machine, true);
    CHECK_STEP(step, "stop");
    CHECK(step.message && strstr(step.message, "wants no profiles"));
    CHECK_STEP(lifecycle_set_limited(&machine, true), "nothing");
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "wants no profiles");
    CHECK_STEP(lifecycle_set_limited(&machine, false), "nothing");
    CHECK(!lifecycle_set_limited(&machine, true).message); /* nothing stops */
    CHECK_STEP(lifecycle_set_limited(&machine, false), "nothing");
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    begin(trace(), yes);
    CHECK_STEP(root(true), "start");
    uint32_t first = token;
    CHECK_STEP(lifecycle_set_limited(&machine, true), "stop");
    CHECK_STEP(root(true), "nothing");
    CHECK_STEP(lifecycle_set_limited(&machine, false), "nothing");
    CHECK_STEP(end(token, true), "nothing");
    CHECK_STEP(root(true), "start");
    CHECK_STEP(end(token, true), "nothing"); /* the first is still open */
    CHECK_STEP(end(first, true), "finish chunk");
}

TEST(after_the_end_nothing_happens_and_init_begins_again)
{
    begin(manual(), yes);
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
    CHECK_STEP(lifecycle_close(&machine), "stop");
    CHECK_STEP(lifecycle_close(&machine), "nothing");
    CHECK_NO_OPERATION(lifecycle_start_profiler(&machine), "shut down");
    CHECK_NO_OPERATION(lifecycle_stop_profiler(&machine), "shut down");
    CHECK_STEP(lifecycle_background(&machine), "nothing");
    CHECK_STEP(lifecycle_foreground(&machine, yes), "nothing");
    CHECK(!lifecycle_background(&machine).message && !lifecycle_foreground(&machine, yes).message);
    begin(trace(), yes);
    CHECK_STEP(root(true), "start");
    CHECK_STEP(lifecycle_close(&machine), "stop");
    CHECK_STEP(end(token, true), "nothing");
    CHECK_STEP(root(true), "nothing");
    begin(manual(), yes);
    CHECK_STEP(lifecycle_start_profiler(&machine), "start");
}

/* --- The matrix --------------------------------------------------------------------------------------------------- */

/* Starts, restarts. SES-11: each is a new profiler_id, so none may come while one runs, and none may be missing. */
static void check_transition(enum lifecycle_profiler before, struct lifecycle_step step)
{
    static const struct {
        bool is_allowed[3]; /* earlier states: idle, running, finishing */
        int after;          /* -1: as before */
    } rules[] = {[LIFECYCLE_NOTHING] = {{true, true, true}, -1},
                 [LIFECYCLE_START] = {{true, false, false}, LIFECYCLE_RUNNING},
                 [LIFECYCLE_STOP] = {{false, true, true}, LIFECYCLE_IDLE},
                 [LIFECYCLE_RESTART] = {{false, true, true}, LIFECYCLE_RUNNING},
                 [LIFECYCLE_FINISH_CHUNK] = {{false, true, false}, LIFECYCLE_FINISHING},
                 [LIFECYCLE_KEEP_ON] = {{false, false, true}, LIFECYCLE_RUNNING}};
    CHECK(rules[step.action].is_allowed[before]);
    int after = rules[step.action].after;
    CHECK_INT(machine.profiler, after < 0 ? (int)before : after);
}

/* sampled/unsampled × manual/trace × app start × overlapping roots × restart (SES-4, 5, 6, 10, 11). */
static void walk_cell(bool is_sampled, bool is_trace, enum lifecycle_kept kept, bool overlap)
{
    struct lifecycle_options options = is_trace ? trace() : manual();
    options.starts_on_app_start = kept != LIFECYCLE_KEPT_NOTHING;
    bool session = kept == LIFECYCLE_KEPT_NOTHING ? is_sampled : kept == LIFECYCLE_KEPT_YES;
    bool starts = kept == LIFECYCLE_KEPT_YES;
    for (int restart = 0; restart < 2; restart++) {
        CHECK_STEP(lifecycle_init(&machine, &options, kept, is_sampled ? yes : no, no), starts ? "start" : "nothing");
        if (!is_trace && !starts) CHECK_STEP(lifecycle_start_profiler(&machine), session ? "start" : "nothing");
        uint32_t tokens[2];
        for (int round = 0; round < 2; round++) {
            bool begins = is_trace && session && !(round == 0 && starts);
            CHECK_STEP(root(true), begins ? "start" : "nothing");
            tokens[0] = token;
            if (overlap) {
                CHECK_STEP(root(true), "nothing");
                tokens[1] = token;
                CHECK_STEP(end(tokens[0], true), "nothing");
            }
            bool ends_start = is_trace && round == 0 && starts && !overlap;
            const char *expected = ends_start ? "stop" : is_trace && session ? "finish chunk" : "nothing";
            CHECK_STEP(end(tokens[overlap], true), expected);
            CHECK_STEP(lifecycle_chunk_ended(&machine), is_trace && session && !ends_start ? "stop" : "nothing");
        }
        if (!is_trace && session) {
            CHECK_STEP(lifecycle_stop_profiler(&machine), "stop");
            CHECK_STEP(lifecycle_start_profiler(&machine), "start");
        }
        CHECK_STEP(lifecycle_close(&machine), !is_trace && session ? "stop" : "nothing");
    }
}

TEST(SES_4_SES_5_SES_6_SES_10_SES_11_the_matrix)
{
    for (int is_sampled = 0; is_sampled < 2; is_sampled++) {
        for (int is_trace = 0; is_trace < 2; is_trace++) {
            for (int kept = LIFECYCLE_KEPT_NOTHING; kept <= LIFECYCLE_KEPT_YES; kept++) {
                walk_cell(is_sampled, is_trace, (enum lifecycle_kept)kept, false);
                walk_cell(is_sampled, is_trace, (enum lifecycle_kept)kept, true);
            }
        }
    }
}

static uint32_t random_below(uint32_t end_of_range)
{
    static uint64_t state = 42;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % end_of_range;
}

enum { OPEN_MAX = 6 };

struct open_root {
    uint32_t token;
    bool is_sampled;
};

static struct lifecycle_step random_root(struct open_root *open, size_t *count)
{
    if (*count < OPEN_MAX && random_below(2)) {
        struct open_root *next = &open[(*count)++];
        next->is_sampled = random_below(3) > 0;
        return lifecycle_root_started(&machine, next->is_sampled, random_below(3), &next->token);
    }
    if (*count == 0) return (struct lifecycle_step){0};
    size_t chosen = random_below((uint32_t)*count);
    struct open_root ended = open[chosen];
    open[chosen] = open[--*count];
    return lifecycle_root_ended(&machine, ended.token, ended.is_sampled);
}

static struct lifecycle_step random_event(struct open_root *open, size_t *count)
{
    switch (random_below(12)) {
    case 0:
        return lifecycle_start_profiler(&machine);
    case 1:
        return lifecycle_stop_profiler(&machine);
    case 2:
        return lifecycle_background(&machine);
    case 3:
        return lifecycle_foreground(&machine, random_below(2) ? yes : no);
    case 4:
        return lifecycle_set_limited(&machine, random_below(4) == 0);
    case 5:
        return lifecycle_chunk_ended(&machine);
    default:
        return random_root(open, count);
    }
}

TEST(SES_5_SES_9_SES_11_each_random_step_fits_the_model)
{
    struct open_root open[OPEN_MAX];
    size_t count = 0, starts = 0;
    for (int i = 0; i < 200000; i++) {
        enum lifecycle_profiler before = machine.profiler;
        if (i % 500 == 0) {
            struct lifecycle_options options = random_below(2) ? trace() : manual();
            options.is_ui = random_below(2);
            options.has_v1 = random_below(5) == 0;
            options.starts_on_app_start = random_below(2);
            count = 0;
            before = LIFECYCLE_IDLE;
            check_transition(before,
                             lifecycle_init(&machine, &options, (enum lifecycle_kept)random_below(3), yes, yes));
            continue;
        }
        struct lifecycle_step step = random_event(open, &count);
        check_transition(before, step);
        starts += step.action == LIFECYCLE_START;
        bool is_manual = machine.options.mode == LIFECYCLE_MANUAL && !machine.options.has_v1;
        if (machine.profiler != LIFECYCLE_RUNNING || is_manual) continue;
        size_t sampled = 0;
        for (size_t k = 0; k < count; k++) sampled += open[k].is_sampled;
        CHECK(sampled > 0 || machine.app_start != LIFECYCLE_STARTED);
        CHECK(machine.roots + machine.carried_roots <= sampled);
    }
    CHECK(starts > 1000);
}

TEST_MAIN()
