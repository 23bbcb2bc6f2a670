/* Options of the program take precedence over the environment, also where they are 0 or false.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "deliver/program_script.h"
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

TEST(variables_of_other_tools_count_after_our_own)
{
    struct settings settings;
    struct error error = {0};
    const struct offbeat_options options = {.size = sizeof(options)};
    (void)setenv("SENTRY_DSN", "theirs", true);
    (void)setenv("OFFBEAT_DSN", "ours", true);
    (void)setenv("SENTRY_RELEASE", "3.1", true);
    (void)setenv("SENTRY_ENVIRONMENT", "staging", true);
    (void)setenv("OTEL_SERVICE_NAME", "sh@op", true);
    CHECK_UINT(settings_resolve(&options, &settings, &error), STATUS_OK);
    CHECK_TEXT(settings.options.dsn, "ours");
    CHECK_TEXT(settings.options.environment, "staging");
    CHECK_TEXT(settings.options.release, "sh-op@3.1");
    settings_fini(&settings);
    (void)unsetenv("OFFBEAT_DSN");
    (void)setenv("OFFBEAT_SERVICE", "cart", true);
    (void)setenv("OFFBEAT_RELEASE", "shop@4", true);
    CHECK_UINT(settings_resolve(&options, &settings, &error), STATUS_OK);
    CHECK_TEXT(settings.options.dsn, "theirs");
    CHECK_TEXT(settings.options.service, "cart");
    CHECK_TEXT(settings.options.release, "shop@4");
    settings_fini(&settings);
}

TEST(values_out_of_range_are_errors_from_the_program_and_the_environment)
{
    struct settings settings;
    struct error error = {0};
    struct offbeat_options options = {.size = sizeof(options), .profile_session_sample_rate = 100};
    CHECK_UINT(settings_resolve(&options, &settings, &error), STATUS_MALFORMED);
    CHECK_TEXT(error.message, "profile_session_sample_rate must be a number from 0 to 1, not 100");
    settings_fini(&settings);
    options = (struct offbeat_options){.size = sizeof(options), .mode = (enum offbeat_mode)7};
    CHECK_UINT(settings_resolve(&options, &settings, &error), STATUS_MALFORMED);
    settings_fini(&settings);
    (void)setenv("OFFBEAT_CHUNK_SECONDS", "61", true);
    CHECK_UINT(settings_resolve(NULL, &settings, &error), STATUS_MALFORMED);
    CHECK_TEXT(error.message, "OFFBEAT_CHUNK_SECONDS must be a whole number from 1 to 60, not \"61\"");
    settings_fini(&settings);
    (void)unsetenv("OFFBEAT_CHUNK_SECONDS");
}

TEST(the_service_of_an_interpreter_is_its_script)
{
    static const struct {
        const char *interpreter, *arguments, *script; /* arguments are separated by blanks */
    } cases[] = {
        {"python3.11", "python3 -W ignore -u /srv/app.py --port 1", "app.py"},
        {"python3", "python3 -m http.server", "http.server"},
        {"python3", "python3 -c x app.py", ""},
        {"perl", "perl -w /usr/bin/cloc .", "cloc"},
        {"node", "node --require ./a.js server.js", "server.js"},
        {"java", "java -Xmx1g -cp a.jar -jar /opt/shop.jar", "shop.jar"},
        {"sh", "sh -c ls", ""},
        {"bash", "bash run.sh", "run.sh"},
        {"redis-server", "redis-server x.conf", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char arguments[128];
        size_t size = strlen(cases[i].arguments) + 1;
        memcpy(arguments, cases[i].arguments, size);
        for (size_t at = 0; at < size; at++) arguments[at] = arguments[at] == ' ' ? '\0' : arguments[at];
        struct slice script = program_script(cases[i].interpreter, slice_of(arguments, size));
        if (!slice_equals_text(script, cases[i].script)) TEST_FAIL("%s", cases[i].arguments);
    }
}

TEST_MAIN()
