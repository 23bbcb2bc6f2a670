/* Samples on the axis of time: a sample of n ticks is at n times (V2-6).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "profile/sample_times.h"
#include "profile/tick_counts.h"

static struct profile profile;

static void begin(bool has_times, int64_t period_ns)
{
    profile_fini(&profile);
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_value_type(&profile, "wall", "nanoseconds");
    profile.has_times = has_times;
    profile.period = period_ns;
    profile.period_type = profile.value_types[1];
}

static void sample(const char *thread, uint64_t time_ns, int64_t ticks, int64_t nanoseconds)
{
    struct thread facts = {.id = profile_text(&profile, thread)};
    struct sample one = {.thread = profile_add_thread(&profile, &facts), .time_ns = time_ns};
    profile_add_sample(&profile, &one, (const int64_t[]){ticks, nanoseconds});
}

TEST(a_part_holds_the_ticks_that_are_in_it_and_knows_the_next)
{
    begin(true, 10);
    sample("1", 100, 5, 50); /* 100, 110, 120, 130, 140 */
    sample("2", 125, 1, 10);
    struct sample_times_part part = sample_times_part(&profile, 110, 130);
    CHECK_UINT(part.tick_count, 3);
    CHECK_UINT(part.first_ns, 110);
    CHECK_UINT(part.last_ns, 125);
    CHECK_UINT(part.next_ns, 130);
    part = sample_times_part(&profile, 101, 109);
    CHECK_UINT(part.tick_count, 0);
    CHECK_UINT(part.next_ns, 110);
    part = sample_times_part(&profile, 140, 141);
    CHECK_UINT(part.tick_count, 1);
    CHECK_UINT(part.next_ns, UINT64_MAX);
    CHECK_UINT(sample_times_part(&profile, 0, 0).next_ns, 100);
}

TEST(ticks_are_as_far_apart_as_the_time_that_their_sample_lasted)
{
    begin(true, 10);
    sample("1", 100, 5, 100); /* every other tick was missed: 100, 120, 140, 160, 180 */
    struct sample_times_part part = sample_times_part(&profile, 121, UINT64_MAX);
    CHECK_UINT(part.tick_count, 3);
    CHECK_UINT(part.first_ns, 140);
    CHECK_UINT(part.last_ns, 180);
    CHECK_UINT(sample_times_spacing_ns(&profile, 0, 10), 20);
}

TEST(every_tick_is_in_exactly_one_of_the_parts_that_follow_each_other)
{
    begin(true, 7);
    sample("1", 1000, 1000, 7000);
    sample("2", 3001, 333, 2331);
    sample("1", 100000, 2, 14);
    uint64_t ticks = 0, from_ns = sample_times_part(&profile, 0, 0).next_ns;
    while (from_ns != UINT64_MAX) {
        struct sample_times_part part = sample_times_part(&profile, from_ns, from_ns + 60);
        ticks += part.tick_count;
        from_ns = part.next_ns;
    }
    CHECK_UINT(ticks, 1335);
}

TEST(without_a_period_a_timed_sample_is_one_tick)
{
    begin(true, 0);
    sample("1", 100, 5, 50);
    CHECK_UINT(sample_times_part(&profile, 0, 1000).tick_count, 1);
    CHECK_UINT(sample_times_part(&profile, 0, 1000).last_ns, 100);
}

TEST(samples_without_times_are_laid_out_thread_by_thread)
{
    begin(false, 0);
    sample("1", 0, 3, 60);
    sample("2", 0, 1, 20);
    sample("1", 0, 2, 40);
    sample_times_assign(&profile, 1000);
    CHECK(profile.has_times);
    CHECK_UINT(sample_times_period_ns(&profile), 20); /* 120 ns by 6 ticks */
    CHECK_UINT(profile.samples.time_ns[0], 1000);
    CHECK_UINT(profile.samples.time_ns[1], 1000);
    CHECK_UINT(profile.samples.time_ns[2], 1060);
    CHECK_UINT(sample_times_part(&profile, 0, UINT64_MAX).last_ns, 1080);
}

TEST(counts_at_the_limit_do_not_wrap_around)
{
    begin(true, INT64_MAX);
    sample("1", UINT64_MAX - 10, INT64_MAX, 1);
    struct sample_times_part part = sample_times_part(&profile, UINT64_MAX - 20, UINT64_MAX);
    CHECK_UINT(part.tick_count, 1);
    CHECK_UINT(part.next_ns, UINT64_MAX);
}

static void check_ticks(size_t at, int64_t ticks, int64_t nanoseconds)
{
    CHECK_UINT(profile.value_type_count, 3);
    CHECK_INT(profile_sample_values(&profile, at)[0], ticks);
    CHECK_INT(profile_sample_values(&profile, at)[1], nanoseconds);
}

TEST(time_and_period_give_the_ticks_of_a_sample_without_a_count)
{
    profile_fini(&profile);
    profile_init(&profile);
    profile_add_value_type(&profile, "space", "bytes");
    profile_add_value_type(&profile, "cpu", "nanoseconds");
    const struct sample one = {0};
    static const int64_t times_ns[] = {35000000, 1000000, 0, 10800000000000};
    for (size_t i = 0; i < 4; i++) profile_add_sample(&profile, &one, (const int64_t[]){7, times_ns[i]});
    profile_count_ticks(&profile);
    check_ticks(0, 4, 35000000);
    check_ticks(1, 1, 1000000);
    check_ticks(2, 0, 0);
    check_ticks(3, 1080000, 10800000000000);
    CHECK_INT(profile_sample_values(&profile, 3)[2], 7); /* the bytes */
}

TEST(a_count_stays_if_its_ticks_are_of_a_length_that_samples_have)
{
    begin(false, 0);
    profile.period_type = (struct value_type){0};
    sample("1", 0, 7, 350000000);
    sample("1", 0, 0, 20000000);          /* no count: at the period of the others */
    sample("1", 0, 1, 3600000000000);     /* one stack for an hour is no sample */
    sample("1", 0, 1000000000, 50000000); /* cycles are counted, too */
    profile_count_ticks(&profile);
    CHECK_INT(profile_sample_values(&profile, 0)[0], 7);
    CHECK_INT(profile_sample_values(&profile, 1)[0], 2);
    CHECK_INT(profile_sample_values(&profile, 2)[0], 360000);
    CHECK_INT(profile_sample_values(&profile, 3)[0], 5);
}

TEST_MAIN()
