/* Follows the calls from the functions that nobody called, the heaviest stack first, until all are made or a maximum is
 * reached. Then each cost is divided among the stacks of its function.  SPDX-License-Identifier: MIT */
#include "format/common/cost_graph.h"

#include "base/array.h"
#include "base/hash.h"

#include <math.h>
#include <stdlib.h>

void cost_graph_init(struct cost_graph *graph, struct profile *profile)
{
    *graph = (struct cost_graph){.profile = profile};
}

void cost_graph_fini(struct cost_graph *graph)
{
    index_table_fini(&graph->nodes.index);
    free(graph->nodes.items);
    free(graph->places.items);
    free(graph->calls.items);
    free(graph->values.items);
}

#define ADD_ITEM(graph, list)                                                                                          \
    (ARRAY_RESERVE(list, 1, PROFILE_ENTITIES_MAX) ? &(list)->items[(list)->count++] : ((graph)->failed = true, NULL))

static bool node_equal(const void *context, uint32_t index, const void *key)
{
    const struct cost_node *a = &((const struct cost_graph *)context)->nodes.items[index], *b = key;
    return a->thread.index == b->thread.index && a->mapping.index == b->mapping.index &&
           a->function.index == b->function.index;
}

uint32_t cost_graph_node(struct cost_graph *graph, const struct cost_node *node)
{
    uint64_t hash = hash_mix(hash_mix(hash_mix(0, node->thread.index), node->mapping.index), node->function.index);
    uint32_t found = index_table_find(&graph->nodes.index, hash, node_equal, graph, node);
    if (found != INDEX_NONE) return found;
    struct cost_node *added = ADD_ITEM(graph, &graph->nodes);
    if (!added) return INDEX_NONE;
    *added = *node;
    uint32_t index = (uint32_t)graph->nodes.count - 1;
    if (index_table_add(&graph->nodes.index, hash, index)) return index;
    graph->failed = true;
    return INDEX_NONE;
}

void cost_graph_add_cost(struct cost_graph *graph, uint32_t node, struct location_id place, const int64_t *values,
                         uint32_t value_count)
{
    while (value_count > 0 && values[value_count - 1] == 0) value_count--;
    if (value_count == 0 || node == INDEX_NONE) return;
    if (!ARRAY_RESERVE(&graph->values, value_count, PROFILE_SAMPLES_MAX)) {
        graph->failed = true;
        return;
    }
    struct place_cost *cost = ADD_ITEM(graph, &graph->places);
    if (!cost) return;
    *cost = (struct place_cost){
        .node = node, .place = place, .value_first = graph->values.count, .value_count = value_count};
    memcpy(graph->values.items + graph->values.count, values, value_count * sizeof(*values));
    graph->values.count += value_count;
}

void cost_graph_add_call(struct cost_graph *graph, const struct call_cost *call)
{
    if (call->caller == INDEX_NONE || call->callee == INDEX_NONE) return;
    struct call_cost *added = ADD_ITEM(graph, &graph->calls);
    if (added) *added = *call;
}

/* --- Making stacks ------------------------------------------------------------------------------------------------ */

/* A way to a node: the frames of its callers, and what the node weighs when it is called so. */
struct context {
    double weight;
    uint32_t node, parent; /* PARENT: the context of the caller, or INDEX_NONE */
    uint32_t depth;
    struct stack_id callers;
};

struct maker {
    struct cost_graph *graph;
    uint32_t *call_first, *place_first; /* first of a node's sorted calls and places; one more at the end */
    double *weight;                     /* cost of a node and its calls, without calls of itself */
    uint32_t *seen;                     /* last context that has a node on its stack, plus one */
    struct {
        struct context *items; /* contexts in the order in which they were found */
        size_t count, capacity;
    } contexts;
    struct {
        uint32_t *items;
        size_t count, capacity;
    } heap;
    uint32_t *order, *order_first; /* contexts by node, the heaviest first */
    size_t contexts_max, steps_left, samples_left;
};

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_places(const void *left, const void *right)
{
    const struct place_cost *a = left, *b = right;
    int order = compare_u32(a->node, b->node);
    if (order == 0) order = compare_u32(a->place.index, b->place.index);
    return order != 0 ? order : (a->value_first > b->value_first) - (a->value_first < b->value_first);
}

static int compare_calls(const void *left, const void *right)
{
    const struct call_cost *a = left, *b = right;
    int order = compare_u32(a->caller, b->caller);
    if (order == 0) order = compare_u32(a->callee, b->callee);
    return order != 0 ? order : compare_u32(a->place.index, b->place.index);
}

static void add_values(struct cost_graph *graph, struct place_cost *into, const struct place_cost *from)
{
    const int64_t *added = graph->values.items + from->value_first;
    int64_t *values = graph->values.items + into->value_first;
    for (uint32_t i = 0; i < from->value_count; i++) values[i] = profile_add_values(values[i], added[i]);
}

/* Equal places become one: the one with more values takes in the other. */
static void join_places(struct cost_graph *graph)
{
    size_t count = 0;
    struct place_cost *items = graph->places.items;
    if (graph->places.count > 1) qsort(items, graph->places.count, sizeof(*items), compare_places);
    for (size_t i = 0; i < graph->places.count; i++) {
        struct place_cost *last = count > 0 ? &items[count - 1] : NULL;
        if (!last || last->node != items[i].node || last->place.index != items[i].place.index) {
            items[count++] = items[i];
        } else if (last->value_count >= items[i].value_count) {
            add_values(graph, last, &items[i]);
        } else {
            struct place_cost shorter = *last;
            *last = items[i];
            add_values(graph, last, &shorter);
        }
    }
    graph->places.count = count;
}

static void join_calls(struct cost_graph *graph)
{
    size_t count = 0;
    struct call_cost *items = graph->calls.items;
    if (graph->calls.count > 1) qsort(items, graph->calls.count, sizeof(*items), compare_calls);
    for (size_t i = 0; i < graph->calls.count; i++) {
        if (count > 0 && compare_calls(&items[count - 1], &items[i]) == 0)
            items[count - 1].weight += items[i].weight;
        else
            items[count++] = items[i];
    }
    graph->calls.count = count;
}

static void weigh(struct maker *maker)
{
    const struct cost_graph *graph = maker->graph;
    for (size_t i = 0; i < graph->places.count; i++) {
        const struct place_cost *place = &graph->places.items[i];
        int64_t value = graph->values.items[place->value_first];
        if (value > 0) maker->weight[place->node] += (double)value; /* memory that is freed has no part in the shares */
        maker->place_first[place->node + 1]++;
    }
    for (size_t i = 0; i < graph->calls.count; i++) {
        const struct call_cost *call = &graph->calls.items[i];
        if (call->caller != call->callee) maker->weight[call->caller] += call->weight;
        maker->call_first[call->caller + 1]++;
    }
    for (size_t i = 0; i < graph->nodes.count; i++) {
        maker->place_first[i + 1] += maker->place_first[i];
        maker->call_first[i + 1] += maker->call_first[i];
    }
}

static bool is_heavier(const struct maker *maker, uint32_t a, uint32_t b)
{
    const struct context *left = &maker->contexts.items[a], *right = &maker->contexts.items[b];
    return left->weight > right->weight || (left->weight == right->weight && a < b);
}

static void push(struct maker *maker, const struct context *context)
{
    struct cost_graph *graph = maker->graph;
    if (maker->contexts.count == maker->contexts_max) return;
    struct context *added = ADD_ITEM(graph, &maker->contexts);
    uint32_t *place = added ? ADD_ITEM(graph, &maker->heap) : NULL;
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
    const struct cost_graph *graph = maker->graph;
    double *called = calloc(graph->nodes.count + 1, sizeof(*called));
    if (!called) {
        maker->graph->failed = true;
        return;
    }
    for (size_t i = 0; i < graph->calls.count; i++) {
        const struct call_cost *call = &graph->calls.items[i];
        if (call->caller != call->callee) called[call->callee] += call->weight;
    }
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        double weight = maker->weight[i] - called[i];
        if (weight > 0) push(maker, &(struct context){.weight = weight, .node = i, .parent = INDEX_NONE});
    }
    free(called);
}

/* A call of what is on the stack already is part of what that one costs: its weight is divided among the other calls.
 */
static double mark_stack(struct maker *maker, uint32_t context)
{
    const struct cost_graph *graph = maker->graph;
    uint32_t node = maker->contexts.items[context].node;
    double weight = maker->weight[node];
    for (uint32_t i = context; i != INDEX_NONE; i = maker->contexts.items[i].parent)
        maker->seen[maker->contexts.items[i].node] = context + 1;
    for (uint32_t i = maker->call_first[node]; i < maker->call_first[node + 1]; i++) {
        const struct call_cost *call = &graph->calls.items[i];
        if (call->callee != node && maker->seen[call->callee] == context + 1) weight -= call->weight;
    }
    return weight;
}

static void follow(struct maker *maker, uint32_t index)
{
    const struct cost_graph *graph = maker->graph;
    struct context context = maker->contexts.items[index];
    uint32_t first = maker->call_first[context.node], end = maker->call_first[context.node + 1];
    if (context.depth + 1 >= COST_GRAPH_DEPTH_MAX || first == end || maker->steps_left < end - first + context.depth)
        return;
    maker->steps_left -= end - first + context.depth;
    double divisor = mark_stack(maker, index);
    for (uint32_t i = first; i < end; i++) {
        const struct call_cost *call = &graph->calls.items[i];
        double weight = context.weight * call->weight / divisor;
        if (maker->seen[call->callee] == index + 1 || !(weight >= 0.5)) continue;
        if (weight > context.weight) weight = context.weight;
        push(maker, &(struct context){.weight = weight,
                                      .node = call->callee,
                                      .parent = index,
                                      .depth = context.depth + 1,
                                      .callers = profile_add_stack(graph->profile, context.callers, call->place)});
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
    maker->order_first = calloc(maker->graph->nodes.count + 2, sizeof(*maker->order_first));
    if (!maker->order || !maker->order_first) return false;
    for (size_t i = 0; i < count; i++) {
        maker->order[i] = (uint32_t)i;
        maker->order_first[maker->contexts.items[i].node + 1]++;
    }
    for (size_t i = 0; i < maker->graph->nodes.count; i++) maker->order_first[i + 1] += maker->order_first[i];
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

/* COSTS has as many values as PLACE. */
static void add_sample(struct maker *maker, const struct place_cost *place, struct stack_id callers,
                       const int64_t *costs)
{
    int64_t values[PROFILE_VALUES_MAX] = {0};
    bool is_zero = true;
    for (uint32_t i = 0; i < place->value_count; i++) {
        values[i] = costs[i];
        if (costs[i] != 0) is_zero = false;
    }
    if (is_zero) return;
    struct cost_graph *graph = maker->graph;
    struct sample sample = {.thread = graph->nodes.items[place->node].thread,
                            .stack = profile_add_stack(graph->profile, callers, place->place)};
    profile_add_sample(graph->profile, &sample, values);
}

static void divide_place(struct maker *maker, const struct place_cost *place, const struct division *division)
{
    const int64_t *costs = maker->graph->values.items + place->value_first;
    int64_t before[PROFILE_VALUES_MAX] = {0};
    double weight = 0;
    for (size_t i = 0; i < division->count; i++) {
        const struct context *context = &maker->contexts.items[division->contexts[i]];
        double *carry = division->carry + i * maker->graph->profile->value_type_count;
        int64_t parts[PROFILE_VALUES_MAX];
        weight += context->weight;
        for (uint32_t k = 0; k < place->value_count; k++) {
            bool is_last = i + 1 == division->count;
            int64_t due = is_last ? costs[k] : due_by(costs[k], weight / division->whole, before[k], &carry[k]);
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
    size_t carry_count = division->count * maker->graph->profile->value_type_count;
    division->carry = calloc(carry_count + 1, sizeof(*division->carry));
    if (!division->carry) return false;
    double golden = (double)(node + 1) * 0.6180339887498949;
    for (size_t i = 0; i < carry_count; i++) division->carry[i] = golden - floor(golden);
    for (size_t i = 0; i < division->count; i++) division->whole += maker->contexts.items[division->contexts[i]].weight;
    return true;
}

static void divide_node(struct maker *maker, uint32_t node)
{
    struct cost_graph *graph = maker->graph;
    struct division division = {.contexts = maker->order + maker->order_first[node],
                                .count = maker->order_first[node + 1] - maker->order_first[node]};
    size_t place_count = maker->place_first[node + 1] - maker->place_first[node];
    if (place_count == 0) return;
    size_t count_max = 1 + maker->samples_left / place_count;
    if (division.count > count_max) division.count = count_max;
    if (division.count > 1) maker->samples_left -= (division.count - 1) * place_count;
    if (!begin_division(maker, node, &division)) {
        graph->failed = true;
        return;
    }
    for (uint32_t k = maker->place_first[node]; k < maker->place_first[node + 1]; k++) {
        const struct place_cost *place = &graph->places.items[k];
        if (division.count > 0)
            divide_place(maker, place, &division);
        else
            add_sample(maker, place, (struct stack_id){0}, graph->values.items + place->value_first);
    }
    free(division.carry);
}

static void make_samples(struct maker *maker)
{
    weigh(maker);
    push_roots(maker);
    while (maker->heap.count > 0 && !maker->graph->failed) follow(maker, pop(maker));
    if (maker->graph->failed || !order_contexts(maker)) {
        maker->graph->failed = true;
        return;
    }
    for (uint32_t i = 0; i < maker->graph->nodes.count; i++) divide_node(maker, i);
}

enum status cost_graph_add_samples(struct cost_graph *graph, size_t source_bytes, struct error *error)
{
    static const char note[] = "The stacks are estimated: the file has calls between functions, and no stacks.";
    struct maker maker = {
        .graph = graph,
        .contexts_max = COST_GRAPH_STACKS_FREE + source_bytes / 16,
        .steps_left = COST_GRAPH_STEPS_FREE + 4 * source_bytes,
        .samples_left = COST_GRAPH_SAMPLES_FREE + source_bytes / 16,
    };
    join_places(graph);
    join_calls(graph);
    size_t value_count = graph->profile->value_type_count;
    size_t values_max = COST_GRAPH_VALUES_FREE + source_bytes;
    if (graph->places.count * value_count > values_max)
        return error_set(error, STATUS_TOO_LARGE, 0,
                         "%zu places with %zu costs each are too many for a file of its size", graph->places.count,
                         value_count);
    if (maker.samples_left * value_count > values_max) maker.samples_left = values_max / value_count;
    size_t count = graph->nodes.count;
    maker.call_first = calloc(count + 2, sizeof(*maker.call_first));
    maker.place_first = calloc(count + 2, sizeof(*maker.place_first));
    maker.weight = calloc(count + 1, sizeof(*maker.weight));
    maker.seen = calloc(count + 1, sizeof(*maker.seen));
    if (maker.call_first && maker.place_first && maker.weight && maker.seen)
        make_samples(&maker);
    else
        graph->failed = true;
    if (graph->calls.count > 0) profile_add_comment(graph->profile, slice_of_text(note));
    free(maker.call_first);
    free(maker.place_first);
    free(maker.weight);
    free(maker.seen);
    free(maker.contexts.items);
    free(maker.heap.items);
    free(maker.order);
    free(maker.order_first);
    if (graph->failed) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the stacks of the calls");
    return profile_failed(graph->profile, error);
}
