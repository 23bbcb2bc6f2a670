/* drop_frames and keep_frames (PPF-9).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "profile/profile_prune.h"

#define FRAMES_MAX 8

static struct line line_of(struct profile *profile, const char *name)
{
    return (struct line){.function =
                             profile_add_function(profile, &(struct function){.name = profile_text(profile, name)})};
}

static struct slice name_of(const struct profile *profile, struct line line)
{
    return profile_slice(profile, profile_function(profile, line.function)->name);
}

/* FRAMES root first, "outer<inner" for inlined ones, "?" for one without a name, blanks between. */
static void add_sample(struct profile *profile, const char *frames)
{
    char text[256];
    char *rest = text, *frame, *name;
    struct stack_id stack = {0};
    (void)snprintf(text, sizeof(text), "%s", frames);
    while ((frame = strsep(&rest, " "))) {
        struct line lines[FRAMES_MAX];
        uint32_t count = 0;
        for (; (name = strsep(&frame, "<")); count++) {
            memmove(lines + 1, lines, count * sizeof(*lines));
            lines[0] = line_of(profile, name);
        }
        if (count == 1 && slice_equals_text(name_of(profile, lines[0]), "?")) count = 0;
        struct location location = {.address = 0x1000 + profile->locations.count};
        stack = profile_add_stack(profile, stack, profile_add_location(profile, &location, lines, count));
    }
    profile_add_sample(profile, &(struct sample){.stack = stack}, (const int64_t[]){1});
}

static void append_frames(const struct profile *profile, struct stack_id id, char *text)
{
    if (id.index == 0) return;
    struct stack stack = profile_stack(profile, id);
    append_frames(profile, stack.parent, text);
    const struct location *location = profile_location(profile, stack.location);
    if (text[0] != '\0') strcat(text, " ");
    if (location->line_count == 0) strcat(text, "?");
    for (uint32_t i = location->line_count; i-- > 0;) {
        const struct function *function = profile_function(profile, profile_lines(profile, location)[i].function);
        strcat(text, profile_c_string(profile, function->name));
        if (i > 0) strcat(text, "<");
    }
}

static void check(const char *drop, const char *keep, const char *frames, const char *expected)
{
    struct profile profile;
    char left[256] = "";
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    profile.drop_frames = profile_text(&profile, drop);
    profile.keep_frames = profile_text(&profile, keep);
    add_sample(&profile, frames);
    CHECK_UINT(profile_prune(&profile, NULL), STATUS_OK);
    append_frames(&profile, profile.samples.stack[0], left);
    CHECK_TEXT(left, expected);
    profile_fini(&profile);
}

TEST(a_dropped_frame_takes_those_below_it_along_PPF_9)
{
    check("malloc", "", "main work malloc tcmalloc lock", "main work");
    check("malloc|free", "", "main free work malloc", "main");
    check("mal", "", "main malloc", "main malloc");
    check("", "", "main malloc", "main malloc");
}

TEST(keep_overrules_drop_PPF_9)
{
    check("runtime\\..*", "runtime\\.panic", "main runtime.panic runtime.mallocgc runtime.x", "main runtime.panic");
}

TEST(nothing_is_dropped_ahead_of_the_first_frame_that_does_not_match_PPF_9)
{
    check("runtime\\..*", "", "runtime.main runtime.doInit main runtime.mallocgc", "runtime.main runtime.doInit main");
    check("runtime\\..*", "", "runtime.main runtime.doInit", "runtime.main runtime.doInit");
    check("runtime\\..*", "", "runtime.main ? runtime.doInit", "runtime.main ?");
}

TEST(of_inlined_functions_the_outer_ones_stay_PPF_9)
{
    check("malloc", "", "main work<malloc<lock leaf", "main work");
    check("malloc", "", "main malloc<work leaf", "main");
    check("malloc", "", "main<malloc leaf", "main leaf");
    check("malloc", "", "main<malloc work<malloc leaf<malloc", "main work leaf");
    check("malloc", "", "malloc<main leaf", "malloc<main leaf");
}

TEST(names_match_without_parameters_PPF_9)
{
    check("ns::f", "", "main ns::f(int,(anonymous_namespace)::T)", "main");
    check("ns::operator\\(\\)", "", "main ns::operator()(int)", "main");
    check("\\(anonymous namespace\\)::f", "", "main f", "main f");
    check("f", "", "main .f(int)", "main");
}

TEST(samples_that_share_callers_are_cut_each_on_its_own)
{
    struct profile profile;
    char left[2][64] = {"", ""};
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    profile.drop_frames = profile_text(&profile, "malloc");
    add_sample(&profile, "main work");
    add_sample(&profile, "main work malloc");
    CHECK_UINT(profile_prune(&profile, NULL), STATUS_OK);
    for (int i = 0; i < 2; i++) append_frames(&profile, profile.samples.stack[i], left[i]);
    CHECK_TEXT(left[0], "main work");
    CHECK_TEXT(left[1], "main work");
    profile_fini(&profile);
}

TEST(a_broken_expression_is_reported_and_drops_nothing)
{
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    add_sample(&profile, "main malloc");
    profile.drop_frames = profile_text(&profile, "malloc");
    profile.keep_frames = profile_text(&profile, "(a");
    uint32_t stack = profile.samples.stack[0].index;
    CHECK_UINT(profile_prune(&profile, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "keep_frames") != NULL);
    CHECK_UINT(profile.samples.stack[0].index, stack);
    profile_fini(&profile);
}

/* Each character of the name is looked for by 8000 parts of the expression at once. */
TEST(an_expression_that_takes_too_long_is_rejected_and_nothing_dropped)
{
    enum { NAME_BYTES = 100000 };
    struct profile profile;
    struct error error = {0};
    char *name = calloc(1, NAME_BYTES + 1);
    memset(name, 'a', NAME_BYTES);
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    struct line line = line_of(&profile, name);
    struct location_id place = profile_add_location(&profile, &(struct location){.address = 1}, &line, 1);
    profile_add_sample(&profile, &(struct sample){.stack = profile_add_stack(&profile, (struct stack_id){0}, place)},
                       (const int64_t[]){1});
    profile.drop_frames = profile_text(&profile, "(a*b?){800}c");
    uint32_t stack = profile.samples.stack[0].index;
    CHECK_UINT(profile_prune(&profile, &error), STATUS_TOO_LARGE);
    CHECK(strstr(error.message, "too long") != NULL);
    CHECK_UINT(profile.samples.stack[0].index, stack);
    profile_fini(&profile);
    free(name);
}

TEST_MAIN()
