/* Options of the program take precedence over the environment, also where they are 0 or false.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "sdk/settings.h"

#include <stdlib.h>

/* The environment says 0.5, 1 and true for everything that these tests ask for. */
static void resolve(const struct offbeat_options *options, struct settings *ret_settings)
{
    static const char *const variables[][2] = {{"OFFBEAT_PROFILE_SESSION_SAMPLE_RATE", "0.5"},
                                               {"OFFBEAT_TRACES_SAMPLE_RATE", "0.5"},
                                               {"OFFBEAT_PROFILES_SAMPLE_RATE", "0.5"},
                                               {"OFFBEAT_START_PROFILER_ON_APP_START", "1"},
                                               {"OFFBEAT_IS_UI", "true"},
                                               {"OFFBEAT_REPEATS_IDLE", "1"},
                                               {"OFFBEAT_DEBUG", "true"}};
    struct error error = {0};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (setenv(variables[i][0], variables[i][1], true) != 0) TEST_FAIL("no environment");
    }
    if (settings_resolve(options, ret_settings, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
}

static bool is_rate(double rate, double expected)
{
    return rate > expected - 0.001 && rate < expected + 0.001;
}

TEST(options_that_are_not_set_come_from_the_environment)
{
    struct settings settings;
    resolve(&(struct offbeat_options){.size = sizeof(struct offbeat_options)}, &settings);
    CHECK(is_rate(settings.options.profile_session_sample_rate, 0.5));
    CHECK(is_rate(settings.options.traces_sample_rate, 0.5));
    CHECK(settings.has_traces_sample_rate && settings.has_profiles_sample_rate);
    CHECK_UINT(settings.options.start_profiler_on_app_start, 1);
    CHECK_UINT(settings.options.is_ui, 1);
    CHECK_UINT(settings.options.repeats_idle, 1);
    CHECK_UINT(settings.options.debug, 1);
    settings_fini(&settings);
}

TEST(zero_and_false_take_precedence_over_the_environment)
{
    struct settings settings;
    resolve(&(struct offbeat_options){.size = sizeof(struct offbeat_options),
                                      .profile_session_sample_rate = OFFBEAT_RATE_ZERO,
                                      .traces_sample_rate = OFFBEAT_RATE_ZERO,
                                      .profiles_sample_rate = OFFBEAT_RATE_ZERO,
                                      .start_profiler_on_app_start = OFFBEAT_FALSE,
                                      .is_ui = OFFBEAT_FALSE,
                                      .repeats_idle = OFFBEAT_FALSE,
                                      .debug = OFFBEAT_FALSE},
            &settings);
    CHECK(is_rate(settings.options.profile_session_sample_rate, 0));
    CHECK(is_rate(settings.options.traces_sample_rate, 0));
    CHECK(!settings.has_traces_sample_rate && !settings.has_profiles_sample_rate);
    CHECK_UINT(settings.options.start_profiler_on_app_start, 0);
    CHECK_UINT(settings.options.is_ui, 0);
    CHECK_UINT(settings.options.repeats_idle, 0);
    CHECK_UINT(settings.options.debug, 0);
    settings_fini(&settings);
}

TEST_MAIN()
