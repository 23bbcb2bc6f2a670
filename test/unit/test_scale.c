/* Values in other sizes and units (PPF-2, PPF-3), and the units of labels (PPF-8).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "profile/label_units.h"
#include "profile/profile_scale.h"
#include "profile/units.h"

static void start(struct profile *profile, const char *unit)
{
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "cpu", unit);
}

static void add(struct profile *profile, const char *name, int64_t first, int64_t second)
{
    struct line line = {.function =
                            profile_add_function(profile, &(struct function){.name = profile_text(profile, name)})};
    struct location_id place = profile_add_location(profile, &(struct location){0}, &line, 1);
    struct sample sample = {.stack = profile_add_stack(profile, (struct stack_id){0}, place)};
    profile_add_sample(profile, &sample, (const int64_t[]){first, second});
}

static int64_t value(const struct profile *profile, size_t sample, size_t column)
{
    return profile_sample_values(profile, sample)[column];
}

TEST(scaling_rounds_half_away_from_zero_and_drops_what_is_zero)
{
    struct profile profile;
    start(&profile, "nanoseconds");
    add(&profile, "a", 3, -3);
    add(&profile, "b", 0, 1);
    add(&profile, "c", 1, 0);
    profile_scale(&profile, (const double[]){0.5, 0.5});
    CHECK_UINT(profile.samples.count, 3);
    CHECK_INT(value(&profile, 0, 0), 2);
    CHECK_INT(value(&profile, 0, 1), -2);
    profile_scale(&profile, (const double[]){0.5, 0.25});
    CHECK_UINT(profile.samples.count, 2);
    CHECK_INT(value(&profile, 1, 0), 1);
    profile_scale(&profile, (const double[]){1e300, 1});
    CHECK_INT(value(&profile, 0, 0), INT64_MAX);
    profile_fini(&profile);
}

TEST(times_of_other_units_become_nanoseconds)
{
    struct profile profile;
    start(&profile, "microseconds");
    profile.period_type.unit = profile_text(&profile, "milliseconds");
    profile.period = 10;
    add(&profile, "a", 3, 30000);
    CHECK(profile_scale_times_to_nanoseconds(&profile));
    CHECK_INT(value(&profile, 0, 0), 3);
    CHECK_INT(value(&profile, 0, 1), 30000000);
    CHECK_INT(profile.period, 10000000);
    CHECK(slice_equals_text(profile_slice(&profile, profile.value_types[1].unit), "nanoseconds"));
    CHECK(slice_equals_text(profile_slice(&profile, profile.value_types[0].unit), "count"));
    profile_fini(&profile);
}

TEST(a_time_that_does_not_fit_into_nanoseconds_stays_in_its_unit)
{
    struct profile profile;
    start(&profile, "seconds");
    add(&profile, "a", 3, 9223372037);
    CHECK(!profile_scale_times_to_nanoseconds(&profile));
    CHECK_INT(value(&profile, 0, 1), 9223372037);
    CHECK(slice_equals_text(profile_slice(&profile, profile.value_types[1].unit), "seconds"));
    profile_fini(&profile);
}

TEST(a_column_that_is_not_scaled_keeps_its_samples_PPF_3)
{
    struct profile profile;
    start(&profile, "nanoseconds");
    add(&profile, "a", 5, 0);
    profile_scale(&profile, (const double[]){1, 1000});
    CHECK_UINT(profile.samples.count, 1);
    CHECK_INT(value(&profile, 0, 0), 5);
    profile_fini(&profile);
}

TEST(normalising_gives_every_column_the_sum_of_the_base)
{
    struct profile profile, base;
    start(&profile, "nanoseconds");
    start(&base, "nanoseconds");
    add(&profile, "a", 1, 0);
    add(&profile, "b", 3, 0);
    add(&base, "a", 40, 7);
    CHECK_UINT(profile_normalize(&profile, &base, NULL), STATUS_OK);
    CHECK_INT(value(&profile, 0, 0), 10);
    CHECK_INT(value(&profile, 1, 0), 30);
    profile_add_value_type(&base, "late", "count");
    base.value_type_count = 1;
    CHECK_UINT(profile_normalize(&profile, &base, NULL), STATUS_UNSUPPORTED);
    profile_fini(&profile);
    profile_fini(&base);
}

TEST(compacting_sums_equal_samples_and_drops_those_that_cancel_out_PPF_2)
{
    struct profile profile;
    start(&profile, "nanoseconds");
    add(&profile, "a", 1, 10);
    add(&profile, "b", 2, 20);
    add(&profile, "a", -1, -10);
    add(&profile, "b", 2, 20);
    CHECK_UINT(profile_compact(&profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 1);
    CHECK_INT(value(&profile, 0, 1), 40);
    profile_fini(&profile);
}

TEST(profiles_of_other_types_and_units_are_made_to_fit_PPF_2)
{
    struct profile into, from;
    start(&into, "milliseconds");
    profile_init(&from);
    profile_add_value_type(&from, "cpu", "us");
    profile_add_value_type(&from, "extra", "count");
    into.default_value_type = profile_text(&into, "samples");
    into.period_type = (struct value_type){profile_text(&into, "cpu"), profile_text(&into, "nanoseconds")};
    from.period_type = (struct value_type){profile_text(&from, "cpu"), profile_text(&from, "seconds")};
    into.period = 7;
    from.period = 2;
    add(&into, "a", 1, 5);
    add(&from, "a", 300, 1);
    CHECK_UINT(profile_make_compatible(&into, &from, NULL), STATUS_OK);
    CHECK_UINT(profile_merge(&into, &from, NULL, NULL), STATUS_OK);
    CHECK_UINT(into.value_type_count, 1);
    CHECK_TEXT(profile_c_string(&into, into.value_types[0].type), "cpu");
    CHECK_TEXT(profile_c_string(&into, into.value_types[0].unit), "us");
    CHECK_UINT(into.samples.count, 2);
    CHECK_INT(value(&into, 0, 0), 5000);
    CHECK_INT(value(&into, 1, 0), 300);
    CHECK_UINT(into.default_value_type.index, 0);
    CHECK_INT(into.period, 2000000000);
    profile_fini(&into);
    profile_fini(&from);
}

TEST(profiles_without_a_type_in_common_do_not_fit)
{
    struct profile into, from;
    struct error error = {0};
    start(&into, "bytes");
    profile_init(&from);
    profile_add_value_type(&from, "heap", "bytes");
    CHECK_UINT(profile_make_compatible(&into, &from, &error), STATUS_UNSUPPORTED);
    profile_add_value_type(&from, "cpu", "seconds");
    CHECK_UINT(profile_make_compatible(&into, &from, &error), STATUS_UNSUPPORTED);
    CHECK(strstr(error.message, "cpu is bytes in one profile and seconds in another") != NULL);
    CHECK_UINT(into.value_type_count, 2);
    profile_fini(&into);
    profile_fini(&from);
}

TEST(units_have_many_names_PPF_8)
{
    CHECK(unit_ratio("Seconds", "ms") == 1000);
    CHECK(unit_ratio("kilobytes", "B") == 1024);
    CHECK(unit_ratio("bytes", "kb") == 1 / 1024.0);
    CHECK(unit_ratio("hrs", "minutes") == 60);
    CHECK(unit_ratio("count", "count") == 1);
    CHECK(unit_ratio("count", "bytes") == 0);
    CHECK(unit_ratio("seconds", "bytes") == 0);
    CHECK(unit_ratio("", "s") == 0);
}

static const char *unit_of(const struct label_units *units, struct string_id key)
{
    struct sample_label label = {.key_id = key, .key = profile_c_string(units->profile, key)};
    return label_unit(units, &label);
}

TEST(takes_a_label_unit_from_the_first_label_or_its_key_PPF_8)
{
    struct profile profile;
    struct label_units units;
    profile_init(&profile);
    struct string_id size = profile_text(&profile, "size"), request = profile_text(&profile, "request"),
                     alignment = profile_text(&profile, "alignment"), cpu = profile_text(&profile, "cpu");
    struct label labels[] = {
        {.key = size, .is_number = true, .number = 1},
        {.key = size, .is_number = true, .number = 1, .unit = profile_text(&profile, "kilobytes")},
        {.key = size, .is_number = true, .number = 1, .unit = profile_text(&profile, "bytes")},
        {.key = request, .is_number = true, .number = 1},
    };
    profile_add_labels(&profile, labels, sizeof(labels) / sizeof(labels[0]));
    struct other_unit others[2];
    CHECK_UINT(profile_other_units(&profile, others, 2), 1);
    CHECK_TEXT(profile_c_string(&profile, others[0].key), "size");
    CHECK_TEXT(profile_c_string(&profile, others[0].first), "kilobytes");
    CHECK_TEXT(profile_c_string(&profile, others[0].other), "bytes");
    CHECK(label_units_init(&units, &profile));
    CHECK_TEXT(unit_of(&units, size), "kilobytes");
    CHECK_TEXT(unit_of(&units, request), "bytes");
    CHECK_TEXT(unit_of(&units, alignment), "bytes");
    CHECK_TEXT(unit_of(&units, cpu), "cpu");
    struct sample_label of_thread = {.key = "thread_id"};
    CHECK_TEXT(label_unit(&units, &of_thread), "thread_id");
    label_units_fini(&units);
    profile_fini(&profile);
}

static void check_scaled(int64_t value, const char *from, const char *to, const char *expected)
{
    struct buffer text;
    buffer_init(&text, 256);
    unit_append(&text, value, from, to);
    buffer_append_byte(&text, 0);
    CHECK_TEXT((const char *)text.data, expected);
    buffer_fini(&text);
}

TEST(values_print_in_the_unit_that_is_asked_for)
{
    check_scaled(1500, "nanoseconds", "minimum", "1.50us");
    check_scaled(0, "nanoseconds", "minimum", "0");
    check_scaled(-2048, "bytes", "auto", "-2kB");
    check_scaled(90000000000, "ns", "minutes", "1.50minutes");
    check_scaled(1000000, "ns", "ms", "1ms");
    check_scaled(1500000000, "ns", "bytes", "1.50s");
    check_scaled(12, "count", "minimum", "12");
    check_scaled(12, "count", "count", "12");
    check_scaled(12, "widgets", "widgets", "12widgets");
    check_scaled(INT64_MIN, "widgets", "auto", "-9223372036854775808");
    check_scaled(1, "petabytes", "bytes", "1125899906842624B");
}

TEST_MAIN()
