/* Flame layouts: by hand, and random ones against a plain second implementation.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/flame_layout.h"
#include "stacks.h"

static struct profile profile;
static struct grouping grouping;
static struct flame_layout layout;

static void end(void)
{
    flame_layout_fini(&layout);
    grouping_fini(&grouping);
}

static void begin(void)
{
    end();
    profile_fini(&profile);
    stacks_begin(&profile);
}

static enum status try_layout(struct flame_options options)
{
    struct error error = {0};
    struct grouping_options grouping_options = {0};
    end();
    options.column = 1;
    if (grouping_init(&grouping, &profile, &grouping_options, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    return flame_layout_init(&layout, &profile, &grouping, &options, &error);
}

static void lay_out(struct flame_options options)
{
    CHECK_INT(try_layout(options), STATUS_OK);
}

static const char *name_of(const struct flame_box *box)
{
    if (box->group == FLAME_NO_GROUP) return "";
    return group_name(&grouping, &grouping.items[box->group]);
}

/* " main f" */
static void append_path(const struct flame_box *box, char *text)
{
    if (box->group == FLAME_NO_GROUP) return;
    append_path(&layout.boxes[box->parent], text);
    strcat(text, " ");
    strcat(text, name_of(box));
}

static const struct flame_box *box_at(const char *path)
{
    for (size_t i = 0; i < layout.count; i++) {
        char text[STACK_TEXT_BYTES] = "";
        append_path(&layout.boxes[i], text);
        if (strcmp(text, path) == 0) return &layout.boxes[i];
    }
    TEST_FAIL("no box%s", path);
    return &layout.boxes[0];
}

/* --- By hand ------------------------------------------------------------------------------------------------------ */

TEST(places_children_side_by_side_in_the_order_of_their_names)
{
    begin();
    stacks_add_sample(&profile, "main z", 10);
    stacks_add_sample(&profile, "main a<b", 20);
    stacks_add_sample(&profile, "main", 5);
    stacks_add_sample(&profile, "", 1);
    lay_out((struct flame_options){0});
    CHECK_UINT(layout.count, 5);
    CHECK_INT(layout.boxes[0].cum, 36);
    CHECK_INT(layout.boxes[0].flat, 1);
    CHECK_INT(box_at(" main")->cum, 35);
    CHECK_INT(box_at(" main")->flat, 5);
    CHECK_UINT(box_at(" main a")->start, 0);
    CHECK_INT(box_at(" main a")->flat, 0);
    CHECK_INT(box_at(" main a b")->flat, 20);
    CHECK_UINT(box_at(" main z")->start, 20);
    CHECK_UINT(box_at(" main z")->depth, 2);
}

TEST(inverted_the_leaf_is_outermost)
{
    begin();
    stacks_add_sample(&profile, "main f<g", 10);
    stacks_add_sample(&profile, "g", 20);
    stacks_add_sample(&profile, "", 1);
    lay_out((struct flame_options){.is_inverted = true});
    CHECK_UINT(layout.count, 4);
    CHECK_INT(layout.boxes[0].cum, 31);
    CHECK_INT(layout.boxes[0].flat, 1);
    CHECK_INT(box_at(" g")->cum, 30);
    CHECK_INT(box_at(" g")->flat, 20);
    CHECK_INT(box_at(" g f main")->flat, 10);
}

TEST(counts_boxes_that_are_too_narrow)
{
    begin();
    stacks_add_sample(&profile, "main a b", 1);
    stacks_add_sample(&profile, "main c", 2);
    stacks_add_sample(&profile, "main d", 97);
    lay_out((struct flame_options){.parts = 50});
    CHECK_UINT(layout.count, 4);
    CHECK_UINT(layout.narrow_count, 1);
    CHECK_INT(layout.narrow_sum, 1);
    CHECK_INT(box_at(" main")->cum, 100);
    CHECK_INT(box_at(" main")->flat, 0);
    CHECK_UINT(box_at(" main c")->start, 1);
}

TEST(finds_how_wide_the_widest_boxes_are)
{
    int64_t narrowest;
    begin();
    stacks_add_sample(&profile, "a", 5);
    stacks_add_sample(&profile, "b", 5);
    stacks_add_sample(&profile, "c d", 10);
    for (size_t maximum = 1; maximum <= 5; maximum++) {
        lay_out((struct flame_options){0});
        CHECK(flame_layout_narrowest(&layout, maximum, &narrowest, NULL));
        lay_out((struct flame_options){.narrowest = narrowest});
        CHECK_UINT(layout.count, maximum == 2 ? 1 : maximum == 4 ? 3 : maximum);
    }
}

TEST(keeps_the_upper_rows_of_many_boxes_of_one_width)
{
    int64_t narrowest;
    uint32_t tie_depth;
    begin();
    stacks_add_sample(&profile, "a b c", 5);
    stacks_add_sample(&profile, "d e f", 5);
    for (size_t maximum = 1; maximum <= 7; maximum++) {
        lay_out((struct flame_options){0});
        CHECK(flame_layout_narrowest(&layout, maximum, &narrowest, &tie_depth));
        lay_out((struct flame_options){.narrowest = narrowest, .tie_depth = tie_depth});
        CHECK_UINT(layout.count, maximum % 2 == 0 ? maximum - 1 : maximum);
        CHECK_INT(layout.narrow_sum, maximum < 7 ? 10 : 0);
    }
}

TEST(rejects_negative_values_and_sums_beyond_64_bits)
{
    begin();
    stacks_add_sample(&profile, "main", -1);
    CHECK_INT(try_layout((struct flame_options){0}), STATUS_UNSUPPORTED);
    begin();
    stacks_add_sample(&profile, "main a", INT64_MAX);
    lay_out((struct flame_options){.parts = UINT64_MAX});
    CHECK_INT(box_at(" main a")->flat, INT64_MAX);
    stacks_add_sample(&profile, "main b", 1);
    CHECK_INT(try_layout((struct flame_options){0}), STATUS_TOO_LARGE);
}

TEST(a_profile_without_samples_is_an_empty_root)
{
    begin();
    lay_out((struct flame_options){.parts = 10});
    CHECK_UINT(layout.count, 1);
    CHECK_INT(layout.boxes[0].cum, 0);
}

TEST(lays_out_a_stack_of_a_million_frames)
{
    enum { FRAMES = 1000000, ROWS = 100 };
    begin();
    struct stack_id stack = stacks_add(&profile, "f");
    struct location_id location = profile_stack(&profile, stack).location;
    for (unsigned i = 1; i < FRAMES; i++) stack = profile_add_stack(&profile, stack, location);
    struct sample sample = {.stack = stack};
    profile_add_sample(&profile, &sample, (const int64_t[]){1, 7});
    for (int is_inverted = 0; is_inverted < 2; is_inverted++) {
        lay_out((struct flame_options){.is_inverted = is_inverted != 0});
        CHECK_UINT(layout.count, FRAMES + 1);
        CHECK_INT(layout.boxes[FRAMES].flat, 7);
        lay_out((struct flame_options){.is_inverted = is_inverted != 0, .depth_max = ROWS});
        CHECK_UINT(layout.count, ROWS + 1);
        CHECK_UINT(layout.deep_count, 1);
        CHECK_INT(layout.deep_sum, 7);
        CHECK_INT(layout.boxes[ROWS].cum, 7);
    }
}

/* --- Random profiles ---------------------------------------------------------------------------------------------- */

enum { FUNCTIONS = 6, SAMPLES = 80, DEPTH_MAX = 8, ROUNDS = 200, PATHS_MAX = SAMPLES * DEPTH_MAX };

static uint64_t random_state;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % limit;
}

struct plain_sample {
    unsigned depth;
    unsigned frames[DEPTH_MAX]; /* outermost box first */
    int64_t value;
};

static struct plain_sample plain[SAMPLES];

static void make_sample(struct plain_sample *sample, bool is_inverted)
{
    char text[STACK_TEXT_BYTES] = "";
    sample->depth = random_below(DEPTH_MAX + 1);
    sample->value = (int64_t)random_below(200);
    for (unsigned i = 0; i < sample->depth; i++) {
        unsigned function = random_below(FUNCTIONS);
        const char *separator = i == 0 ? "" : i % 4 == 1 && random_below(3) == 0 ? "<" : " ";
        sample->frames[is_inverted ? sample->depth - 1 - i : i] = function;
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sf%u", separator, function);
    }
    stacks_add_sample(&profile, text, sample->value);
}

static void make_profile(unsigned seed, bool is_inverted)
{
    random_state = seed;
    begin();
    for (unsigned i = 0; i < SAMPLES; i++) make_sample(&plain[i], is_inverted);
}

static void plain_path(const struct plain_sample *sample, unsigned depth, char *text)
{
    text[0] = '\0';
    for (unsigned i = 0; i < depth; i++) sprintf(text + strlen(text), " f%u", sample->frames[i]);
}

static void plain_sums(const char *path, unsigned depth, int64_t *ret_cum, int64_t *ret_flat)
{
    *ret_cum = *ret_flat = 0;
    for (unsigned s = 0; s < SAMPLES; s++) {
        char text[STACK_TEXT_BYTES];
        if (plain[s].depth < depth) continue;
        plain_path(&plain[s], depth, text);
        if (strcmp(text, path) != 0) continue;
        *ret_cum += plain[s].value;
        if (plain[s].depth == depth) *ret_flat += plain[s].value;
    }
}

/* Counts the different paths that are wider than one of PARTS, the root included. */
static size_t plain_count(uint64_t parts)
{
    static char seen[PATHS_MAX][STACK_TEXT_BYTES];
    size_t count = 0;
    int64_t total, cum, flat;
    plain_sums("", 0, &total, &flat);
    for (unsigned s = 0; s < SAMPLES; s++) {
        for (unsigned depth = 1; depth <= plain[s].depth; depth++) {
            char text[STACK_TEXT_BYTES];
            bool is_seen = false;
            plain_path(&plain[s], depth, text);
            for (size_t i = 0; i < count && !is_seen; i++) is_seen = strcmp(seen[i], text) == 0;
            plain_sums(text, depth, &cum, &flat);
            bool is_wide = parts == 0 ? cum > 0 : (uint64_t)cum * parts >= (uint64_t)total;
            if (!is_seen && is_wide) strcpy(seen[count++], text);
        }
    }
    return count + 1;
}

static void check_sums(void)
{
    for (size_t i = 0; i < layout.count; i++) {
        char path[STACK_TEXT_BYTES] = "";
        int64_t cum, flat;
        append_path(&layout.boxes[i], path);
        plain_sums(path, layout.boxes[i].depth, &cum, &flat);
        CHECK_INT(layout.boxes[i].cum, cum);
        CHECK_INT(layout.boxes[i].flat, flat);
    }
}

/* Children of one box: inside it, without overlap, in order of their names; with FLAT at most as wide. */
static void check_places(bool is_all)
{
    for (size_t p = 0; p < layout.count; p++) {
        const struct flame_box *parent = &layout.boxes[p];
        uint64_t at = parent->start;
        int64_t sum = parent->flat;
        const char *before = "";
        for (size_t i = p + 1; i < layout.count; i++) {
            const struct flame_box *box = &layout.boxes[i];
            if (box->parent != p) continue;
            CHECK(is_all ? box->start == at : box->start >= at);
            CHECK(strcmp(before, name_of(box)) < 0);
            CHECK_UINT(box->depth, parent->depth + 1);
            before = name_of(box);
            at = box->start + (uint64_t)box->cum;
            sum += box->cum;
        }
        CHECK(at <= parent->start + (uint64_t)parent->cum);
        CHECK(is_all ? sum == parent->cum : sum <= parent->cum);
    }
}

TEST(random_layouts_agree_with_a_plain_computation)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool is_inverted = round % 2 == 1;
        make_profile(round + 1, is_inverted);
        lay_out((struct flame_options){.is_inverted = is_inverted});
        CHECK_UINT(layout.count, plain_count(0));
        check_sums();
        check_places(true);
        CHECK_UINT(layout.narrow_count, 0);
    }
}

TEST(random_layouts_without_narrow_boxes_agree_too)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool is_inverted = round % 2 == 1;
        uint64_t parts = 2 + random_below(100);
        make_profile(round + 1, is_inverted);
        lay_out((struct flame_options){.is_inverted = is_inverted, .parts = parts});
        CHECK_UINT(layout.count, plain_count(parts));
        check_sums();
        check_places(false);
        int64_t left_out = layout.boxes[0].cum;
        for (size_t i = 0; i < layout.count; i++) left_out -= layout.boxes[i].flat;
        CHECK_INT(layout.narrow_sum, left_out);
    }
}

TEST_MAIN()
