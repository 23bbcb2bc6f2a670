/* SPDX-License-Identifier: MIT */
#include "profile/stated_costs.h"

#include "base/hash.h"
#include "profile/profile_private.h"

#include <stdlib.h>

/* --- Adding ------------------------------------------------------------------------------------------------------- */

static struct stated_costs *costs_of(struct profile *profile)
{
    if (!profile->stated) profile->stated = calloc(1, sizeof(*profile->stated));
    if (!profile->stated) profile_fail(profile, STATUS_NO_MEMORY);
    return profile->failed == STATUS_OK ? profile->stated : NULL;
}

/* Reserves one more item in LIST of the stated costs of PROFILE. */
#define RESERVE_ONE(profile, list)                                                                                     \
    profile_reserve((profile), &(list)->items, &(list)->capacity, (list)->count + 1, sizeof(*(list)->items),           \
                    PROFILE_ENTITIES_MAX)

static bool function_equal(const void *context, uint32_t index, const void *key)
{
    const struct stated_function *a = &((const struct stated_costs *)context)->functions.items[index], *b = key;
    return a->thread.index == b->thread.index && a->labels.index == b->labels.index &&
           a->mapping.index == b->mapping.index && a->function.index == b->function.index;
}

uint32_t stated_function_add(struct profile *profile, const struct stated_function *key)
{
    struct stated_costs *costs = costs_of(profile);
    if (!costs) return INDEX_NONE;
    uint64_t hash = hash_mix((uint64_t)key->thread.index << 32 | key->labels.index,
                             (uint64_t)key->mapping.index << 32 | key->function.index);
    uint32_t found = index_table_find(&costs->functions.index, hash, function_equal, costs, key);
    if (found != INDEX_NONE) return found;
    struct stated_function added = {
        .thread = key->thread, .labels = key->labels, .mapping = key->mapping, .function = key->function};
    if (INDEXED_ARRAY_PUSH(&costs->functions, PROFILE_ENTITIES_MAX, hash, added))
        return (uint32_t)costs->functions.count - 1;
    profile_fail(profile, costs->functions.count == PROFILE_ENTITIES_MAX ? STATUS_TOO_LARGE : STATUS_NO_MEMORY);
    return INDEX_NONE;
}

/* Adds VALUES without the zeros at their end. */
static bool add_values(struct profile *profile, struct stated_values *ret_values, const int64_t *values, uint32_t count)
{
    struct stated_costs *costs = profile->stated;
    while (count > 0 && values[count - 1] == 0) count--;
    *ret_values = (struct stated_values){.first = costs->values.count, .count = count};
    if (count == 0) return true;
    if (!profile_reserve(profile, &costs->values.items, &costs->values.capacity, costs->values.count + count,
                         sizeof(*costs->values.items), PROFILE_SAMPLES_MAX))
        return false;
    memcpy(costs->values.items + costs->values.count, values, count * sizeof(*values));
    costs->values.count += count;
    return true;
}

void stated_cost_add(struct profile *profile, uint32_t function, struct location_id location, const int64_t *values,
                     uint32_t count)
{
    struct stated_costs *costs = costs_of(profile);
    struct stated_place place = {.function = function, .location = location};
    if (!costs || function == INDEX_NONE || !RESERVE_ONE(profile, &costs->places)) return;
    if (add_values(profile, &place.values, values, count)) costs->places.items[costs->places.count++] = place;
}

void stated_call_add(struct profile *profile, const struct stated_call *call, const int64_t *values, uint32_t count)
{
    struct stated_costs *costs = costs_of(profile);
    struct stated_call added = *call;
    if (!costs || call->caller == INDEX_NONE || call->callee == INDEX_NONE || !RESERVE_ONE(profile, &costs->calls))
        return;
    if (add_values(profile, &added.values, values, count)) costs->calls.items[costs->calls.count++] = added;
}

/* Adds FROM to INTO, which is extended if FROM has more values. */
static void sum_values(struct profile *profile, struct stated_values *into, const struct stated_values *from)
{
    struct stated_costs *costs = profile->stated;
    struct stated_values longer = into->count >= from->count ? *into : *from,
                         shorter = into->count >= from->count ? *from : *into;
    for (uint32_t i = 0; i < shorter.count; i++) {
        int64_t *sum = &costs->values.items[longer.first + i];
        *sum = profile_add_values(*sum, costs->values.items[shorter.first + i]);
    }
    *into = longer;
}

void stated_inclusive_add(struct profile *profile, uint32_t function, const int64_t *values, uint32_t count)
{
    struct stated_costs *costs = costs_of(profile);
    struct stated_values added;
    if (!costs || function == INDEX_NONE || !add_values(profile, &added, values, count)) return;
    sum_values(profile, &costs->functions.items[function].inclusive, &added);
    costs->functions.items[function].has_inclusive = true;
}

void stated_costs_drop(struct profile *profile)
{
    struct stated_costs *costs = profile->stated;
    if (!costs) return;
    index_table_fini(&costs->functions.index);
    free(costs->functions.items);
    free(costs->places.items);
    free(costs->calls.items);
    free(costs->values.items);
    free(costs);
    profile->stated = NULL;
}

/* --- Completing --------------------------------------------------------------------------------------------------- */

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* Equal places keep the order in which they were added, so that saturated sums do not depend on the sort. */
static int compare_places(const void *left, const void *right)
{
    const struct stated_place *a = left, *b = right;
    int order = compare_u32(a->function, b->function);
    if (order == 0) order = compare_u32(a->location.index, b->location.index);
    return order != 0 ? order : (a->values.first > b->values.first) - (a->values.first < b->values.first);
}

static int compare_calls(const void *left, const void *right)
{
    const struct stated_call *a = left, *b = right;
    int order = compare_u32(a->caller, b->caller);
    if (order == 0) order = compare_u32(a->callee, b->callee);
    return order != 0 ? order : compare_u32(a->location.index, b->location.index);
}

static void join_places(struct profile *profile)
{
    struct stated_costs *costs = profile->stated;
    struct stated_place *items = costs->places.items;
    size_t count = 0;
    if (costs->places.count > 1) qsort(items, costs->places.count, sizeof(*items), compare_places);
    for (size_t i = 0; i < costs->places.count; i++) {
        struct stated_place *last = count > 0 ? &items[count - 1] : NULL;
        bool is_same = last && last->function == items[i].function && last->location.index == items[i].location.index;
        if (is_same)
            sum_values(profile, &last->values, &items[i].values);
        else
            items[count++] = items[i];
    }
    costs->places.count = count;
}

static void join_calls(struct profile *profile)
{
    struct stated_costs *costs = profile->stated;
    struct stated_call *items = costs->calls.items;
    size_t count = 0;
    if (costs->calls.count > 1) qsort(items, costs->calls.count, sizeof(*items), compare_calls);
    for (size_t i = 0; i < costs->calls.count; i++) {
        struct stated_call *last = count > 0 ? &items[count - 1] : NULL;
        if (last && compare_calls(last, &items[i]) == 0) {
            sum_values(profile, &last->values, &items[i].values);
            last->count = profile_add_values(last->count, items[i].count);
        } else {
            items[count++] = items[i];
        }
    }
    costs->calls.count = count;
}

/* Code of inlined functions is in other files, as other functions. */
bool stated_is_home(const struct profile *profile, const struct stated_function *function, struct location_id id)
{
    const struct location *location = profile_location(profile, id);
    if (location->line_count == 0) return function->function.index == 0;
    return profile_lines(profile, location)[location->line_count - 1].function.index == function->function.index;
}

static void take_entry(struct profile *profile, uint32_t index, struct location_id location)
{
    struct stated_function *function = &profile->stated->functions.items[index];
    if (function->entry.index == 0 && stated_is_home(profile, function, location)) function->entry = location;
}

/* Sets the entry of each function: its first place with a cost, or else with a call. */
static void find_entries(struct profile *profile)
{
    struct stated_costs *costs = profile->stated;
    for (size_t i = 0; i < costs->places.count; i++) {
        const struct stated_place *place = &costs->places.items[i];
        if (place->values.count > 0) take_entry(profile, place->function, place->location);
    }
    for (size_t i = 0; i < costs->calls.count; i++) {
        const struct stated_call *call = &costs->calls.items[i];
        if (call->values.count > 0 && call->caller != call->callee) take_entry(profile, call->caller, call->location);
    }
    for (size_t i = 0; i < costs->functions.count; i++) {
        struct stated_function *function = &costs->functions.items[i];
        if (function->entry.index != 0) continue;
        struct line line = {.function = function->function,
                            .line = profile_function(profile, function->function)->start_line};
        function->entry = profile_add_location(profile, &(struct location){.mapping = function->mapping}, &line, 1);
    }
}

struct inclusive_sums {
    int64_t incoming; /* cost of the calls from other functions */
    int64_t own;      /* cost of the function itself and of its calls of other functions */
    bool is_called;   /* another function calls it */
};

static void add(int64_t *sum, int64_t value)
{
    *sum = profile_add_values(*sum, value);
}

static void sum_inclusive(const struct stated_costs *costs, size_t column, struct inclusive_sums *sums)
{
    for (size_t i = 0; i < costs->places.count; i++) {
        const struct stated_place *place = &costs->places.items[i];
        add(&sums[place->function].own, stated_value(costs, &place->values, column));
    }
    for (size_t i = 0; i < costs->calls.count; i++) {
        const struct stated_call *call = &costs->calls.items[i];
        if (call->caller == call->callee) continue;
        int64_t value = stated_value(costs, &call->values, column);
        add(&sums[call->caller].own, value);
        add(&sums[call->callee].incoming, value);
        sums[call->callee].is_called = true;
    }
}

/* Reserves all values of each function that has no inclusive costs yet. */
static bool reserve_inclusive(struct profile *profile)
{
    struct stated_costs *costs = profile->stated;
    const int64_t zeros[PROFILE_VALUES_MAX] = {0};
    uint32_t count = (uint32_t)profile->value_type_count;
    for (size_t i = 0; i < costs->functions.count; i++) {
        struct stated_function *function = &costs->functions.items[i];
        if (function->has_inclusive) continue;
        if (!profile_reserve(profile, &costs->values.items, &costs->values.capacity, costs->values.count + count,
                             sizeof(*costs->values.items), PROFILE_SAMPLES_MAX))
            return false;
        function->inclusive = (struct stated_values){.first = costs->values.count, .count = count};
        memcpy(costs->values.items + costs->values.count, zeros, count * sizeof(*zeros));
        costs->values.count += count;
    }
    return true;
}

static void derive_inclusive(struct profile *profile)
{
    struct stated_costs *costs = profile->stated;
    size_t count = costs->functions.count;
    struct inclusive_sums *sums = calloc(count + 1, sizeof(*sums));
    if (!sums) profile_fail(profile, STATUS_NO_MEMORY);
    bool is_done = sums && reserve_inclusive(profile);
    for (size_t column = 0; is_done && column < profile->value_type_count; column++) {
        memset(sums, 0, count * sizeof(*sums));
        sum_inclusive(costs, column, sums);
        for (size_t i = 0; i < count; i++) {
            const struct stated_function *function = &costs->functions.items[i];
            bool is_own = !sums[i].is_called || (costs->lacks_callers && sums[i].own > sums[i].incoming);
            if (!function->has_inclusive)
                costs->values.items[function->inclusive.first + column] = is_own ? sums[i].own : sums[i].incoming;
        }
    }
    for (size_t i = 0; is_done && i < count; i++) costs->functions.items[i].has_inclusive = true;
    free(sums);
}

void stated_costs_complete(struct profile *profile)
{
    if (!profile->stated || profile->failed != STATUS_OK) return;
    join_places(profile);
    join_calls(profile);
    find_entries(profile);
    derive_inclusive(profile);
}

/* --- Merging ------------------------------------------------------------------------------------------------------ */

static struct location_id moved(const uint32_t *locations, struct location_id id)
{
    return (struct location_id){locations[id.index]};
}

static void merge_stated_functions(struct profile *into, const struct profile *from, const struct stated_maps *maps,
                                   uint32_t *functions)
{
    const struct stated_costs *costs = from->stated;
    for (size_t i = 0; i < costs->functions.count && into->failed == STATUS_OK; i++) {
        const struct stated_function *function = &costs->functions.items[i];
        struct stated_function key = {.thread = {maps->threads[function->thread.index]},
                                      .labels = {maps->label_sets[function->labels.index]},
                                      .mapping = {maps->mappings[function->mapping.index]},
                                      .function = {maps->functions[function->function.index]}};
        functions[i] = stated_function_add(into, &key);
        if (functions[i] == INDEX_NONE) return;
        struct location_id *entry = &into->stated->functions.items[functions[i]].entry;
        if (entry->index == 0) *entry = moved(maps->locations, function->entry);
        stated_inclusive_add(into, functions[i], costs->values.items + function->inclusive.first,
                             function->inclusive.count);
    }
}

void stated_costs_merge(struct profile *into, const struct profile *from, const struct stated_maps *maps)
{
    const struct stated_costs *costs = from->stated;
    uint32_t *functions = calloc(costs->functions.count + 1, sizeof(*functions));
    if (!functions) {
        profile_fail(into, STATUS_NO_MEMORY);
        return;
    }
    merge_stated_functions(into, from, maps, functions);
    for (size_t i = 0; i < costs->places.count && into->failed == STATUS_OK; i++) {
        const struct stated_place *place = &costs->places.items[i];
        stated_cost_add(into, functions[place->function], moved(maps->locations, place->location),
                        costs->values.items + place->values.first, place->values.count);
    }
    for (size_t i = 0; i < costs->calls.count && into->failed == STATUS_OK; i++) {
        struct stated_call call = costs->calls.items[i];
        const int64_t *values = costs->values.items + call.values.first;
        call.caller = functions[call.caller];
        call.callee = functions[call.callee];
        call.location = moved(maps->locations, call.location);
        stated_call_add(into, &call, values, call.values.count);
    }
    free(functions);
    stated_costs_complete(into);
}

/* --- Columns ------------------------------------------------------------------------------------------------------ */

struct stated_values *stated_costs_values(struct stated_costs *costs, size_t index)
{
    if (index < costs->functions.count) return &costs->functions.items[index].inclusive;
    index -= costs->functions.count;
    if (index < costs->places.count) return &costs->places.items[index].values;
    index -= costs->places.count;
    return index < costs->calls.count ? &costs->calls.items[index].values : NULL;
}

void stated_costs_keep_columns(struct profile *profile, const size_t *columns, uint32_t count)
{
    struct stated_values *values;
    for (size_t i = 0; profile->stated && (values = stated_costs_values(profile->stated, i)); i++) {
        int64_t kept[PROFILE_VALUES_MAX];
        for (uint32_t k = 0; k < count; k++) kept[k] = stated_value(profile->stated, values, columns[k]);
        if (!add_values(profile, values, kept, count)) return;
    }
}

/* --- Selecting ---------------------------------------------------------------------------------------------------- */

static bool sample_has_sets(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    const struct stated_function *function = key;
    return profile->samples.thread[index].index == function->thread.index &&
           profile->samples.labels[index].index == function->labels.index;
}

static uint64_t sets_hash(const struct stated_function *key)
{
    return hash_mix(key->thread.index, key->labels.index);
}

static bool index_sets(const struct profile *profile, struct index_table *index)
{
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct stated_function key = {.thread = profile->samples.thread[i], .labels = profile->samples.labels[i]};
        uint64_t hash = sets_hash(&key);
        if (index_table_find(index, hash, sample_has_sets, profile, &key) != INDEX_NONE) continue;
        if (!index_table_add(index, hash, (uint32_t)i)) return false;
    }
    return true;
}

bool stated_costs_find_samples(const struct profile *profile, size_t *ret_samples)
{
    struct index_table index = {0};
    const struct stated_costs *costs = profile->stated;
    bool has_memory = index_sets(profile, &index);
    for (size_t i = 0; has_memory && i < costs->functions.count; i++) {
        const struct stated_function *function = &costs->functions.items[i];
        uint32_t found = index_table_find(&index, sets_hash(function), sample_has_sets, profile, function);
        ret_samples[i] = found == INDEX_NONE ? SIZE_MAX : found;
    }
    index_table_fini(&index);
    return has_memory;
}

/* Whether all samples with the same thread and labels stay, or all go. */
static bool keeps_sets(const struct profile *profile, const bool *is_kept, struct index_table *index)
{
    if (!index_sets(profile, index)) return false;
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct stated_function key = {.thread = profile->samples.thread[i], .labels = profile->samples.labels[i]};
        uint32_t first = index_table_find(index, sets_hash(&key), sample_has_sets, profile, &key);
        if (is_kept[first] != is_kept[i]) return false;
    }
    return true;
}

/* Keeps the functions for which FUNCTIONS has a new index, by old index, and their places and calls; INDEX_NONE drops
 * one. */
static void keep_functions(struct stated_costs *costs, const uint32_t *functions)
{
    size_t count = 0;
    for (size_t i = 0; i < costs->places.count; i++) {
        struct stated_place place = costs->places.items[i];
        place.function = functions[place.function];
        if (place.function != INDEX_NONE) costs->places.items[count++] = place;
    }
    costs->places.count = count;
    count = 0;
    for (size_t i = 0; i < costs->calls.count; i++) {
        struct stated_call call = costs->calls.items[i];
        call.caller = functions[call.caller];
        call.callee = functions[call.callee];
        if (call.caller != INDEX_NONE && call.callee != INDEX_NONE) costs->calls.items[count++] = call;
    }
    costs->calls.count = count;
    count = 0;
    for (size_t i = 0; i < costs->functions.count; i++) {
        if (functions[i] != INDEX_NONE) costs->functions.items[count++] = costs->functions.items[i];
    }
    costs->functions.count = count;
}

void stated_costs_keep(struct profile *profile, const bool *is_kept)
{
    struct stated_costs *costs = profile->stated;
    struct index_table index = {0};
    uint32_t *functions = costs ? calloc(costs->functions.count + 1, sizeof(*functions)) : NULL;
    if (functions && keeps_sets(profile, is_kept, &index)) {
        uint32_t count = 0;
        for (size_t i = 0; i < costs->functions.count; i++) {
            const struct stated_function *function = &costs->functions.items[i];
            uint32_t found = index_table_find(&index, sets_hash(function), sample_has_sets, profile, function);
            functions[i] = found != INDEX_NONE && is_kept[found] ? count++ : INDEX_NONE;
        }
        keep_functions(costs, functions);
        index_table_fini(&costs->functions.index); /* nothing is added after a selection */
    } else {
        stated_costs_drop(profile);
    }
    free(functions);
    index_table_fini(&index);
}
