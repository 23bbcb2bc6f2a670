/* Filters by frames and labels.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/filter.h"
#include "stacks.h"

static struct profile profile;

static void begin(const char *const *samples)
{
    profile_fini(&profile);
    stacks_begin(&profile);
    for (; *samples; samples++) stacks_add_sample(&profile, *samples, 1);
}

static struct filter_outcome apply(struct filter_options options)
{
    struct filter_outcome outcome;
    struct error error = {0};
    if (filter_apply(&profile, &options, &outcome, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    return outcome;
}

/* The samples that are left, separated by "; ". */
static void check_left(const char *expected)
{
    char text[4 * STACK_TEXT_BYTES] = "";
    for (size_t i = 0; i < profile.samples.count; i++) {
        char one[STACK_TEXT_BYTES] = "";
        stacks_append(&profile, profile.samples.stack[i], one);
        if (i > 0) strcat(text, "; ");
        strcat(text, one);
    }
    CHECK_TEXT(text, expected);
}

#define SAMPLES(...) begin((const char *const[]){__VA_ARGS__, NULL})

TEST(focus_keeps_samples_with_a_match_and_ignore_wins_over_it)
{
    SAMPLES("main a b", "main c", "main a c", "");
    apply((struct filter_options){.focus = "^[ab]$", .ignore = "^c$"});
    check_left("main a b");
}

TEST(focus_matches_file_names_and_mappings_too)
{
    SAMPLES("main a", "main b");
    apply((struct filter_options){.focus = "^b\\.c$"});
    check_left("main b");
    SAMPLES("main a", "main b");
    apply((struct filter_options){.focus = "x\\.so"});
    check_left("main a; main b");
}

TEST(hide_removes_frames_and_samples_of_which_nothing_is_left)
{
    SAMPLES("main a<b<a c", "a", "main ? a");
    apply((struct filter_options){.hide = "^a$"});
    check_left("main b c; main ?");
}

TEST(show_removes_what_does_not_match_and_frames_without_a_name)
{
    SAMPLES("main a<b ?", "c");
    apply((struct filter_options){.show = "^(main|b)$"});
    check_left("main b");
}

TEST(show_from_begins_at_the_outermost_match)
{
    SAMPLES("main a b a c", "main d", "main x<a<y");
    apply((struct filter_options){.show_from = "^a$"});
    check_left("a b a c; a<y");
}

TEST(prune_from_ends_at_the_innermost_match)
{
    SAMPLES("main a b a c", "main d", "main x<a<y z");
    apply((struct filter_options){.prune_from = "^a$"});
    check_left("main a b a; main d; main x<a");
}

TEST(prune_from_sees_names_without_parameters)
{
    SAMPLES("main f(int) g");
    apply((struct filter_options){.prune_from = "^f$"});
    check_left("main f(int)");
}

TEST(filters_without_a_match_are_named)
{
    SAMPLES("main a");
    struct filter_outcome outcome = apply((struct filter_options){.ignore = "nothing", .hide = "main"});
    CHECK_UINT(outcome.unmatched_count, 1);
    CHECK_TEXT(outcome.unmatched[0], "ignore");
    check_left("a");
}

TEST(rejects_a_broken_expression_and_names_its_option)
{
    struct filter_outcome outcome;
    struct error error = {0};
    SAMPLES("main a");
    struct filter_options options = {.hide = "a(b"};
    CHECK_UINT(filter_apply(&profile, &options, &outcome, &error), STATUS_MALFORMED);
    CHECK(strncmp(error.message, "hide: ", strlen("hide: ")) == 0);
    check_left("main a");
}

/* --- Labels ------------------------------------------------------------------------------------------------------- */

static void add_labelled(const char *frame, const char *key, const char *text, int64_t number, const char *unit)
{
    struct label label = {.key = profile_text(&profile, key),
                          .is_number = !text,
                          .text = profile_text(&profile, text),
                          .number = number,
                          .unit = profile_text(&profile, unit)};
    struct thread thread = {.id = profile_text(&profile, "7"), .name = profile_text(&profile, "worker")};
    struct sample sample = {.stack = stacks_add(&profile, frame), .labels = profile_add_labels(&profile, &label, 1)};
    if (strcmp(frame, "threaded") == 0) sample.thread = profile_add_thread(&profile, &thread);
    profile_add_sample(&profile, &sample, (const int64_t[]){1, 1});
}

static void begin_labelled(void)
{
    profile_fini(&profile);
    stacks_begin(&profile);
    add_labelled("one", "size", NULL, 1024, "bytes");
    add_labelled("two", "size", NULL, 2048, "bytes");
    add_labelled("three", "url", "/index", 0, NULL);
    add_labelled("threaded", "url", "/about", 0, NULL);
}

static void check_tags(const char *focus, const char *ignore, const char *expected)
{
    begin_labelled();
    apply((struct filter_options){.tag_focus = focus, .tag_ignore = ignore});
    check_left(expected);
}

TEST(tag_focus_takes_numbers_ranges_and_expressions)
{
    check_tags("1kb", NULL, "one");
    check_tags("2kb:", NULL, "two; threaded"); /* thread 7 has no unit, so the number alone counts, as in pprof */
    check_tags("size=:1024bytes", NULL, "one");
    check_tags("1kb:1mb", NULL, "one; two; threaded");
    check_tags("size=2kb", NULL, "two");
    check_tags("other=2kb", NULL, "");
    check_tags("url:/.*t", NULL, "threaded");
    check_tags("url=index|about", NULL, "three; threaded");
    check_tags("url=zzz,index", NULL, "three");
    check_tags("zzz,index", NULL, "");
    check_tags(NULL, "1kb:", "three");
    check_tags("thread=worker", NULL, "threaded");
    check_tags("thread_id=7", NULL, "threaded");
}

TEST(distinguishes_a_range_from_an_expression)
{
    begin_labelled();
    CHECK(apply((struct filter_options){.tag_focus = "1kb:2kb"}).tag_focus_is_range);
    begin_labelled();
    CHECK(!apply((struct filter_options){.tag_focus = "1kb:2kb:3kb"}).tag_focus_is_range);
}

TEST(tag_hide_removes_labels_of_samples_and_threads)
{
    begin_labelled();
    apply((struct filter_options){.tag_hide = "^thread$"});
    check_left("one; two; three; threaded");
    CHECK_UINT(profile.samples.thread[3].index, 0);
    const struct label_set *set = &profile.label_sets.items[profile.samples.labels[3].index];
    CHECK_UINT(set->count, 2);
    CHECK_TEXT(profile_c_string(&profile, profile.labels.items[set->first + 1].key), "thread_id");
    CHECK_INT(profile.labels.items[set->first + 1].number, 7);
}

TEST(tag_show_removes_the_other_labels)
{
    begin_labelled();
    apply((struct filter_options){.tag_show = "^url$"});
    CHECK_UINT(profile.samples.labels[0].index, 0);
    CHECK(profile.samples.labels[2].index != 0);
}

TEST_MAIN()
