/* The columns of samples: adding, summing equal ones, sorting by time.  SPDX-License-Identifier: MIT */
#include "profile/profile_private.h"

#include "base/array.h"
#include "base/hash.h"

void profile_add_value_type(struct profile *profile, const char *type, const char *unit)
{
    if (profile->value_type_count == PROFILE_VALUES_MAX) {
        profile_fail(profile, STATUS_TOO_LARGE);
        return;
    }
    if (profile->samples.count > 0) {
        profile_fail(profile, STATUS_UNSUPPORTED);
        return;
    }
    /* No sample yet, but perhaps memory for some, of rows that were shorter. */
    free(profile->samples.values);
    profile->samples.values = NULL;
    profile->samples.capacity = 0;
    profile->value_types[profile->value_type_count++] =
        (struct value_type){.type = profile_text(profile, type), .unit = profile_text(profile, unit)};
}

/* --- Adding ------------------------------------------------------------------------------------------------------- */

/* Every column grows on its own and remembers nothing of it, so that a failure half-way leaves a capacity that holds
 * for all of them. */
static bool reserve_columns(struct profile *profile, size_t needed)
{
    struct sample_columns *samples = &profile->samples;
    size_t row = profile->value_type_count * sizeof(int64_t);
    size_t capacity[5] = {0};
    bool is_reserved = array_reserve(&samples->stack, &capacity[0], needed, sizeof(*samples->stack), needed) &&
                       array_reserve(&samples->thread, &capacity[1], needed, sizeof(*samples->thread), needed) &&
                       array_reserve(&samples->labels, &capacity[2], needed, sizeof(*samples->labels), needed) &&
                       array_reserve(&samples->time_ns, &capacity[3], needed, sizeof(*samples->time_ns), needed) &&
                       (row == 0 || array_reserve(&samples->values, &capacity[4], needed, row, needed));
    if (is_reserved) samples->capacity = needed;
    return is_reserved;
}

void profile_expect_samples(struct profile *profile, size_t more)
{
    struct sample_columns *samples = &profile->samples;
    if (more > PROFILE_SAMPLES_MAX - samples->count || samples->count + more <= samples->capacity) return;
    (void)reserve_columns(profile, samples->count + more);
}

static bool grow_columns(struct profile *profile)
{
    struct sample_columns *samples = &profile->samples;
    if (profile->failed != STATUS_OK) return false;
    if (samples->count >= PROFILE_SAMPLES_MAX) {
        profile_fail(profile, STATUS_TOO_LARGE);
        return false;
    }
    size_t needed = samples->capacity + samples->capacity / 2 + 64;
    if (needed > PROFILE_SAMPLES_MAX) needed = PROFILE_SAMPLES_MAX;
    if (reserve_columns(profile, needed)) return true;
    profile_fail(profile, STATUS_NO_MEMORY);
    return false;
}

void profile_add_sample(struct profile *profile, const struct sample *sample, const int64_t *values)
{
    struct sample_columns *samples = &profile->samples;
    if (samples->count == samples->capacity && !grow_columns(profile)) return;
    size_t row = profile->value_type_count;
    samples->stack[samples->count] = sample->stack;
    samples->thread[samples->count] = sample->thread;
    samples->labels[samples->count] = sample->labels;
    samples->time_ns[samples->count] = sample->time_ns;
    if (row > 0) memcpy(samples->values + samples->count * row, values, row * sizeof(*values));
    samples->count++;
}

/* --- Summing ------------------------------------------------------------------------------------------------------ */

static bool sample_equal(const void *context, uint32_t index, const void *key)
{
    const struct sample_columns *samples = context;
    size_t other = *(const size_t *)key;
    return samples->stack[index].index == samples->stack[other].index &&
           samples->thread[index].index == samples->thread[other].index &&
           samples->labels[index].index == samples->labels[other].index;
}

/* Moves sample FROM to the free place TO, before it. */
static void move_sample(struct profile *profile, size_t to, size_t from)
{
    struct sample_columns *samples = &profile->samples;
    size_t row = profile->value_type_count;
    samples->stack[to] = samples->stack[from];
    samples->thread[to] = samples->thread[from];
    samples->labels[to] = samples->labels[from];
    if (row > 0) memmove(samples->values + to * row, samples->values + from * row, row * sizeof(*samples->values));
}

enum status profile_aggregate(struct profile *profile, struct error *error)
{
    struct sample_columns *samples = &profile->samples;
    struct index_table seen = {0};
    size_t row = profile->value_type_count;
    size_t kept = 0;
    for (size_t i = 0; i < samples->count; i++) {
        uint64_t hash =
            hash_mix(samples->stack[i].index, (uint64_t)samples->thread[i].index << 32 | samples->labels[i].index);
        uint32_t known = index_table_find(&seen, hash, sample_equal, samples, &i);
        if (known != INDEX_NONE) {
            int64_t *sum = samples->values + known * row;
            for (size_t value = 0; value < row; value++) {
                sum[value] = profile_add_values(sum[value], samples->values[i * row + value]);
            }
            continue;
        }
        if (!index_table_add(&seen, hash, (uint32_t)kept)) {
            /* Half summed: the rest moves up as it is, and no sample is lost. */
            for (; i < samples->count; i++) move_sample(profile, kept++, i);
            profile_fail(profile, STATUS_NO_MEMORY);
            break;
        }
        move_sample(profile, kept++, i);
    }
    index_table_fini(&seen);
    samples->count = kept;
    if (kept > 0) memset(samples->time_ns, 0, kept * sizeof(*samples->time_ns));
    profile->has_times = false;
    return profile_failed(profile, error);
}

void profile_drop_zero_samples(struct profile *profile)
{
    size_t row = profile->value_type_count, kept = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        size_t value = 0;
        while (value < row && values[value] == 0) value++;
        if (value == row) continue;
        profile->samples.time_ns[kept] = profile->samples.time_ns[i];
        move_sample(profile, kept++, i);
    }
    profile->samples.count = kept;
}

void profile_drop_threads(struct profile *profile, const char *const *names)
{
    size_t kept = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct slice name = profile_slice(profile, profile_thread(profile, profile->samples.thread[i])->name);
        bool is_dropped = false;
        for (size_t k = 0; names[k]; k++) is_dropped |= slice_equals_text(name, names[k]);
        if (is_dropped) continue;
        profile->samples.time_ns[kept] = profile->samples.time_ns[i];
        move_sample(profile, kept++, i);
    }
    profile->samples.count = kept;
}

void profile_keep_samples(struct profile *profile, const bool *is_kept)
{
    size_t kept = 0;
    if (profile->stated) stated_costs_keep(profile, is_kept);
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (!is_kept[i]) continue;
        profile->samples.time_ns[kept] = profile->samples.time_ns[i];
        move_sample(profile, kept++, i);
    }
    profile->samples.count = kept;
}

/* --- Sorting ------------------------------------------------------------------------------------------------------ */

struct sort_key {
    uint64_t time_ns;
    size_t place; /* index of the sample in the unsorted columns */
};

/* The end of the keys from FIRST on that are in order. */
static size_t run_end(const struct sort_key *keys, size_t first, size_t count)
{
    size_t end = first;
    while (end < count && (end == first || keys[end - 1].time_ns <= keys[end].time_ns)) end++;
    return end;
}

/* Merges the run from FIRST to MIDDLE with the one up to END, of equal keys the first run's first. */
static void merge_runs(const struct sort_key *keys, size_t first, size_t middle, size_t end, struct sort_key *out)
{
    const struct sort_key *left = keys + first, *right = keys + middle;
    const struct sort_key *left_end = right, *right_end = keys + end;
    while (left < left_end && right < right_end) {
        bool is_right = right->time_ns < left->time_ns;
        *out++ = is_right ? *right : *left;
        right += is_right;
        left += !is_right;
    }
    memcpy(out, left, (size_t)(left_end - left) * sizeof(*left));
    out += left_end - left;
    memcpy(out, right, (size_t)(right_end - right) * sizeof(*right));
}

/* Merges neighbours until there is one run: samples mostly come in a few runs, a thread or a process after the other.
 * Stable. Returns where the keys are, in KEYS or SPARE. */
static struct sort_key *sort_keys(struct sort_key *keys, struct sort_key *spare, size_t count)
{
    for (;;) {
        size_t runs = 0;
        for (size_t first = 0, end; first < count; first = end, runs++) {
            size_t middle = run_end(keys, first, count);
            end = run_end(keys, middle, count);
            merge_runs(keys, first, middle, end, spare + first);
        }
        struct sort_key *sorted = spare;
        spare = keys;
        keys = sorted;
        if (runs <= 1) return keys;
    }
}

static bool is_sorted(const struct sample_columns *samples)
{
    for (size_t i = 1; i < samples->count; i++) {
        if (samples->time_ns[i - 1] > samples->time_ns[i]) return false;
    }
    return true;
}

/* Puts the items of COLUMN, of a constant ITEM_SIZE, into the order of KEYS by way of SPARE, which has room for them.
 */
static inline void permute_items(void *column, size_t item_size, const struct sort_key *keys, size_t count,
                                 uint8_t *spare)
{
    const uint8_t *items = column;
    for (size_t i = 0; i < count; i++) memcpy(spare + i * item_size, items + keys[i].place * item_size, item_size);
    memcpy(column, spare, count * item_size);
}

enum status profile_sort_by_time(struct profile *profile, struct error *error)
{
    struct sample_columns *samples = &profile->samples;
    size_t count = samples->count;
    if (is_sorted(samples)) return profile_failed(profile, error);

    size_t row_bytes = profile->value_type_count * sizeof(*samples->values);
    struct sort_key *keys = malloc(count * 2 * sizeof(*keys));
    uint8_t *spare = malloc(count * (row_bytes > sizeof(uint64_t) ? row_bytes : sizeof(uint64_t)));
    if (keys && spare) {
        for (size_t i = 0; i < count; i++) keys[i] = (struct sort_key){.time_ns = samples->time_ns[i], .place = i};
        const struct sort_key *sorted = sort_keys(keys, keys + count, count);
        permute_items(samples->stack, sizeof(*samples->stack), sorted, count, spare);
        permute_items(samples->thread, sizeof(*samples->thread), sorted, count, spare);
        permute_items(samples->labels, sizeof(*samples->labels), sorted, count, spare);
        permute_items(samples->time_ns, sizeof(*samples->time_ns), sorted, count, spare);
        if (row_bytes > 0) permute_items(samples->values, row_bytes, sorted, count, spare);
    } else {
        profile_fail(profile, STATUS_NO_MEMORY);
    }
    free(keys);
    free(spare);
    return profile_failed(profile, error);
}
