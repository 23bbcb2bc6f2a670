/* Samples on the axis of time.  SPDX-License-Identifier: MIT */
#include "profile/sample_times.h"

#include <stdlib.h>

static bool has_unit(const struct profile *profile, struct value_type value, const char *unit)
{
    return slice_equals_text(profile_slice(profile, value.unit), unit);
}

static bool counts_ticks(const struct profile *profile)
{
    return profile->value_type_count > 0 && has_unit(profile, profile->value_types[0], "count");
}

static bool has_period(const struct profile *profile)
{
    return profile->period > 0 && has_unit(profile, profile->period_type, "nanoseconds");
}

/* Returns the mean of the first column in nanoseconds for each tick; 0 if there is none. */
static uint64_t period_of_values(const struct profile *profile)
{
    size_t column = 1;
    if (!counts_ticks(profile)) return 0;
    while (column < profile->value_type_count && !has_unit(profile, profile->value_types[column], "nanoseconds")) {
        column++;
    }
    if (column >= profile->value_type_count) return 0;
    double nanoseconds = 0, ticks = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        nanoseconds += (double)profile_sample_values(profile, i)[column];
        ticks += (double)profile_sample_values(profile, i)[0];
    }
    double mean = ticks > 0 ? nanoseconds / ticks : 0;
    return mean >= 1 && mean < 1e18 ? (uint64_t)(mean + 0.5) : 0;
}

uint64_t sample_times_period_ns(const struct profile *profile)
{
    if (has_period(profile)) return (uint64_t)profile->period;
    uint64_t period_ns = period_of_values(profile);
    return period_ns ? period_ns : SAMPLE_PERIOD_NS_DEFAULT;
}

/* Whether the times of column TIME are those of the samples that column SHOWN counts. A recording of Java counts
 * samples beside the delays of locks. */
static bool is_time_of(const struct profile *profile, int shown, int time)
{
    if (shown < 0 || !has_unit(profile, profile->value_types[shown], "count")) return true;
    bool has_samples = false;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        if (values[shown] != 0 && values[time] != 0) return true;
        has_samples |= values[shown] != 0;
    }
    return !has_samples;
}

int profile_time_column(const struct profile *profile)
{
    int shown = profile_value_index(profile, "");
    if (shown >= 0 && has_unit(profile, profile->value_types[shown], "nanoseconds")) return shown;
    for (int i = (int)profile->value_type_count; i-- > 0;) {
        if (has_unit(profile, profile->value_types[i], "nanoseconds") && is_time_of(profile, shown, i)) return i;
    }
    return -1;
}

bool profile_counts_cpu_time(const struct profile *profile)
{
    static const char *const names[] = {"cpu", "task-clock", "cpu-clock"};
    if (profile->value_type_count < 2 || !has_unit(profile, profile->value_types[1], "nanoseconds")) return false;
    const char *type = profile_c_string(profile, profile->value_types[1].type);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size = strlen(names[i]);
        if (strncmp(type, names[i], size) == 0 && (type[size] == '\0' || type[size] == ':')) return true;
    }
    return false;
}

uint64_t sample_ticks(const struct profile *profile, size_t sample)
{
    if (!counts_ticks(profile)) return 1;
    int64_t count = profile_sample_values(profile, sample)[0];
    if (count <= 0) return 0;
    bool is_one_at_its_time = profile->has_times && !has_period(profile);
    return is_one_at_its_time ? 1 : (uint64_t)count;
}

uint64_t sample_times_spacing_ns(const struct profile *profile, size_t sample, uint64_t period_ns)
{
    if (profile->value_type_count < 2 || !counts_ticks(profile)) return period_ns;
    if (!has_unit(profile, profile->value_types[1], "nanoseconds")) return period_ns;
    const int64_t *values = profile_sample_values(profile, sample);
    if (values[0] <= 0 || values[1] < values[0]) return period_ns;
    return (uint64_t)values[1] / sample_ticks(profile, sample);
}

static uint64_t add_limited(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t multiply_limited(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Returns how many of TICKS ticks, the first at TIME_NS, are before LIMIT_NS. */
static uint64_t ticks_before(uint64_t time_ns, uint64_t ticks, uint64_t spacing_ns, uint64_t limit_ns)
{
    if (time_ns >= limit_ns) return 0;
    uint64_t count = (limit_ns - time_ns - 1) / spacing_ns + 1;
    return count < ticks ? count : ticks;
}

/* The ticks of one sample at FROM_NS or later and before TO_NS: from SKIPPED to END. */
struct ticks {
    uint64_t time_ns, count, spacing_ns; /* all of them */
    uint64_t skipped, end;
};

static struct ticks ticks_within(const struct profile *profile, size_t sample, uint64_t period_ns, uint64_t from_ns,
                                 uint64_t to_ns)
{
    struct ticks ticks = {.time_ns = profile->samples.time_ns[sample],
                          .count = sample_ticks(profile, sample),
                          .spacing_ns = sample_times_spacing_ns(profile, sample, period_ns)};
    ticks.skipped = ticks_before(ticks.time_ns, ticks.count, ticks.spacing_ns, from_ns);
    ticks.end = ticks_before(ticks.time_ns, ticks.count, ticks.spacing_ns, to_ns);
    return ticks;
}

struct sample_times_part sample_times_part(const struct profile *profile, uint64_t from_ns, uint64_t to_ns)
{
    struct sample_times_part part = {.first_ns = UINT64_MAX, .next_ns = UINT64_MAX};
    uint64_t period_ns = sample_times_period_ns(profile);
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct ticks in = ticks_within(profile, i, period_ns, from_ns, to_ns);
        if (in.end < in.count) {
            uint64_t next_ns = add_limited(in.time_ns, multiply_limited(in.end, in.spacing_ns));
            if (next_ns < part.next_ns) part.next_ns = next_ns;
        }
        if (in.end <= in.skipped) continue;
        uint64_t first_ns = add_limited(in.time_ns, multiply_limited(in.skipped, in.spacing_ns));
        uint64_t last_ns = add_limited(in.time_ns, multiply_limited(in.end - 1, in.spacing_ns));
        if (first_ns < part.first_ns) part.first_ns = first_ns;
        if (last_ns > part.last_ns) part.last_ns = last_ns;
        part.tick_count = add_limited(part.tick_count, in.end - in.skipped);
    }
    return part;
}

static void keep_ticks(struct profile *profile, size_t from, size_t to, uint64_t kept, uint64_t ticks, uint64_t time_ns)
{
    struct sample_columns *samples = &profile->samples;
    size_t columns = profile->value_type_count;
    samples->stack[to] = samples->stack[from];
    samples->thread[to] = samples->thread[from];
    samples->labels[to] = samples->labels[from];
    samples->time_ns[to] = time_ns;
    for (size_t i = 0; i < columns; i++) {
        __int128 value = samples->values[from * columns + i];
        samples->values[to * columns + i] = (int64_t)(value * (__int128)kept / (__int128)ticks);
    }
}

void sample_times_keep(struct profile *profile, uint64_t from_ns, uint64_t to_ns)
{
    size_t kept = 0;
    uint64_t period_ns = sample_times_period_ns(profile);
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct ticks in = ticks_within(profile, i, period_ns, from_ns, to_ns);
        if (in.end <= in.skipped) continue;
        keep_ticks(profile, i, kept++, in.end - in.skipped, in.count, in.time_ns + in.skipped * in.spacing_ns);
    }
    profile->samples.count = kept;
}

void sample_times_assign(struct profile *profile, uint64_t start_ns)
{
    uint64_t *clocks = calloc(profile->threads.count, sizeof(*clocks)); /* time since the start, by thread, ns */
    if (!clocks) {
        profile->failed = STATUS_NO_MEMORY;
        return;
    }
    uint64_t period_ns = sample_times_period_ns(profile);
    if (profile->time_ns == 0) profile->time_ns = profile_start_at(start_ns);
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint64_t *clock = &clocks[profile->samples.thread[i].index];
        profile->samples.time_ns[i] = add_limited(profile_start_ns(profile), *clock);
        uint64_t spacing_ns = sample_times_spacing_ns(profile, i, period_ns);
        *clock = add_limited(*clock, multiply_limited(sample_ticks(profile, i), spacing_ns));
    }
    free(clocks);
    profile->has_times = true;
    profile->period = (int64_t)period_ns;
    profile->period_type =
        (struct value_type){.type = profile_text(profile, "wall"), .unit = profile_text(profile, "nanoseconds")};
}
