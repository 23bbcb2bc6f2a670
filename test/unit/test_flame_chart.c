/* Flamecharts, by hand. test/cli/flame.py compares random ones with a plain second implementation.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/flame_chart.h"
#include "stacks.h"

static struct profile profile;
static struct grouping grouping;
static struct flame_layout layout;
static uint64_t start_ns;

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
    profile.has_times = true;
}

static struct thread_id thread(const char *id)
{
    return profile_add_thread(&profile, &(struct thread){.id = profile_text(&profile, id)});
}

static void sample(const char *thread_id, uint64_t time_ns, const char *frames, int64_t value)
{
    struct sample one = {.stack = stacks_add(&profile, frames), .thread = thread(thread_id), .time_ns = time_ns};
    profile_add_sample(&profile, &one, (const int64_t[]){1, value});
}

static enum status try_layout(struct flame_options options)
{
    end();
    options.column = 1;
    struct thread_id shown = thread("1");
    CHECK_INT(grouping_init(&grouping, &profile, &(struct grouping_options){0}, NULL), STATUS_OK);
    return flame_chart_init(&layout, &profile, &grouping, shown, &options, &start_ns, NULL);
}

static void lay_out(struct flame_options options)
{
    CHECK_INT(try_layout(options), STATUS_OK);
}

static void check_box(size_t place, const char *name, uint32_t parent, uint64_t start, uint64_t width, int64_t cum)
{
    CHECK(place < layout.count);
    const struct flame_box *box = &layout.boxes[place];
    const char *found = box->group == FLAME_NO_GROUP ? "all"
                        : box->group == FLAME_MERGED ? "merged"
                                                     : group_name(&grouping, &grouping.items[box->group]);
    CHECK_TEXT(found, name);
    CHECK_UINT(box->parent, parent);
    CHECK_UINT(box->start, start);
    CHECK_UINT(box->width, width);
    CHECK_INT(box->cum, cum);
}

TEST(a_function_that_stays_is_one_box)
{
    begin();
    sample("1", 1000, "main f", 100);
    sample("1", 1100, "main f g", 100);
    sample("1", 1200, "main f", 100);
    lay_out((struct flame_options){0});
    CHECK_UINT(start_ns, 1000);
    CHECK_UINT(layout.count, 4);
    check_box(0, "all", 0, 0, 300, 300);
    check_box(1, "main", 0, 0, 300, 300);
    check_box(2, "f", 1, 0, 300, 300);
    check_box(3, "g", 2, 100, 100, 100);
    CHECK_INT(layout.boxes[2].flat, 200);
}

TEST(a_function_that_comes_back_is_another_box)
{
    begin();
    sample("1", 1000, "main f", 100);
    sample("1", 1100, "main g", 100);
    sample("1", 1200, "main f", 100);
    lay_out((struct flame_options){0});
    CHECK_UINT(layout.count, 5);
    check_box(2, "f", 1, 0, 100, 100);
    check_box(3, "g", 1, 100, 100, 100);
    check_box(4, "f", 1, 200, 100, 100);
}

TEST(a_gap_between_samples_ends_all_boxes)
{
    begin();
    sample("1", 1000, "main", 100);
    sample("1", 2000, "main", 100);
    lay_out((struct flame_options){0});
    CHECK_UINT(layout.count, 3);
    check_box(1, "main", 0, 0, 100, 100);
    check_box(2, "main", 0, 1000, 100, 100);
}

TEST(a_gap_up_to_a_sixteenth_of_a_sample_is_ignored)
{
    begin();
    sample("1", 1000, "main", 160);
    sample("1", 1170, "main", 160);
    sample("1", 1341, "main", 160);
    lay_out((struct flame_options){0});
    CHECK_UINT(layout.count, 3);
    check_box(1, "main", 0, 0, 330, 320);
    check_box(2, "main", 0, 341, 160, 160);
}

TEST(a_sample_lasts_at_most_until_the_next_one_of_its_thread)
{
    begin();
    sample("1", 1000, "main f", 500);
    sample("1", 1100, "main g", 100);
    lay_out((struct flame_options){0});
    CHECK_UINT(layout.count, 4);
    check_box(2, "f", 1, 0, 100, 500);
    check_box(3, "g", 1, 100, 100, 100);
}

TEST(samples_of_other_threads_and_without_a_value_are_passed_over)
{
    begin();
    sample("1", 1000, "main", 100);
    sample("2", 1050, "other", 100);
    sample("1", 1100, "main f", 0);
    lay_out((struct flame_options){0});
    CHECK_UINT(layout.count, 2);
    check_box(1, "main", 0, 0, 100, 100);
}

TEST(the_order_of_samples_in_the_profile_does_not_matter)
{
    begin();
    sample("1", 1100, "main g", 100);
    sample("1", 1000, "main f", 100);
    lay_out((struct flame_options){0});
    CHECK_UINT(start_ns, 1000);
    check_box(2, "f", 1, 0, 100, 100);
    check_box(3, "g", 1, 100, 100, 100);
}

TEST(narrow_neighbours_become_one_box_and_are_counted)
{
    begin();
    sample("1", 1000, "main f", 10);
    sample("1", 1010, "main g", 10);
    sample("1", 1020, "main h", 80);
    lay_out((struct flame_options){.parts = 5}); /* 20 ns and more are drawn */
    CHECK_UINT(layout.count, 4);
    check_box(2, "merged", 1, 0, 20, 20);
    CHECK_UINT(layout.boxes[2].hidden_count, 2);
    check_box(3, "h", 1, 20, 80, 80);
}

TEST(frames_below_the_depth_are_counted_and_their_time_stays)
{
    begin();
    sample("1", 1000, "main f g", 100);
    lay_out((struct flame_options){.depth_max = 2});
    CHECK_UINT(layout.count, 3);
    check_box(2, "f", 1, 0, 100, 100);
    CHECK_UINT(layout.deep_count, 1);
    CHECK_INT(layout.deep_sum, 100);
}

TEST_MAIN()
