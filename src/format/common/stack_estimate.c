/* Leaves out the calls that close circles and follows the others from the functions that nobody called, the heaviest
 * stack first, until all are made or a maximum is reached. Then each cost is divided among the stacks of its function.
 * SPDX-License-Identifier: MIT */
#include "format/common/stack_estimate.h"

#include "base/array.h"
#include "profile/stated_costs.h"

#include <math.h>
#include <stdlib.h>

/* --- Making stacks ------------------------------------------------------------------------------------------------ */

/* A way to a node: the frames of its callers, and what the node weighs when it is called so. */
struct context {
    double weight;
    uint32_t node, parent; /* PARENT: the context of the caller, or INDEX_NONE */
    uint32_t depth;
    struct stack_id callers;
};

struct maker {
    struct profile *profile;
    const struct stated_costs *costs;
    bool failed;                        /* memory was short */
    uint32_t *call_first, *place_first; /* first of a node's sorted calls and places; one more at the end */
    double *call_weight;                /* cost of each call that is followed; 0: it closes a circle */
    double *weight;                     /* cost of each node and of its calls that are followed */
    ARRAY_OF(struct context) contexts;  /* contexts in the order in which they were found */
    ARRAY_OF(uint32_t) heap;
    uint32_t *order, *order_first; /* contexts by node, the heaviest first */
    size_t contexts_max, steps_left, samples_left;
};

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

#define ADD_ITEM(maker, list)                                                                                          \
    (ARRAY_RESERVE(list, 1, PROFILE_ENTITIES_MAX) ? &(list)->items[(list)->count++] : ((maker)->failed = true, NULL))

/* The first of VALUES; costs below zero (memory that is freed) have no part in the shares. */
static double weight_of(const struct maker *maker, const struct stated_values *values)
{
    int64_t value = stated_value(maker->costs, values, 0);
    return value > 0 ? (double)value : 0;
}

static void find_firsts(struct maker *maker)
{
    const struct stated_costs *costs = maker->costs;
    for (size_t i = 0; i < costs->places.count; i++) maker->place_first[costs->places.items[i].function + 1]++;
    for (size_t i = 0; i < costs->calls.count; i++) maker->call_first[costs->calls.items[i].caller + 1]++;
    for (size_t i = 0; i < costs->functions.count; i++) {
        maker->place_first[i + 1] += maker->place_first[i];
        maker->call_first[i + 1] += maker->call_first[i];
    }
}

/* --- Weights ------------------------------------------------------------------------------------------------------ */

/* A walk over the calls, depth first. A call that leads back to a function that the walk is in closes a circle: it is
 * part of what that function costs, and is not followed. */
struct ranking {
    uint32_t *ranks;   /* place of each node in the order in which the walk leaves them, from 1; 0: not entered */
    uint32_t *ordered; /* nodes by rank: callees before their callers */
    uint32_t *way;     /* nodes that the walk is in */
    uint32_t *next;    /* next call of each node */
    bool *is_called;   /* marks of the nodes that others call */
    uint32_t left_count;
};

static void rank_from(struct maker *maker, struct ranking *ranking, uint32_t root)
{
    size_t depth = 0;
    if (ranking->ranks[root] != 0) return;
    ranking->ranks[root] = UINT32_MAX;
    ranking->way[depth++] = root;
    while (depth > 0) {
        uint32_t node = ranking->way[depth - 1], call = maker->call_first[node] + ranking->next[node]++;
        if (call == maker->call_first[node + 1]) {
            ranking->ordered[ranking->left_count++] = node;
            ranking->ranks[node] = ranking->left_count;
            depth--;
            continue;
        }
        uint32_t callee = maker->costs->calls.items[call].callee;
        if (ranking->ranks[callee] != 0) continue;
        ranking->ranks[callee] = UINT32_MAX;
        ranking->way[depth++] = callee;
    }
}

/* Begins with the functions that nobody calls. */
static void rank_all(struct maker *maker, struct ranking *ranking)
{
    const struct stated_costs *costs = maker->costs;
    for (size_t i = 0; i < costs->calls.count; i++) {
        const struct stated_call *call = &costs->calls.items[i];
        ranking->is_called[call->callee] |= call->caller != call->callee;
    }
    for (uint32_t i = 0; i < costs->functions.count; i++) {
        if (!ranking->is_called[i]) rank_from(maker, ranking, i);
    }
    for (uint32_t i = 0; i < costs->functions.count; i++) rank_from(maker, ranking, i);
}

struct incoming {
    double followed, circular; /* costs of the calls that are followed, and of those that close a circle */
};

/* Weighs the calls that are followed. A function costs its callers what it costs with all that it calls, but at most
 * what the file states of all calls of it, those that close circles among them. */
static void weigh_ranked(struct maker *maker, const struct ranking *ranking, struct incoming *incoming)
{
    const struct stated_costs *costs = maker->costs;
    for (size_t i = 0; i < costs->calls.count; i++) {
        const struct stated_call *call = &costs->calls.items[i];
        double weight = weight_of(maker, &call->values);
        bool is_followed = ranking->ranks[call->callee] < ranking->ranks[call->caller];
        if (is_followed) maker->call_weight[i] = weight;
        if (call->callee != call->caller)
            *(is_followed ? &incoming[call->callee].followed : &incoming[call->callee].circular) += weight;
    }
    for (size_t i = 0; i < costs->places.count; i++) {
        const struct stated_place *place = &costs->places.items[i];
        maker->weight[place->function] += weight_of(maker, &place->values);
    }
    for (uint32_t i = 0; i < costs->functions.count; i++) {
        uint32_t node = ranking->ordered[i];
        for (uint32_t k = maker->call_first[node]; k < maker->call_first[node + 1]; k++) {
            uint32_t callee = costs->calls.items[k].callee;
            const struct incoming *calls = &incoming[callee];
            double stated = calls->followed + calls->circular;
            double whole = maker->weight[callee] < stated ? maker->weight[callee] : stated;
            if (calls->followed > 0) maker->call_weight[k] *= whole / calls->followed;
            maker->weight[node] += maker->call_weight[k];
        }
    }
}

static void weigh(struct maker *maker)
{
    size_t count = maker->costs->functions.count;
    struct ranking ranking = {0};
    ranking.ranks = calloc(count + 1, sizeof(*ranking.ranks));
    ranking.ordered = calloc(count + 1, sizeof(*ranking.ordered));
    ranking.way = calloc(count + 1, sizeof(*ranking.way));
    ranking.next = calloc(count + 1, sizeof(*ranking.next));
    ranking.is_called = calloc(count + 1, sizeof(*ranking.is_called));
    struct incoming *incoming = calloc(count + 1, sizeof(*incoming));
    if (ranking.ranks && ranking.ordered && ranking.way && ranking.next && ranking.is_called && incoming) {
        rank_all(maker, &ranking);
        weigh_ranked(maker, &ranking, incoming);
    } else {
        maker->failed = true;
    }
    free(ranking.ranks);
    free(ranking.ordered);
    free(ranking.way);
    free(ranking.next);
    free(ranking.is_called);
    free(incoming);
}

/* --- Contexts ----------------------------------------------------------------------------------------------------- */

static bool is_heavier(const struct maker *maker, uint32_t a, uint32_t b)
{
    const struct context *left = &maker->contexts.items[a], *right = &maker->contexts.items[b];
    return left->weight > right->weight || (left->weight == right->weight && a < b);
}

static void push(struct maker *maker, const struct context *context)
{
    if (maker->contexts.count == maker->contexts_max) return;
    struct context *added = ADD_ITEM(maker, &maker->contexts);
    uint32_t *place = added ? ADD_ITEM(maker, &maker->heap) : NULL;
    if (!place) return;
    *added = *context;
    uint32_t index = (uint32_t)maker->contexts.count - 1, *heap = maker->heap.items;
    size_t i = maker->heap.count - 1;
    for (; i > 0 && is_heavier(maker, index, heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = index;
}

static uint32_t pop(struct maker *maker)
{
    uint32_t *heap = maker->heap.items, top = heap[0], last = heap[--maker->heap.count];
    size_t i = 0;
    for (size_t child = 1; child < maker->heap.count; child = 2 * i + 1) {
        if (child + 1 < maker->heap.count && is_heavier(maker, heap[child + 1], heap[child])) child++;
        if (!is_heavier(maker, heap[child], last)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

static void push_roots(struct maker *maker)
{
    const struct stated_costs *costs = maker->costs;
    double *called = calloc(costs->functions.count + 1, sizeof(*called));
    if (!called) {
        maker->failed = true;
        return;
    }
    for (size_t i = 0; i < costs->calls.count; i++) {
        const struct stated_call *call = &costs->calls.items[i];
        called[call->callee] += maker->call_weight[i];
    }
    for (uint32_t i = 0; i < costs->functions.count; i++) {
        double weight = maker->weight[i] - called[i];
        if (weight > 0) push(maker, &(struct context){.weight = weight, .node = i, .parent = INDEX_NONE});
    }
    free(called);
}

static void follow(struct maker *maker, uint32_t index)
{
    const struct stated_costs *costs = maker->costs;
    struct context context = maker->contexts.items[index];
    uint32_t first = maker->call_first[context.node], end = maker->call_first[context.node + 1];
    if (context.depth + 1 >= STACK_ESTIMATE_DEPTH_MAX || first == end ||
        maker->steps_left < end - first + context.depth)
        return;
    maker->steps_left -= end - first + context.depth;
    for (uint32_t i = first; i < end; i++) {
        const struct stated_call *call = &costs->calls.items[i];
        double weight = context.weight * maker->call_weight[i] / maker->weight[context.node];
        if (!(weight >= 0.5)) continue;
        push(maker, &(struct context){.weight = weight,
                                      .node = call->callee,
                                      .parent = index,
                                      .depth = context.depth + 1,
                                      .callers = profile_add_stack(maker->profile, context.callers, call->location)});
    }
}

/* --- Dividing costs ----------------------------------------------------------------------------------------------- */

/* Contexts were added in no order of weight; the contexts of a node are used heaviest first. */
static int compare_contexts(const void *left, const void *right, void *data)
{
    const struct maker *maker = data;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order = compare_u32(maker->contexts.items[a].node, maker->contexts.items[b].node);
    return order != 0 ? order : is_heavier(maker, a, b) ? -1 : 1;
}

static bool order_contexts(struct maker *maker)
{
    size_t count = maker->contexts.count;
    maker->order = calloc(count + 1, sizeof(*maker->order));
    maker->order_first = calloc(maker->costs->functions.count + 2, sizeof(*maker->order_first));
    if (!maker->order || !maker->order_first) return false;
    for (size_t i = 0; i < count; i++) {
        maker->order[i] = (uint32_t)i;
        maker->order_first[maker->contexts.items[i].node + 1]++;
    }
    for (size_t i = 0; i < maker->costs->functions.count; i++) maker->order_first[i + 1] += maker->order_first[i];
    qsort_r(maker->order, count, sizeof(*maker->order), compare_contexts, maker);
    return true;
}

/* Division of a node's costs among its contexts: at each place, the first contexts together get all units that are due
 * by then; the fraction is carried over to the node's next place. So each context has the sum of its shares but for a
 * unit, however many places there are. */
struct division {
    const uint32_t *contexts;
    size_t count;
    double whole;  /* weight of all contexts */
    double *carry; /* fractions of units, by context and value type */
};

/* Returns the part of VALUE that the first contexts have, if all but the last of them have BEFORE. */
static int64_t due_by(int64_t value, double share, int64_t before, double *carry)
{
    double exact = (double)value * share + *carry, due = floor(exact);
    int64_t low = value > 0 ? before : value, high = value > 0 ? value : before;
    int64_t units = due <= (double)low ? low : due >= (double)high ? high : (int64_t)due;
    *carry = exact - (double)units;
    return units;
}

/* VALUES has the values that PLACE has. */
static void add_sample(struct maker *maker, const struct stated_place *place, struct stack_id callers,
                       const int64_t *values)
{
    int64_t row[PROFILE_VALUES_MAX] = {0};
    bool is_zero = true;
    for (uint32_t i = 0; i < place->values.count; i++) {
        row[i] = values[i];
        if (values[i] != 0) is_zero = false;
    }
    if (is_zero) return;
    const struct stated_function *function = &maker->costs->functions.items[place->function];
    struct sample sample = {.thread = function->thread,
                            .labels = function->labels,
                            .stack = profile_add_stack(maker->profile, callers, place->location)};
    profile_add_sample(maker->profile, &sample, row);
}

static const int64_t *values_of(const struct maker *maker, const struct stated_place *place)
{
    return maker->costs->values.items + place->values.first;
}

static void divide_place(struct maker *maker, const struct stated_place *place, const struct division *division)
{
    const int64_t *values = values_of(maker, place);
    int64_t before[PROFILE_VALUES_MAX] = {0};
    double weight = 0;
    for (size_t i = 0; i < division->count; i++) {
        const struct context *context = &maker->contexts.items[division->contexts[i]];
        double *carry = division->carry + i * maker->profile->value_type_count;
        int64_t parts[PROFILE_VALUES_MAX];
        weight += context->weight;
        for (uint32_t k = 0; k < place->values.count; k++) {
            bool is_last = i + 1 == division->count;
            int64_t due = is_last ? values[k] : due_by(values[k], weight / division->whole, before[k], &carry[k]);
            parts[k] = due - before[k];
            before[k] = due;
        }
        add_sample(maker, place, context->callers, parts);
    }
}

/* The carry begins anywhere from 0 to 1, spread by the golden ratio, so that no stack is preferred when a node has a
 * unit. */
static bool begin_division(struct maker *maker, uint32_t node, struct division *division)
{
    size_t carry_count = division->count * maker->profile->value_type_count;
    division->carry = calloc(carry_count + 1, sizeof(*division->carry));
    if (!division->carry) return false;
    double golden = (double)(node + 1) * 0.6180339887498949;
    for (size_t i = 0; i < carry_count; i++) division->carry[i] = golden - floor(golden);
    for (size_t i = 0; i < division->count; i++) division->whole += maker->contexts.items[division->contexts[i]].weight;
    return true;
}

static void divide_node(struct maker *maker, uint32_t node)
{
    struct division division = {.contexts = maker->order + maker->order_first[node],
                                .count = maker->order_first[node + 1] - maker->order_first[node]};
    size_t place_count = maker->place_first[node + 1] - maker->place_first[node];
    if (place_count == 0) return;
    size_t count_max = 1 + maker->samples_left / place_count;
    if (division.count > count_max) division.count = count_max;
    if (division.count > 1) maker->samples_left -= (division.count - 1) * place_count;
    if (!begin_division(maker, node, &division)) {
        maker->failed = true;
        return;
    }
    for (uint32_t k = maker->place_first[node]; k < maker->place_first[node + 1]; k++) {
        const struct stated_place *place = &maker->costs->places.items[k];
        if (division.count > 0)
            divide_place(maker, place, &division);
        else
            add_sample(maker, place, (struct stack_id){0}, values_of(maker, place));
    }
    free(division.carry);
}

static void make_samples(struct maker *maker)
{
    find_firsts(maker);
    weigh(maker);
    if (!maker->failed) push_roots(maker);
    while (maker->heap.count > 0 && !maker->failed) follow(maker, pop(maker));
    if (maker->failed || !order_contexts(maker)) {
        maker->failed = true;
        return;
    }
    for (uint32_t i = 0; i < maker->costs->functions.count; i++) divide_node(maker, i);
}

/* Whether the values of as many entries are too many for a file of SOURCE_BYTES. */
static enum status check_values(const struct profile *profile, size_t source_bytes, struct error *error)
{
    const struct stated_costs *costs = profile->stated;
    size_t count = costs->places.count > costs->functions.count ? costs->places.count : costs->functions.count;
    if (count * profile->value_type_count <= STACK_ESTIMATE_VALUES_FREE + source_bytes) return STATUS_OK;
    return error_set(error, STATUS_TOO_LARGE, 0, "%zu places with %zu costs each are too many for a file of its size",
                     count, profile->value_type_count);
}

static enum status estimate(struct profile *profile, size_t source_bytes, struct error *error)
{
    size_t values_max = STACK_ESTIMATE_VALUES_FREE + source_bytes, count = profile->stated->functions.count;
    struct maker maker = {
        .profile = profile,
        .costs = profile->stated,
        .contexts_max = STACK_ESTIMATE_STACKS_FREE + source_bytes / 16,
        .steps_left = STACK_ESTIMATE_STEPS_FREE + 4 * source_bytes,
        .samples_left = STACK_ESTIMATE_SAMPLES_FREE + source_bytes / 16,
    };
    if (maker.samples_left * profile->value_type_count > values_max)
        maker.samples_left = values_max / profile->value_type_count;
    maker.call_first = calloc(count + 2, sizeof(*maker.call_first));
    maker.place_first = calloc(count + 2, sizeof(*maker.place_first));
    maker.weight = calloc(count + 1, sizeof(*maker.weight));
    maker.call_weight = calloc(profile->stated->calls.count + 1, sizeof(*maker.call_weight));
    if (maker.call_first && maker.place_first && maker.weight && maker.call_weight)
        make_samples(&maker);
    else
        maker.failed = true;
    free(maker.call_first);
    free(maker.place_first);
    free(maker.weight);
    free(maker.call_weight);
    free(maker.contexts.items);
    free(maker.heap.items);
    free(maker.order);
    free(maker.order_first);
    return maker.failed ? error_set(error, STATUS_NO_MEMORY, 0, "no memory for the stacks of the calls") : STATUS_OK;
}

enum status stack_estimate_add_samples(struct profile *profile, size_t source_bytes, struct error *error)
{
    static const char note[] = "The stacks are estimated: the file has calls between functions, and no stacks.";
    enum status status = profile_failed(profile, error);
    if (status != STATUS_OK || !profile->stated) return status;
    status = check_values(profile, source_bytes, error);
    if (status != STATUS_OK) return status;
    stated_costs_complete(profile);
    status = profile_failed(profile, error);
    if (status == STATUS_OK) status = estimate(profile, source_bytes, error);
    if (status != STATUS_OK) return status;
    profile->has_estimated_stacks = profile->stated->calls.count > 0;
    if (profile->has_estimated_stacks) profile_add_comment(profile, slice_of_text(note));
    return profile_failed(profile, error);
}
