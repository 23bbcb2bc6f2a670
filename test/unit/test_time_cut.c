/* Cuts by time: by hand, and the sum of all parts.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/time_cut.h"

#include <stdlib.h>

static struct profile profile;

static void begin(void)
{
    profile_fini(&profile);
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_value_type(&profile, "wall", "nanoseconds");
    profile.has_times = true;
}

static struct thread_id thread(const char *id)
{
    return profile_add_thread(&profile, &(struct thread){.id = profile_text(&profile, id)});
}

static void sample(const char *thread_id, uint64_t time_ns, int64_t value)
{
    struct sample one = {.thread = thread(thread_id), .time_ns = time_ns};
    profile_add_sample(&profile, &one, (const int64_t[]){1, value});
}

static void cut(struct time_cut range)
{
    CHECK_INT(profile_failed(&profile, NULL), STATUS_OK);
    CHECK_INT(time_cut_apply(&profile, &range, NULL), STATUS_OK);
}

static void check_sample(size_t place, uint64_t time_ns, int64_t value)
{
    CHECK(place < profile.samples.count);
    CHECK_UINT(profile.samples.time_ns[place], time_ns);
    CHECK_INT(profile_sample_values(&profile, place)[0], 1);
    CHECK_INT(profile_sample_values(&profile, place)[1], value);
}

TEST(samples_at_both_edges_keep_their_part)
{
    begin();
    sample("1", 300, 100);
    sample("1", 100, 100);
    sample("1", 200, 100);
    cut((struct time_cut){.start_ns = 150, .end_ns = 325});
    CHECK_UINT(profile.samples.count, 3);
    check_sample(0, 150, 50);
    check_sample(1, 200, 100);
    check_sample(2, 300, 25); /* the last one lasts as long as its value */
}

TEST(samples_outside_are_removed)
{
    begin();
    sample("1", 100, 100);
    sample("1", 200, 100);
    sample("1", 300, 100);
    cut((struct time_cut){.start_ns = 200, .end_ns = 300});
    CHECK_UINT(profile.samples.count, 1);
    check_sample(0, 200, 100);
}

TEST(a_sample_ends_at_the_next_one_of_the_same_thread)
{
    begin();
    sample("1", 100, 400);
    sample("2", 150, 50);
    sample("1", 300, 100);
    cut((struct time_cut){.start_ns = 200, .end_ns = 300});
    CHECK_UINT(profile.samples.count, 1);
    check_sample(0, 200, 200); /* half of it; that of the other thread is over at 200 */
}

TEST(a_cut_of_one_thread_has_no_samples_of_others)
{
    begin();
    sample("1", 100, 100);
    sample("2", 100, 100);
    cut((struct time_cut){.start_ns = 0, .end_ns = 1000, .has_thread = true, .thread = thread("2")});
    CHECK_UINT(profile.samples.count, 1);
    CHECK_UINT(profile.samples.thread[0].index, thread("2").index);
}

TEST(a_sample_without_a_length_is_kept_if_it_is_within)
{
    begin();
    sample("1", 100, 0);
    sample("2", 200, 0);
    cut((struct time_cut){.start_ns = 100, .end_ns = 200});
    CHECK_UINT(profile.samples.count, 1);
    check_sample(0, 100, 0);
}

TEST(values_and_times_at_the_limit_do_not_overflow)
{
    begin();
    sample("1", UINT64_MAX - 10, INT64_MAX);
    cut((struct time_cut){.start_ns = UINT64_MAX - 5, .end_ns = UINT64_MAX});
    CHECK_UINT(profile.samples.count, 1);
    CHECK_INT(profile_sample_values(&profile, 0)[1], INT64_MAX / 2);
}

enum { SAMPLES = 200, INTERVAL = 1000, ROUNDS = 50 };

/* Every sample lasts INTERVAL and has one nanosecond of value for each of time: the parts must have the length of the
 * range. */
TEST(the_parts_on_both_sides_of_any_time_sum_up_to_all)
{
    srandom(17);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t middle = (uint64_t)random() % (SAMPLES * INTERVAL), length[2] = {middle, SAMPLES * INTERVAL - middle};
        for (int side = 0; side < 2; side++) {
            int64_t sum = 0;
            begin();
            for (uint64_t i = 0; i < SAMPLES; i++) sample("1", INTERVAL * (1 + i), INTERVAL);
            cut((struct time_cut){.start_ns = side == 0 ? 0 : INTERVAL + middle,
                                  .end_ns = side == 0 ? INTERVAL + middle : UINT64_MAX});
            for (size_t i = 0; i < profile.samples.count; i++) sum += profile_sample_values(&profile, i)[1];
            CHECK_INT(sum, (int64_t)length[side]);
        }
    }
}

TEST_MAIN()
