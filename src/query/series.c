/* A series is what one process sends: chunks with equal columns in the store. Its first profile is the base of the
 * differences, because what it counts happened before; a series of a single profile is shown as it is. A profile in
 * which stacks have less than in the one before it is of a restarted process, and counts as it is.
 * SPDX-License-Identifier: MIT */
#include "query/series.h"

#include "base/clocks.h"
#include "base/hash.h"
#include "profile/profile_scale.h"
#include "query/kinds.h"

#include <stdlib.h>
#include <string.h>

enum { NEIGHBOUR_SECONDS = 3600 };
#define RESTART_SHARE 0.01 /* part of the values; estimated ones may fall a little in a running process */

struct series {
    char id[SHA1_TEXT_SIZE];
    enum kind_rule rules[PROFILE_VALUES_MAX];
    bool has_difference;
    uint64_t base_ns; /* start of the last profile before the range; 0: none */
    bool has_later;   /* a profile after the range */
    uint64_t end_ns;  /* start of the last profile in the range */
    struct profile sum, previous;
    bool has_previous, has_base; /* HAS_BASE: the differences of all profiles in the range are known */
    uint64_t last_ns, moment_count, snapshot_count;
    size_t compacted_samples;
};

/* --- Finding ------------------------------------------------------------------------------------------------------ */

static bool has_id(const void *context, uint32_t index, const void *id)
{
    const struct series_list *list = context;
    return strcmp(list->items[index]->id, id) == 0;
}

static void write_id(const struct store_chunk *chunk, char ret_id[SHA1_TEXT_SIZE])
{
    const struct slice texts[] = {chunk->kinds, chunk->service,  chunk->environment, chunk->release,
                                  chunk->host,  chunk->platform, chunk->profiler_id, chunk->series};
    struct sha1 sha1;
    sha1_init(&sha1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        sha1_add(&sha1, texts[i]);
        sha1_add(&sha1, slice_of_text("\n"));
    }
    sha1_finish(&sha1, ret_id);
}

void series_of_chunk(const struct store_chunk *chunk, const struct profile *profile, struct rollup_series *ret_series)
{
    *ret_series = (struct rollup_series){.profile_count = 1};
    write_id(chunk, ret_series->id);
    for (size_t i = 0; i < profile->value_type_count; i++)
        ret_series->rules[i] = kinds_rule_of(chunk->kinds, profile_slice(profile, profile->value_types[i].type));
}

static void series_free(struct series *series)
{
    if (!series) return;
    profile_fini(&series->sum);
    profile_fini(&series->previous);
    free(series);
}

/* The series ID, a new one if there is none. NULL without memory, or if there are too many. */
static struct series *series_of(struct series_list *list, const char *id)
{
    uint64_t hash = hash_bytes(id, SHA1_TEXT_SIZE);
    uint32_t index = index_table_find(&list->index, hash, has_id, list, id);
    if (index != INDEX_NONE) return list->items[index];
    if (!array_reserve(&list->items, &list->capacity, list->count + 1, sizeof(struct series *), SERIES_MAX))
        return NULL;
    struct series *series = calloc(1, sizeof(*series));
    if (!series || !index_table_add(&list->index, hash, (uint32_t)list->count)) {
        free(series);
        return NULL;
    }
    (void)memcpy(series->id, id, SHA1_TEXT_SIZE);
    profile_init(&series->sum);
    profile_init(&series->previous);
    list->items[list->count++] = series;
    return series;
}

static struct series *series_of_stored(struct series_list *list, const struct store_chunk *chunk)
{
    char id[SHA1_TEXT_SIZE];
    write_id(chunk, id);
    return series_of(list, id);
}

static bool note_profile(void *context, const struct store_chunk *chunk)
{
    struct series_list *list = context;
    bool is_before = chunk->start_ns < list->from_ns, is_after = chunk->start_ns >= list->to_ns;
    struct series *series = is_before || is_after || list->only_last ? series_of_stored(list, chunk) : NULL;
    if (series && !is_before && !is_after && chunk->start_ns > series->end_ns) series->end_ns = chunk->start_ns;
    if (series && is_before && chunk->start_ns > series->base_ns) series->base_ns = chunk->start_ns;
    if (series && is_after) series->has_later = true;
    return true;
}

uint64_t series_first_ns(const struct series_list *list)
{
    uint64_t first_ns = list->from_ns;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t base_ns = list->items[i]->base_ns;
        if (base_ns && base_ns < first_ns) first_ns = base_ns;
    }
    return first_ns;
}

void series_list_init(struct series_list *list, const struct store_query *query)
{
    *list = (struct series_list){.from_ns = query->from_ns, .to_ns = query->to_ns ? query->to_ns : UINT64_MAX};
}

enum status series_find_profiles(struct series_list *list, struct store *store, const struct store_query *query,
                                 struct error *error)
{
    struct store_query beside = *query;
    enum status status = STATUS_OK;
    if (list->only_last) return store_each_chunk(store, query, note_profile, list, error);
    uint64_t away_ns = NEIGHBOUR_SECONDS * SECOND_NS;
    beside.from_ns = list->from_ns > away_ns ? list->from_ns - away_ns : 0;
    beside.to_ns = list->from_ns;
    if (list->from_ns) status = store_each_chunk(store, &beside, note_profile, list, error);
    beside.from_ns = list->to_ns;
    beside.to_ns = list->to_ns + away_ns;
    if (status == STATUS_OK && query->to_ns) status = store_each_chunk(store, &beside, note_profile, list, error);
    return status;
}

void series_list_fini(struct series_list *list)
{
    for (size_t i = 0; i < list->count; i++) series_free(list->items[i]);
    free(list->items);
    index_table_fini(&list->index);
    *list = (struct series_list){0};
}

bool series_is_used(const struct series *series)
{
    return series->moment_count > 0;
}

bool series_takes(struct series_list *list, const struct store_chunk *chunk)
{
    bool is_before = chunk->start_ns < list->from_ns;
    if (chunk->start_ns >= list->to_ns) return false;
    if (!is_before && !list->only_last) return true;
    const struct series *series = series_of_stored(list, chunk);
    if (!series) return list->only_last; /* series_add says that there are too many */
    return chunk->start_ns == (list->only_last ? series->end_ns : series->base_ns);
}

/* --- Adding ------------------------------------------------------------------------------------------------------- */

/* Multiplies the columns of RULE by RATIO and the others by OTHER. */
static void scale_columns(const struct series *series, struct profile *profile, enum kind_rule rule, double ratio,
                          double other)
{
    double ratios[PROFILE_VALUES_MAX];
    for (size_t i = 0; i < profile->value_type_count; i++) ratios[i] = series->rules[i] == rule ? ratio : other;
    profile_scale(profile, ratios);
}

/* Sums of the values of column COLUMN above 0, and of those below. */
static void sum_signs(const struct profile *profile, size_t column, double *ret_above, double *ret_below)
{
    *ret_above = *ret_below = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        double value = (double)profile_sample_values(profile, i)[column];
        *(value < 0 ? ret_below : ret_above) += value;
    }
}

/* Whether DIFFERENCE, to the values of PREVIOUS times -1, shows that the process began anew. */
static bool is_restart(const struct series *series, const struct profile *difference, const struct profile *previous)
{
    for (size_t column = 0; column < difference->value_type_count; column++) {
        double above, fallen, before;
        if (series->rules[column] != KIND_DIFFERENCE) continue;
        sum_signs(previous, column, &above, &before);
        sum_signs(difference, column, &above, &fallen);
        if (fallen < before * RESTART_SHARE) return true;
    }
    return false;
}

static void remove_negative(struct profile *profile)
{
    size_t count = profile->samples.count * profile->value_type_count;
    for (size_t i = 0; i < count; i++) {
        if (profile->samples.values[i] < 0) profile->samples.values[i] = 0;
    }
}

/* Adds PROFILE to the sum, whose equal samples are added while it grows. */
static enum status add_to_sum(struct series *series, const struct profile *profile, struct error *error)
{
    enum { SAMPLES_FREE = 1 << 14 };
    enum status status = profile_merge(&series->sum, profile, NULL, error);
    size_t count = series->sum.samples.count;
    if (status != STATUS_OK || count < SAMPLES_FREE || count < 2 * series->compacted_samples) return status;
    status = profile_compact(&series->sum, error);
    series->compacted_samples = series->sum.samples.count;
    return status;
}

/* Adds what PROFILE has more than the one before it. */
static enum status add_difference(struct series_list *list, struct series *series, const struct profile *profile,
                                  struct error *error)
{
    struct profile difference;
    profile_init(&difference);
    scale_columns(series, &series->previous, KIND_DIFFERENCE, -1, 0);
    enum status status = profile_merge(&difference, profile, NULL, error);
    if (status == STATUS_OK) status = profile_merge(&difference, &series->previous, NULL, error);
    if (status == STATUS_OK) status = profile_compact(&difference, error);
    bool has_restarted = status == STATUS_OK && is_restart(series, &difference, &series->previous);
    list->restart_count += has_restarted;
    if (status == STATUS_OK) {
        remove_negative(&difference);
        status = add_to_sum(series, has_restarted ? profile : &difference, error);
    }
    profile_fini(&difference);
    return status;
}

/* Adds PROFILE as it is, or without the columns of differences. */
static enum status add_as_it_is(struct series *series, const struct profile *profile, bool has_differences,
                                struct error *error)
{
    struct profile copy;
    if (has_differences) return add_to_sum(series, profile, error);
    profile_init(&copy);
    enum status status = profile_merge(&copy, profile, NULL, error);
    if (status == STATUS_OK) {
        scale_columns(series, &copy, KIND_DIFFERENCE, 0, 1);
        status = add_to_sum(series, &copy, error);
    }
    profile_fini(&copy);
    return status;
}

static void set_rules(struct series *series, const struct rollup_series *of_profile, const struct profile *profile)
{
    for (size_t i = 0; i < profile->value_type_count; i++) {
        series->rules[i] = of_profile->rules[i];
        series->has_difference |= series->rules[i] == KIND_DIFFERENCE;
    }
}

static enum status say_too_many(struct error *error)
{
    return error_set(error, STATUS_TOO_LARGE, 0, "more than %d series match; choose a service or host", SERIES_MAX);
}

enum status series_add_sum(struct series_list *list, const struct rollup_series *sums, const struct profile *profile,
                           struct error *error)
{
    struct series *series = series_of(list, sums->id);
    if (!series) return say_too_many(error);
    set_rules(series, sums, profile);
    series->moment_count += sums->profile_count;
    series->snapshot_count += sums->profile_count;
    list->profile_count += sums->profile_count;
    return add_to_sum(series, profile, error);
}

static void keep_previous(struct series *series, struct profile *profile)
{
    profile_fini(&series->previous);
    series->previous = *profile;
    profile_init(profile);
    series->has_previous = true;
}

enum status series_add_increases(struct series_list *list, const struct rollup_series *sums,
                                 struct series_increases *sum, struct error *error)
{
    struct series *series = series_of(list, sums->id);
    if (!series) return say_too_many(error);
    set_rules(series, sums, &sum->increases);
    if (series->has_previous && sum->first_ns < series->last_ns)
        return error_set(error, STATUS_UNSUPPORTED, 0, "the sums are not in the order of time");
    enum status status = series->has_previous ? add_difference(list, series, &sum->first, error) : STATUS_OK;
    if (status == STATUS_OK) status = add_to_sum(series, &sum->increases, error);
    series->moment_count += sums->profile_count;
    series->snapshot_count += sums->profile_count;
    series->last_ns = sum->last_ns;
    list->profile_count += sums->profile_count;
    list->restart_count += sums->restart_count;
    keep_previous(series, &sum->last);
    return status;
}

enum status series_add(struct series_list *list, const struct store_chunk *chunk, struct profile *profile,
                       struct error *error)
{
    enum status status = STATUS_OK;
    struct rollup_series of_chunk;
    series_of_chunk(chunk, profile, &of_chunk);
    struct series *series = series_of(list, of_chunk.id);
    if (!series) return say_too_many(error);
    set_rules(series, &of_chunk, profile);
    bool is_late = series->has_difference && series->has_previous && chunk->start_ns < series->last_ns;
    if (is_late) return STATUS_OK;
    bool is_base = chunk->start_ns < list->from_ns;
    if (!is_base) {
        bool is_first = series->moment_count == 0;
        series->moment_count += is_first || chunk->start_ns != series->last_ns;
        list->profile_count++;
        if (list->only_last && !is_first) {
            profile_fini(&series->sum);
            profile_init(&series->sum);
        }
        series->snapshot_count = list->only_last ? 1 : series->snapshot_count + 1;
        status = series->has_difference && series->has_previous
                     ? add_difference(list, series, profile, error)
                     : add_as_it_is(series, profile, !series->has_difference, error);
    }
    series->has_base |= is_base;
    series->last_ns = chunk->start_ns;
    if (status == STATUS_OK && series->has_difference) keep_previous(series, profile);
    return status;
}

/* --- Merging ------------------------------------------------------------------------------------------------------ */

/* A single profile without another one beside the range is all that is known of its process. */
static enum status finish_one(struct series *series, struct error *error)
{
    bool is_alone = series->has_difference && !series->has_base && !series->has_later && series->moment_count == 1;
    enum status status = STATUS_OK;
    if (is_alone) {
        scale_columns(series, &series->previous, KIND_DIFFERENCE, 1, 0);
        status = add_as_it_is(series, &series->previous, true, error);
    }
    if (status == STATUS_OK) status = profile_compact(&series->sum, error);
    if (status == STATUS_OK && series->snapshot_count > 1)
        scale_columns(series, &series->sum, KIND_AVERAGE, 1 / (double)series->snapshot_count, 1);
    return status;
}

enum status series_finish(struct series_list *list, struct profile *merged, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < list->count && status == STATUS_OK; i++) {
        struct series *series = list->items[i];
        if (series->moment_count == 0) continue;
        status = finish_one(series, error);
        if (status == STATUS_OK) status = profile_make_compatible(merged, &series->sum, error);
        if (status == STATUS_OK) status = profile_merge(merged, &series->sum, NULL, error);
    }
    return status;
}
