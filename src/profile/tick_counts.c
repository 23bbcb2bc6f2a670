/* Rearranges the rows of values into a new array.  SPDX-License-Identifier: MIT */
#include "profile/tick_counts.h"

#include "profile/sample_times.h"
#include "profile/stated_costs.h"

#include <stdlib.h>

enum {
    NO_COLUMN = -1,
    TICK_NS_MIN = 10000,      /* a shorter one is no tick: contentions and cycles are counts, too */
    TICK_NS_MAX = 1000000000, /* one stack for longer needs more points */
};

static bool has_unit(const struct profile *profile, size_t column, const char *unit)
{
    return slice_equals_text(profile_slice(profile, profile->value_types[column].unit), unit);
}

/* Returns the column of the count of samples, or NO_COLUMN. */
static int count_column(const struct profile *profile)
{
    if (has_unit(profile, 0, "count")) return 0;
    int column = profile_value_index(profile, "samples");
    return column > 0 && has_unit(profile, (size_t)column, "count") ? column : NO_COLUMN;
}

/* Lists the columns as they will be, RET_COLUMNS; returns how many. */
static size_t order_columns(const struct profile *profile, int count, int time, int *ret_columns)
{
    size_t row = 2;
    ret_columns[0] = count;
    ret_columns[1] = time;
    for (int i = 0; i < (int)profile->value_type_count && row < PROFILE_VALUES_MAX; i++) {
        if (i != count && i != time) ret_columns[row++] = i;
    }
    return row;
}

static void move_columns(struct profile *profile, const int *columns, size_t row)
{
    size_t old_row = profile->value_type_count, capacity = profile->samples.capacity;
    struct value_type types[PROFILE_VALUES_MAX];
    int64_t *values = calloc(capacity ? capacity : 1, row * sizeof(*values));
    if (!values) {
        profile_fail(profile, STATUS_NO_MEMORY);
        return;
    }
    for (size_t i = 0; i < profile->samples.count; i++) {
        for (size_t k = 0; k < row; k++) {
            if (columns[k] != NO_COLUMN)
                values[i * row + k] = profile->samples.values[i * old_row + (size_t)columns[k]];
        }
    }
    stated_costs_drop(profile); /* their values are in the same columns */
    free(profile->samples.values);
    profile->samples.values = values;
    memcpy(types, profile->value_types, sizeof(types));
    for (size_t k = 0; k < row; k++) {
        if (columns[k] != NO_COLUMN) profile->value_types[k] = types[columns[k]];
    }
    if (columns[0] == NO_COLUMN)
        profile->value_types[0] =
            (struct value_type){.type = profile_text(profile, "samples"), .unit = profile_text(profile, "count")};
    if (profile->default_value_type.index == 0) profile->default_value_type = profile->value_types[1].type;
    profile->value_type_count = row;
}

static int64_t ticks_of(int64_t count, int64_t time_ns, int64_t period_ns)
{
    if (time_ns <= 0) return 0;
    if (count > 0 && time_ns / count >= TICK_NS_MIN && time_ns / count <= TICK_NS_MAX) return count;
    int64_t ticks = time_ns / period_ns + (time_ns % period_ns >= (period_ns + 1) / 2);
    return ticks > 0 ? ticks : 1;
}

static bool has_other_count(const struct profile *profile, const int64_t *values)
{
    for (size_t k = 1; k < profile->value_type_count; k++) {
        if (values[k] != 0 && has_unit(profile, k, "count")) return true;
    }
    return false;
}

/* Takes the count off the samples that have no time, so that they do not last until the next one: perf's page faults
 * beside a clock, and samples of CPU time in which a thread slept. The last one of a thread lasts no time in any case.
 */
static void leave_out_timeless(struct profile *profile, int time)
{
    bool is_cpu = profile_counts_cpu_time(profile);
    bool *has_later = calloc(profile->threads.count, sizeof(*has_later));
    if (!has_later) profile_fail(profile, STATUS_NO_MEMORY);
    for (size_t i = profile->samples.count; has_later && i-- > 0;) {
        int64_t *values = profile->samples.values + i * profile->value_type_count;
        bool *is_followed = &has_later[profile->samples.thread[i].index];
        if (values[time] == 0 && ((is_cpu && *is_followed) || has_other_count(profile, values))) values[0] = 0;
        *is_followed = true;
    }
    free(has_later);
}

/* Returns the column of the time that PROFILE's ticks have, or NO_COLUMN. */
static int time_column(const struct profile *profile)
{
    bool is_second =
        profile->value_type_count > 1 && has_unit(profile, 0, "count") && has_unit(profile, 1, "nanoseconds");
    return is_second ? 1 : profile_time_column(profile);
}

void profile_count_ticks(struct profile *profile)
{
    int columns[PROFILE_VALUES_MAX];
    int time = time_column(profile);
    if (time == NO_COLUMN) {
        if (profile->value_type_count > 0) profile->value_types[0].unit = profile_text(profile, "count");
        return;
    }
    int count = count_column(profile);
    if (profile->has_times && count == 0 && time == 1) {
        leave_out_timeless(profile, time);
        return;
    }
    size_t row = order_columns(profile, count, time, columns);
    if (count != 0 || time != 1) move_columns(profile, columns, row);
    if (profile->failed != STATUS_OK) return;
    int64_t period_ns = (int64_t)sample_times_period_ns(profile);
    if (period_ns < TICK_NS_MIN || period_ns > TICK_NS_MAX) period_ns = SAMPLE_PERIOD_NS_DEFAULT;
    for (size_t i = 0; i < profile->samples.count; i++) {
        int64_t *values = profile->samples.values + i * row;
        values[0] = ticks_of(values[0], values[1], period_ns);
    }
    if (count != NO_COLUMN) return;
    profile->period = period_ns;
    profile->period_type = profile->value_types[1];
}
