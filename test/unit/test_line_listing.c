/* Costs of source lines: by hand, and random ones against a plain second computation.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/line_listing.h"

#include <stdlib.h>

enum { FUNCTIONS = 5, LINES = 4, LOCATIONS = 24, FRAMES_MAX = 3, DEPTH_MAX = 6, SAMPLES = 40 };

static struct profile profile;
static struct grouping grouping;
static struct line_listing listing;

static void begin(void)
{
    line_listing_fini(&listing);
    grouping_fini(&grouping);
    profile_fini(&profile);
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_value_type(&profile, "cpu", "nanoseconds");
}

static struct line line_of(const char *name, const char *file, int64_t number, int64_t start)
{
    struct function function = {
        .name = profile_text(&profile, name), .file_name = profile_text(&profile, file), .start_line = start};
    return (struct line){.function = profile_add_function(&profile, &function), .line = number};
}

static struct location_id place(uint64_t address, const struct line *lines, uint32_t count)
{
    return profile_add_location(&profile, &(struct location){.address = address}, lines, count);
}

static void add_sample(const struct location_id *root_first, size_t depth, int64_t value)
{
    struct sample sample = {0};
    for (size_t i = 0; i < depth; i++) sample.stack = profile_add_stack(&profile, sample.stack, root_first[i]);
    profile_add_sample(&profile, &sample, (const int64_t[]){1, value});
}

static enum status list(const char *pattern, struct value_choice choice, struct error *error)
{
    const struct grouping_options options = {.granularity = GRANULARITY_LINES, .keeps_objects = true};
    line_listing_fini(&listing);
    grouping_fini(&grouping);
    CHECK(grouping_init(&grouping, &profile, &options, error) == STATUS_OK);
    return line_listing_init(&listing, &profile, &grouping, pattern, choice, error);
}

static void list_cpu(const char *pattern)
{
    struct error error = {0};
    if (list(pattern, (struct value_choice){.index = 1}, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
}

TEST(an_expression_that_takes_too_long_is_reported)
{
    enum { NAME_BYTES = 1 << 19 };
    char *name = malloc(NAME_BYTES);
    struct error error = {0};
    begin();
    CHECK(name);
    /* Letters in an order that makes the states of this expression ever new. */
    for (uint32_t i = 0, state = 1; i < NAME_BYTES; i++) {
        state = state * 1664525u + 1013904223u;
        name[i] = state >> 31 ? 'a' : 'b';
    }
    name[NAME_BYTES - 1] = '\0';
    struct line line = line_of(name, "a.c", 1, 1);
    struct location_id location = place(0x10, &line, 1);
    add_sample(&location, 1, 5);
    free(name);
    CHECK(list("a[ab]{900}c", (struct value_choice){.index = 1}, &error) == STATUS_TOO_LARGE);
}

TEST(an_inlined_function_has_its_own_lines_and_its_caller_the_call)
{
    begin();
    struct line lines[] = {line_of("small", "small.h", 7, 5), line_of("big", "big.c", 20, 0)};
    struct location_id locations[] = {place(0x10, lines, 2)};
    add_sample(locations, 1, 100);
    list_cpu("big|small");
    CHECK_INT(listing.function_count, 2);
    CHECK_TEXT(listing.functions[0].name, "big");
    CHECK_INT(listing.functions[0].flat, 0);
    CHECK_INT(listing.functions[0].cum, 100);
    CHECK_INT(listing.functions[0].first, 15);
    CHECK_INT(listing.functions[0].last, 25);
    CHECK_INT(listing.functions[1].flat, 100);
    CHECK_INT(listing.functions[1].first, 5);
    CHECK_INT(listing.functions[1].last, 12);
    CHECK_INT(listing.lines[listing.functions[1].line_first].number, 7);
}

TEST(recursion_through_two_lines_counts_once_for_the_function)
{
    begin();
    struct line first = line_of("f", "f.c", 10, 0), second = line_of("f", "f.c", 12, 0);
    struct location_id locations[] = {place(0x10, &first, 1), place(0x20, &first, 1), place(0x30, &second, 1)};
    add_sample(locations, 3, 100);
    list_cpu("f");
    CHECK_INT(listing.function_count, 1);
    CHECK_INT(listing.functions[0].cum, 100);
    CHECK_INT(listing.functions[0].cum_of_lines, 200);
    CHECK_INT(listing.functions[0].line_count, 2);
    CHECK_INT(listing.lines[0].cum, 100);
    CHECK_INT(listing.lines[0].flat, 0);
    CHECK_INT(listing.lines[1].flat, 100);
}

TEST(lines_of_samples_without_a_value_are_not_listed)
{
    begin();
    struct line used = line_of("f", "f.c", 10, 0), unused = line_of("f", "f.c", 90, 0),
                other = line_of("fg", "f.c", 5, 0);
    struct location_id locations[] = {place(0x10, &used, 1), place(0x20, &unused, 1), place(0x30, &other, 1)};
    add_sample(locations, 1, 100);
    add_sample(locations + 1, 2, 0);
    list_cpu("f");
    CHECK_INT(listing.function_count, 1);
    CHECK_INT(listing.functions[0].line_count, 1);
    CHECK_INT(listing.functions[0].last, 15);
}

TEST(lines_that_no_file_can_have_do_not_overflow)
{
    begin();
    struct line lines[] = {line_of("f", "f.c", INT64_MAX, INT64_MIN), line_of("f", "f.c", INT64_MIN, INT64_MAX),
                           line_of("f", "f.c", -1, 0), line_of("f", "f.c", 0, 0)};
    for (uint64_t i = 0; i < 4; i++) {
        struct location_id location = place(i + 1, &lines[i], 1);
        add_sample(&location, 1, INT64_MAX);
    }
    list_cpu("f");
    CHECK_INT(listing.function_count, 1);
    CHECK_INT(listing.functions[0].first, 0);
    CHECK_INT(listing.functions[0].flat, INT64_MAX);
}

TEST(means_are_divided_by_the_first_value)
{
    begin();
    struct error error = {0};
    struct line line = line_of("f", "f.c", 3, 0);
    struct location_id location = place(1, &line, 1);
    for (int64_t i = 1; i <= 4; i++) add_sample(&location, 1, 100 * i);
    CHECK(list("f", (struct value_choice){.index = 1, .is_mean = true}, &error) == STATUS_OK);
    CHECK_INT(listing.functions[0].flat, 250);
    CHECK_INT(listing.lines[0].cum, 250);
}

TEST(a_wrong_expression_is_reported_with_its_place)
{
    begin();
    struct error error = {0};
    CHECK(list("(", (struct value_choice){.index = 1}, &error) == STATUS_MALFORMED);
    CHECK(strstr(error.message, "at byte 1") != NULL);
}

/* --- Against a plain computation ---------------------------------------------------------------------------------- */

static uint64_t state;

static unsigned pick(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

struct random_frame {
    unsigned function, line; /* function FUNCTIONS - 1 does not match the expression */
};
struct random_place {
    struct random_frame frames[FRAMES_MAX]; /* innermost first */
    uint32_t count;
    struct location_id id;
};
struct sums {
    int64_t flat, cum;
};

static void make_places(struct random_place *places)
{
    for (unsigned p = 0; p < LOCATIONS; p++) {
        struct line lines[FRAMES_MAX];
        places[p].count = 1 + pick(FRAMES_MAX);
        for (uint32_t f = 0; f < places[p].count; f++) {
            char name[] = "match0";
            places[p].frames[f] = (struct random_frame){pick(FUNCTIONS), pick(LINES)};
            if (places[p].frames[f].function == FUNCTIONS - 1) name[0] = 'x';
            name[5] = (char)('0' + places[p].frames[f].function);
            lines[f] = line_of(name, "a.c", 1 + places[p].frames[f].line, 0);
        }
        places[p].id = place(p + 1, lines, places[p].count);
    }
}

/* Walks each sample, and asks for each line whether it was there before. */
static void add_random_sample(const struct random_place *places, struct sums lines[FUNCTIONS][LINES],
                              struct sums functions[FUNCTIONS])
{
    bool has_line[FUNCTIONS][LINES] = {{0}}, has_function[FUNCTIONS] = {0};
    struct location_id stack[DEPTH_MAX];
    unsigned depth = 1 + pick(DEPTH_MAX);
    int64_t value = 1 + (int64_t)pick(1000);
    for (unsigned d = 0; d < depth; d++) {
        const struct random_place *at = &places[pick(LOCATIONS)];
        stack[d] = at->id;
        for (uint32_t f = 0; f < at->count; f++) {
            const struct random_frame *frame = &at->frames[f];
            if (!has_line[frame->function][frame->line]) lines[frame->function][frame->line].cum += value;
            if (!has_function[frame->function]) functions[frame->function].cum += value;
            has_line[frame->function][frame->line] = has_function[frame->function] = true;
        }
        if (d + 1 == depth) {
            lines[at->frames[0].function][at->frames[0].line].flat += value;
            functions[at->frames[0].function].flat += value;
        }
    }
    add_sample(stack, depth, value);
}

static void check_function(const struct listed_function *found, struct sums function, const struct sums lines[LINES])
{
    CHECK_INT(found->flat, function.flat);
    CHECK_INT(found->cum, function.cum);
    size_t next = found->line_first;
    for (int64_t i = 0; i < LINES; i++) {
        if (lines[i].cum == 0) continue;
        CHECK_INT(listing.lines[next].number, i + 1);
        CHECK_INT(listing.lines[next].flat, lines[i].flat);
        CHECK_INT(listing.lines[next].cum, lines[i].cum);
        next++;
    }
    CHECK_INT(next, found->line_first + found->line_count);
}

TEST(random_profiles_agree_with_a_plain_computation)
{
    for (unsigned round = 0; round < 500; round++) {
        struct random_place places[LOCATIONS];
        struct sums lines[FUNCTIONS][LINES] = {{{0}}}, functions[FUNCTIONS] = {{0}};
        begin();
        state = round;
        make_places(places);
        for (unsigned i = 0; i < SAMPLES; i++) add_random_sample(places, lines, functions);
        list_cpu("^match");
        size_t found = 0;
        for (unsigned f = 0; f + 1 < FUNCTIONS; f++) {
            if (functions[f].cum > 0) check_function(&listing.functions[found++], functions[f], lines[f]);
        }
        CHECK_INT(listing.function_count, found);
    }
    begin();
}

TEST_MAIN()
