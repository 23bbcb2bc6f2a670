/* One pass over the functions, with the places and calls of each, and one over the calls inside of rows.
 * SPDX-License-Identifier: MIT */
#include "analyze/stated_sums.h"

#include "analyze/totals.h"
#include "base/array.h"

#include <stdlib.h>

#define ROW_NONE UINT32_MAX
#define ROW_SEVERAL (UINT32_MAX - 1)

struct row {
    int64_t part;      /* cost of the function at hand in the row, with its calls */
    int64_t part_self; /* the same without its calls */
    bool is_part;      /* the function at hand has places in the row */
    bool has_inner;    /* functions of the row call each other */
};

struct sums {
    const struct stated_query *query;
    const struct stated_costs *costs;
    struct row *rows;
    int64_t *self, *total;      /* results by row */
    int64_t *at_entry;          /* cost of each function in the row that calls of it lead to */
    int64_t *inner;             /* part of that in calls from other functions of the row */
    ARRAY_OF(uint32_t) touched; /* rows of the function at hand */
    size_t place, call;         /* next ones, of the function at hand or of later ones */
    uint32_t home;              /* row of all code of the function itself; ROW_NONE, or ROW_SEVERAL */
    bool failed;
};

static uint32_t row_of(const struct stated_query *query, uint32_t group)
{
    return query->row_of_group ? query->row_of_group[group] : group;
}

static uint32_t innermost_row(const struct stated_query *query, struct location_id location)
{
    uint32_t count;
    return row_of(query, grouping_frames(query->grouping, location.index, &count)[0]);
}

static uint32_t outermost_row(const struct stated_query *query, struct location_id location)
{
    uint32_t count;
    const uint32_t *groups = grouping_frames(query->grouping, location.index, &count);
    return row_of(query, groups[count - 1]);
}

static void add(int64_t *sum, int64_t value)
{
    *sum = profile_add_values(*sum, value);
}

/* --- One function ------------------------------------------------------------------------------------------------- */

static void touch(struct sums *sums, uint32_t row)
{
    if (sums->rows[row].is_part || sums->failed) return;
    if (!ARRAY_RESERVE(&sums->touched, 1, UINT32_MAX)) {
        sums->failed = true;
        return;
    }
    sums->rows[row].is_part = true;
    sums->touched.items[sums->touched.count++] = row;
}

/* Adds VALUE, which FUNCTION has at LOCATION, to each row of LOCATION, once. */
static void add_part(struct sums *sums, uint32_t function, struct location_id location, int64_t value)
{
    uint32_t count;
    if (value == 0) return;
    if (stated_is_home(sums->query->profile, &sums->costs->functions.items[function], location)) {
        uint32_t row = outermost_row(sums->query, location);
        sums->home = sums->home == ROW_NONE || sums->home == row ? row : ROW_SEVERAL;
    }
    const uint32_t *groups = grouping_frames(sums->query->grouping, location.index, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = row_of(sums->query, groups[i]);
        bool is_repeated = false;
        for (uint32_t k = 0; k < i; k++) is_repeated |= row_of(sums->query, groups[k]) == row;
        if (is_repeated) continue;
        touch(sums, row);
        add(&sums->rows[row].part, value);
    }
}

/* Collects the parts of FUNCTION. Returns its own costs and those of its calls of others. */
static int64_t collect_parts(struct sums *sums, uint32_t function)
{
    const struct stated_costs *costs = sums->costs;
    size_t column = sums->query->column;
    int64_t all = 0;
    for (; sums->place < costs->places.count && costs->places.items[sums->place].function == function; sums->place++) {
        const struct stated_place *place = &costs->places.items[sums->place];
        int64_t value = stated_value(costs, &place->values, column);
        uint32_t row = innermost_row(sums->query, place->location);
        add_part(sums, function, place->location, value);
        add(&sums->rows[row].part_self, value);
        add(&all, value);
    }
    for (; sums->call < costs->calls.count && costs->calls.items[sums->call].caller == function; sums->call++) {
        const struct stated_call *call = &costs->calls.items[sums->call];
        int64_t value = call->callee == function ? 0 : stated_value(costs, &call->values, column);
        add_part(sums, function, call->location, value);
        add(&all, value);
    }
    return all;
}

/* Returns PART, or WHOLE if that is smaller, but at least SELF. Signs do not count. */
static int64_t limited(int64_t part, int64_t whole, int64_t self)
{
    if ((part < 0) != (whole < 0) || magnitude_of(part) <= magnitude_of(whole)) return part;
    return magnitude_of(whole) > magnitude_of(self) ? whole : self;
}

static void add_function(struct sums *sums, uint32_t index)
{
    const struct stated_function *function = &sums->costs->functions.items[index];
    int64_t inclusive = stated_value(sums->costs, &function->inclusive, sums->query->column);
    uint32_t entry = outermost_row(sums->query, function->entry);
    sums->home = ROW_NONE;
    int64_t all = collect_parts(sums, index);
    if (sums->home == ROW_NONE) sums->home = entry;
    bool is_wanted = !sums->query->is_wanted || sums->query->is_wanted[index];
    touch(sums, entry);
    for (size_t i = 0; i < sums->touched.count; i++) {
        uint32_t number = sums->touched.items[i];
        struct row *row = &sums->rows[number];
        int64_t value = number == sums->home ? inclusive
                        : all == inclusive   ? row->part
                                             : limited(row->part, inclusive, row->part_self);
        if (is_wanted) add(&sums->self[number], row->part_self);
        if (is_wanted) add(number == entry ? &sums->at_entry[index] : &sums->total[number], value);
        row->part = row->part_self = 0;
        row->is_part = false;
    }
    sums->touched.count = 0;
}

/* --- Calls inside of a row ---------------------------------------------------------------------------------------- */

/* Sums the calls of each function by others of its row, which have their costs, too. Of a callee that is only partly in
 * the row, the same part counts. */
static void sum_inner_calls(struct sums *sums)
{
    const struct stated_costs *costs = sums->costs;
    for (size_t i = 0; i < costs->calls.count; i++) {
        const struct stated_call *call = &costs->calls.items[i];
        struct stated_ends ends = stated_call_ends(sums->query, call);
        if (ends.from != ends.to || call->caller == call->callee) continue;
        int64_t inclusive = stated_value(costs, &costs->functions.items[call->callee].inclusive, sums->query->column);
        int64_t value = stated_value(costs, &call->values, sums->query->column), part = sums->at_entry[call->callee];
        if (part != inclusive && inclusive != 0) value = (int64_t)((double)value * (double)part / (double)inclusive);
        add(&sums->inner[call->callee], value);
        sums->rows[ends.to].has_inner = true;
    }
}

/* A function adds to its row what it costs in calls from outside; in a circle, calls from inside can be more than all
 * that it costs. A row costs at least what its own code does. */
static void add_entries(struct sums *sums)
{
    for (size_t i = 0; i < sums->costs->functions.count; i++) {
        int64_t value = sums->at_entry[i], inner = sums->inner[i];
        uint32_t row = outermost_row(sums->query, sums->costs->functions.items[i].entry);
        bool is_inside = (value < 0) == (inner < 0) && magnitude_of(inner) >= magnitude_of(value);
        if (!is_inside) add(&sums->total[row], profile_subtract_values(value, inner));
    }
    for (size_t i = 0; i < sums->query->row_count; i++) {
        bool is_too_small = sums->rows[i].has_inner && (sums->total[i] < 0) == (sums->self[i] < 0) &&
                            magnitude_of(sums->total[i]) < magnitude_of(sums->self[i]);
        if (is_too_small) sums->total[i] = sums->self[i];
    }
}

struct stated_ends stated_call_ends(const struct stated_query *query, const struct stated_call *call)
{
    const struct stated_costs *costs = query->profile->stated;
    return (struct stated_ends){.from = innermost_row(query, call->location),
                                .to = outermost_row(query, costs->functions.items[call->callee].entry)};
}

bool stated_sums_compute(const struct stated_query *query, int64_t *ret_self, int64_t *ret_total)
{
    struct sums sums = {.query = query, .costs = query->profile->stated, .self = ret_self, .total = ret_total};
    memset(ret_self, 0, query->row_count * sizeof(*ret_self));
    memset(ret_total, 0, query->row_count * sizeof(*ret_total));
    sums.rows = calloc(query->row_count + 1, sizeof(*sums.rows));
    sums.at_entry = calloc(sums.costs->functions.count + 1, sizeof(*sums.at_entry));
    sums.inner = calloc(sums.costs->functions.count + 1, sizeof(*sums.inner));
    sums.failed = !sums.rows || !sums.at_entry || !sums.inner;
    for (uint32_t i = 0; i < sums.costs->functions.count && !sums.failed; i++) add_function(&sums, i);
    if (!sums.failed) sum_inner_calls(&sums);
    if (!sums.failed) add_entries(&sums);
    free(sums.rows);
    free(sums.at_entry);
    free(sums.inner);
    free(sums.touched.items);
    return !sums.failed;
}
