/* SPDX-License-Identifier: MIT */
#include "cli/process_starts.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/unsigned.h"
#include "profile/incomplete.h"

#include <stdlib.h>
#include <string.h>

#define CLOCKS_MAX (1 << 22) /* there are no more process numbers */

static bool is_clock_of(const void *context, uint32_t index, const void *key)
{
    const struct process_starts *starts = context;
    const pid_t *pid = key;
    return starts->items[index].pid == *pid;
}

/* Made if there is none; NULL without memory. */
static struct process_clock *clock_of(struct process_starts *starts, pid_t pid)
{
    uint64_t hash = hash_bytes(&pid, sizeof(pid));
    uint32_t index = index_table_find(&starts->index, hash, is_clock_of, starts, &pid);
    if (index != INDEX_NONE) return &starts->items[index];
    if (!array_reserve(&starts->items, &starts->capacity, starts->count + 1, sizeof(*starts->items), CLOCKS_MAX))
        return NULL;
    if (!index_table_add(&starts->index, hash, (uint32_t)starts->count)) return NULL;
    starts->items[starts->count] = (struct process_clock){.pid = pid};
    return &starts->items[starts->count++];
}

static struct thread_id first_thread(const struct profile *profile, pid_t pid)
{
    for (size_t i = 1; i < profile->threads.count; i++) {
        const char *id = profile_c_string(profile, profile->threads.items[i].id);
        if (strtol(id, NULL, 10) == pid) return (struct thread_id){(uint32_t)i};
    }
    return (struct thread_id){profile->threads.count > 1};
}

static bool is_column(const struct profile *profile, size_t column, const char *name)
{
    return strcmp(profile_c_string(profile, profile->value_types[column].type), name) == 0;
}

uint64_t recorded_cpu_ns(const struct profile *profile)
{
    uint64_t sum_ns = 0;
    for (size_t column = 1; column < profile->value_type_count; column++) {
        if (!is_column(profile, column, "cpu")) continue;
        for (size_t i = 0; i < profile->samples.count; i++)
            sum_ns += (uint64_t)profile_sample_values(profile, i)[column];
    }
    return sum_ns;
}

static void add_sample(struct process_starts *starts, struct profile *profile, pid_t pid, struct process_start used)
{
    uint64_t ns = used.cpu_ns + used.wait_ns;
    struct string_id name = profile_text(profile, STARTING);
    struct function function = {.name = name, .system_name = name, .in_app = IN_APP_NO};
    struct line line = {.function = profile_add_function(profile, &function)};
    struct location start = incomplete_location(profile);
    struct location_id location = profile_add_location(profile, &start, &line, 1);
    profile->time_ns -= (int64_t)ns;
    profile->duration_ns += ns;
    struct sample sample = {.stack = profile_add_stack(profile, (struct stack_id){0}, location),
                            .thread = first_thread(profile, pid),
                            .time_ns = profile_start_ns(profile)};
    double periods = (double)ns / (double)profile->period + starts->rest_of_period;
    int64_t values[PROFILE_VALUES_MAX] = {(int64_t)periods};
    starts->rest_of_period = periods - (double)values[0];
    for (size_t i = 1; i < profile->value_type_count; i++) {
        if (is_column(profile, i, "wall")) values[i] = (int64_t)ns;
        if (is_column(profile, i, "cpu")) values[i] = (int64_t)used.cpu_ns;
        if (is_column(profile, i, "runnable")) values[i] = (int64_t)used.wait_ns;
    }
    profile_add_sample(profile, &sample, values);
}

uint64_t process_starts_add(struct process_starts *starts, struct profile *profile, pid_t pid,
                            struct process_start before)
{
    struct process_clock *clock = clock_of(starts, pid);
    if (!clock || profile->period <= 0) return 0;
    uint64_t recorded_ns = recorded_cpu_ns(profile), start_ns = profile_start_ns(profile);
    uint64_t gap_ns = difference(start_ns, clock->end_ns);
    struct process_start added = {.cpu_ns = least(difference(before.cpu_ns, clock->cpu_ns), gap_ns),
                                  .wait_ns = clock->end_ns == 0 ? before.wait_ns : 0};
    clock->cpu_ns += added.cpu_ns + recorded_ns;
    clock->end_ns = start_ns + profile->duration_ns;
    if (added.cpu_ns + added.wait_ns > 0) add_sample(starts, profile, pid, added);
    return added.cpu_ns;
}

void process_starts_fini(struct process_starts *starts)
{
    index_table_fini(&starts->index);
    free(starts->items);
    *starts = (struct process_starts){0};
}
