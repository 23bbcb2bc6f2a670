/* SPDX-License-Identifier: MIT */
#include "analyze/time_cut.h"

#include <stdlib.h>
#include <string.h>

static bool has_unit(const struct profile *profile, size_t column, const char *unit)
{
    return strcmp(profile_c_string(profile, profile->value_types[column].unit), unit) == 0;
}

/* The longest value in nanoseconds of SAMPLE, the last one of its thread. */
static uint64_t longest_value(const struct profile *profile, size_t sample)
{
    int64_t longest = 0;
    for (size_t i = 0; i < profile->value_type_count; i++) {
        int64_t value = profile_sample_values(profile, sample)[i];
        if (has_unit(profile, i, "nanoseconds") && value > longest) longest = value;
    }
    return (uint64_t)longest;
}

/* Scales the values of SAMPLE, which lasts LENGTH_NS, to PART_NS of it. */
static void scale_values(struct profile *profile, size_t sample, uint64_t part_ns, uint64_t length_ns)
{
    int64_t *values = profile->samples.values + sample * profile->value_type_count;
    for (size_t i = 0; i < profile->value_type_count; i++) {
        if (has_unit(profile, i, "count")) continue;
        values[i] = (int64_t)((__int128)values[i] * (__int128)part_ns / (__int128)length_ns);
    }
}

/* Cuts SAMPLE, which ends at END_NS, to the range. False if nothing of it is within. */
static bool cut_sample(struct profile *profile, size_t sample, uint64_t end_ns, const struct time_cut *cut)
{
    uint64_t *start_ns = &profile->samples.time_ns[sample], length_ns = end_ns - *start_ns;
    if (length_ns == 0) return *start_ns >= cut->start_ns && *start_ns < cut->end_ns;
    uint64_t first_ns = *start_ns > cut->start_ns ? *start_ns : cut->start_ns;
    uint64_t last_ns = end_ns < cut->end_ns ? end_ns : cut->end_ns;
    if (first_ns >= last_ns) return false;
    if (last_ns - first_ns < length_ns) scale_values(profile, sample, last_ns - first_ns, length_ns);
    *start_ns = first_ns;
    return true;
}

enum status time_cut_apply(struct profile *profile, const struct time_cut *cut, struct error *error)
{
    enum status status = profile_sort_by_time(profile, error);
    if (status != STATUS_OK) return status;
    uint64_t *next_ns = calloc(profile->threads.count, sizeof(*next_ns)); /* next sample of each thread; 0: none */
    bool *is_kept = calloc(profile->samples.count + 1, sizeof(*is_kept));
    if (next_ns && is_kept) {
        /* Cuts from the last sample to the first, so that the next one of each thread is known. */
        for (size_t i = profile->samples.count; i-- > 0;) {
            uint32_t thread = profile->samples.thread[i].index;
            uint64_t time_ns = profile->samples.time_ns[i], end_ns = next_ns[thread];
            if (end_ns == 0 && __builtin_add_overflow(time_ns, longest_value(profile, i), &end_ns)) end_ns = UINT64_MAX;
            next_ns[thread] = time_ns;
            bool is_of_thread = !cut->has_thread || thread == cut->thread.index;
            is_kept[i] = is_of_thread && cut_sample(profile, i, end_ns, cut);
        }
        profile_keep_samples(profile, is_kept);
    } else {
        status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to cut the profile");
    }
    free(next_ns);
    free(is_kept);
    return status;
}

uint64_t times_origin_ns(const struct profile *profile)
{
    uint64_t first_ns = UINT64_MAX, start_ns = profile_start_ns(profile);
    if (!profile->has_times || profile->samples.count == 0) return start_ns;
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (profile->samples.time_ns[i] < first_ns) first_ns = profile->samples.time_ns[i];
    }
    return start_ns == 0 || start_ns > first_ns ? first_ns : start_ns;
}
