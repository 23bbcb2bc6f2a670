/* SPDX-License-Identifier: MIT */
#include "analyze/call_graph.h"

#include "analyze/group_sums.h"
#include "analyze/stated_sums.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/invariant.h"

#include <stdlib.h>

/* No group of a location is kept. */
#define PASSED UINT32_MAX

enum { FRAMES_AT_ONCE = 64 };

/* A frame of a run that is not left out, before it is entered. */
struct frame {
    uint32_t group, location;
    bool is_inline, is_residual;
};

/* A frame on the way from the root that is not left out. */
struct step {
    uint32_t node, edge; /* GRAPH_NONE: it brings no edge */
};

/* A run of stacks that the walk is in, and the state to restore when it leaves the run. */
struct run_on_way {
    size_t step_count;
    uint32_t caller, site;
    bool was_residual;
    struct stack_marks way; /* PASS_MARKS */
};

enum pass {
    PASS_VALUES,   /* finds nodes and edges, and sums up values */
    PASS_DIVISORS, /* the same way again, for the divisors of a mean */
    PASS_MARKS,    /* the same way again, for call_graph_mark */
};

struct walk {
    struct call_graph *graph;
    struct graph_source *source;
    const bool *kept;
    uint32_t *at; /* entries by location, as grouping.at, or PASSED; NULL: no location is passed */
    bool no_edges;
    enum pass pass;
    const struct graph_marks *marks;
    struct stack_marks way; /* marks of the nodes on the way */
    struct step *steps;
    size_t step_count, step_capacity;
    struct run_on_way *runs;
    size_t run_count, run_capacity;
    uint32_t caller; /* the innermost node on the way; GRAPH_NONE at a root */
    uint32_t site;   /* the location that it is from */
    /* The last edge that led out of each location, plus one, and the last one into its own inlined frames. A place in
     * the code mostly calls one function, so few edges must be searched for. */
    uint32_t *calls, *inlined;
    bool is_residual; /* frames since CALLER were left out */
    bool failed;
};

/* --- Nodes and edges ---------------------------------------------------------------------------------------------- */

static uint64_t pair_hash(uint32_t a, uint32_t b)
{
    return hash_mix(a, (uint64_t)b << 32 | 1);
}

struct pair {
    uint32_t first, second;
};

static bool edge_equal(const void *context, uint32_t index, const void *key)
{
    const struct call_graph *graph = context;
    const struct pair *pair = key;
    return graph->edges[index].from == pair->first && graph->edges[index].to == pair->second;
}

static bool child_equal(const void *context, uint32_t index, const void *key)
{
    const struct call_graph *graph = context;
    const struct pair *pair = key;
    return graph->nodes[index].group == pair->second && graph->nodes[index].parent == pair->first;
}

static uint32_t add_edge(struct walk *walk, uint32_t from, uint32_t to)
{
    struct call_graph *graph = walk->graph;
    if (!array_reserve(&graph->edges, &graph->edge_capacity, graph->edge_count + 1, sizeof(*graph->edges),
                       GRAPH_EDGES_MAX)) {
        walk->failed = true;
        return GRAPH_NONE;
    }
    graph->edges[graph->edge_count] = (struct call_edge){.from = from, .to = to, .is_inline = true};
    return (uint32_t)graph->edge_count++;
}

/* GUESS is the last edge, plus one, that was found in the same place. */
static uint32_t find_edge(struct walk *walk, uint32_t from, uint32_t to, uint32_t *guess)
{
    struct call_graph *graph = walk->graph;
    if (*guess != 0) {
        const struct call_edge *guessed = &graph->edges[*guess - 1];
        if (guessed->from == from && guessed->to == to) return *guess - 1;
    }
    struct pair pair = {from, to};
    uint64_t hash = pair_hash(from, to);
    uint32_t edge = index_table_find(&graph->index, hash, edge_equal, graph, &pair);
    if (edge == INDEX_NONE) {
        edge = add_edge(walk, from, to);
        if (edge != GRAPH_NONE && !index_table_add(&graph->index, hash, edge)) walk->failed = true;
    }
    *guess = edge + 1;
    return edge;
}

/* The node of GROUP under the node that the walk is in. */
static uint32_t find_child(struct walk *walk, uint32_t group)
{
    struct call_graph *graph = walk->graph;
    struct pair pair = {walk->caller, group};
    uint64_t hash = pair_hash(walk->caller, group);
    uint32_t node = index_table_find(&graph->index, hash, child_equal, graph, &pair);
    if (node != INDEX_NONE) return node;
    if (!array_reserve(&graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof(*graph->nodes),
                       GRAPH_NODES_MAX)) {
        walk->failed = true;
        return GRAPH_NONE;
    }
    node = (uint32_t)graph->node_count++;
    graph->nodes[node] = (struct call_node){.group = group, .parent = walk->caller, .in_edge = GRAPH_NONE};
    if (walk->caller != GRAPH_NONE) graph->nodes[node].in_edge = add_edge(walk, walk->caller, node);
    if (!index_table_add(&graph->index, hash, node)) walk->failed = true;
    return node;
}

/* --- The way ------------------------------------------------------------------------------------------------------ */

static inline void set_mark(struct walk *walk, uint32_t node)
{
    uint32_t mark = walk->marks->mark_of_node[node];
    if (mark != 0) walk->way.through[(mark - 1) / 64] |= (uint64_t)1 << (mark - 1) % 64;
}

static inline void add(int64_t *sum, int64_t value)
{
    *sum = profile_add_values(*sum, value);
}

/* The sum of a stack is known when it is entered, so a node or an edge that is not yet on the way counts at once. It is
 * on the way if it still is at its last place: a sparse set (Briggs and Torczon, 1993). */
static inline void enter_node(struct walk *walk, uint32_t index, int64_t sum)
{
    struct call_node *node = &walk->graph->nodes[index];
    if (node->place < walk->step_count && walk->steps[node->place].node == index) return;
    node->place = (uint32_t)walk->step_count;
    if (walk->pass == PASS_MARKS)
        set_mark(walk, index);
    else
        add(walk->pass == PASS_VALUES ? &node->cum : &node->cum_div, sum);
}

/* The first stack that uses an edge decides whether the edge is inlined and whether frames between its ends are hidden.
 */
static inline uint32_t enter_edge(struct walk *walk, uint32_t to, const struct frame *frame, int64_t sum)
{
    if (walk->no_edges || walk->caller == GRAPH_NONE || walk->caller == to) return GRAPH_NONE;
    uint32_t *guess = frame->is_inline ? &walk->inlined[frame->location] : &walk->calls[walk->site];
    bool is_tree = walk->source->is_tree;
    uint32_t index = is_tree ? walk->graph->nodes[to].in_edge : find_edge(walk, walk->caller, to, guess);
    if (index == GRAPH_NONE) return index;
    struct call_edge *edge = &walk->graph->edges[index];
    if (edge->place < walk->step_count && walk->steps[edge->place].edge == index) return index;
    edge->place = (uint32_t)walk->step_count;
    edge->is_residual |= frame->is_residual;
    edge->is_inline &= frame->is_inline;
    add(walk->pass == PASS_VALUES ? &edge->weight : &edge->weight_div, sum);
    return index;
}

static inline void enter_frame(struct walk *walk, const struct frame *frame, int64_t sum)
{
    uint32_t node = walk->source->is_tree ? find_child(walk, frame->group) : frame->group;
    if (node == GRAPH_NONE) return;
    enter_node(walk, node, sum);
    uint32_t edge = enter_edge(walk, node, frame, sum);
    walk->steps[walk->step_count++] = (struct step){node, edge};
    walk->caller = node;
    walk->site = frame->location;
}

/* The edges of a large graph are anywhere in memory: they are loaded for many frames together. */
static inline void fetch_edges(const struct walk *walk, const struct frame *frames, size_t count)
{
    uint32_t site = walk->site;
    for (size_t i = 0; i < count; i++) {
        uint32_t guess = frames[i].is_inline ? walk->inlined[frames[i].location] : walk->calls[site];
        if (guess != 0) __builtin_prefetch(&walk->graph->edges[guess - 1], 1);
        site = frames[i].location;
    }
}

static void enter_frames(struct walk *walk, const struct frame *frames, size_t count, int64_t sum)
{
    if (!array_reserve(&walk->steps, &walk->step_capacity, walk->step_count + count, sizeof(*walk->steps),
                       SIZE_MAX / sizeof(*walk->steps))) {
        walk->failed = true;
        return;
    }
    if (!walk->no_edges && !walk->source->is_tree) fetch_edges(walk, frames, count);
    for (size_t i = 0; i < count; i++) enter_frame(walk, &frames[i], sum);
}

/* Adds a frame to FRAMES unless it is left out. Returns how many there are. */
static inline size_t take_frame(struct walk *walk, struct frame *frames, size_t count, struct frame frame)
{
    if (walk->kept && !walk->kept[frame.group]) {
        walk->is_residual = true;
        return count;
    }
    frame.is_residual = walk->is_residual;
    walk->is_residual = false;
    frames[count] = frame;
    return count + 1;
}

/* The groups of a location that has several, outermost first. */
static size_t take_several(struct walk *walk, struct frame *frames, size_t count, uint32_t location, int64_t sum)
{
    uint32_t several;
    const uint32_t *groups = grouping_frames(walk->source->grouping, location, &several);
    for (uint32_t i = several; i-- > 0;) {
        count = take_frame(walk, frames, count,
                           (struct frame){.group = groups[i], .location = location, .is_inline = i + 1 < several});
        if (count < FRAMES_AT_ONCE) continue;
        enter_frames(walk, frames, count, sum);
        count = 0;
    }
    return count;
}

static void enter_run(struct walk *walk, const struct stack_visit *visit)
{
    struct frame frames[FRAMES_AT_ONCE];
    const uint32_t *locations = profile_run_locations(walk->source->profile, visit->first);
    const uint32_t *at = walk->at ? walk->at : walk->source->grouping->at;
    size_t count = 0;
    for (uint32_t stack = visit->first; stack <= visit->last && !walk->failed; stack++) {
        uint32_t location = locations[stack - visit->first], group = at[location];
        if (group == PASSED) {
            walk->is_residual = true;
            continue;
        }
        if (group & GROUPING_SEVERAL)
            count = take_several(walk, frames, count, location, visit->sum);
        else
            count = take_frame(walk, frames, count, (struct frame){.group = group, .location = location});
        if (count < FRAMES_AT_ONCE) continue;
        enter_frames(walk, frames, count, visit->sum);
        count = 0;
    }
    if (count > 0) enter_frames(walk, frames, count, visit->sum);
}

static void enter(struct walk *walk, const struct stack_visit *visit)
{
    if (!array_reserve(&walk->runs, &walk->run_capacity, walk->run_count + 1, sizeof(*walk->runs),
                       SIZE_MAX / sizeof(*walk->runs))) {
        walk->failed = true;
        return;
    }
    walk->runs[walk->run_count++] =
        (struct run_on_way){walk->step_count, walk->caller, walk->site, walk->is_residual, walk->way};
    enter_run(walk, visit);
    bool has_flat = walk->caller != GRAPH_NONE && !walk->is_residual;
    if (walk->pass == PASS_MARKS) {
        walk->way.flat_mark = has_flat ? walk->marks->mark_of_node[walk->caller] : 0;
        walk->marks->items[walk->source->stacks.at] = walk->way;
    } else if (has_flat) {
        struct call_node *node = &walk->graph->nodes[walk->caller];
        add(walk->pass == PASS_VALUES ? &node->flat : &node->flat_div, visit->self);
    }
}

static void leave(struct walk *walk)
{
    if (!INVARIANT(walk->run_count > 0)) return;
    const struct run_on_way *run = &walk->runs[--walk->run_count];
    walk->step_count = run->step_count;
    walk->caller = run->caller;
    walk->site = run->site;
    walk->is_residual = run->was_residual;
    walk->way = run->way;
}

/* Usually few groups are kept; most locations can then be skipped after reading one entry. False without memory. */
static bool find_passed(struct walk *walk)
{
    const struct grouping *grouping = walk->source->grouping;
    size_t location_count = walk->source->profile->locations.count;
    if (!walk->kept) return true;
    walk->at = malloc(location_count * sizeof(*walk->at));
    for (uint32_t location = 0; walk->at && location < location_count; location++) {
        uint32_t count;
        const uint32_t *groups = grouping_frames(grouping, location, &count);
        bool is_kept = false;
        for (uint32_t i = 0; i < count; i++) is_kept |= walk->kept[groups[i]];
        walk->at[location] = is_kept ? grouping->at[location] : PASSED;
    }
    return walk->at != NULL;
}

static bool walk_stacks(struct walk *walk)
{
    struct stack_visit visit;
    size_t location_count = walk->source->profile->locations.count;
    walk->caller = GRAPH_NONE;
    walk->calls = walk->no_edges ? NULL : calloc(location_count, sizeof(*walk->calls));
    walk->inlined = walk->no_edges ? NULL : calloc(location_count, sizeof(*walk->inlined));
    if (!walk->no_edges && (!walk->calls || !walk->inlined)) walk->failed = true;
    if (!find_passed(walk)) walk->failed = true;
    while (!walk->failed && stack_tree_next(&walk->source->stacks, &visit)) {
        if (visit.is_entry) {
            enter(walk, &visit);
        } else {
            leave(walk);
        }
    }
    free(walk->calls);
    free(walk->inlined);
    free(walk->at);
    return !walk->failed;
}

/* --- Building ----------------------------------------------------------------------------------------------------- */

/* A sample whose value and divisor are 0 is left out. A sample whose value alone is 0 counts for the means. IS_WANTED,
 * by sample, may be NULL. */
static void add_samples(struct graph_source *source, size_t column, const bool *is_wanted)
{
    const struct profile *profile = source->profile;
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (is_wanted && !is_wanted[i]) continue;
        const int64_t *values = profile_sample_values(profile, i);
        bool is_empty = values[source->choice.index] == 0 && (!source->choice.is_mean || values[0] == 0);
        if (!is_empty) stack_tree_add(&source->stacks, profile->samples.stack[i], values[column]);
    }
}

static bool add_nodes(struct call_graph *graph, const struct graph_source *source)
{
    if (source->is_tree) return true;
    graph->node_count = graph->node_capacity = source->grouping->count;
    graph->nodes = calloc(graph->node_count + 1, sizeof(*graph->nodes));
    for (uint32_t i = 0; graph->nodes && i < graph->node_count; i++)
        graph->nodes[i] = (struct call_node){.group = i, .parent = GRAPH_NONE, .in_edge = GRAPH_NONE};
    return graph->nodes != NULL;
}

static bool list_nodes(struct call_graph *graph)
{
    graph->listed = calloc(graph->node_count + 1, sizeof(*graph->listed));
    for (uint32_t i = 0; graph->listed && i < graph->node_count; i++) {
        const struct call_node *node = &graph->nodes[i];
        if (node->flat != 0 || node->cum != 0) graph->listed[graph->listed_count++] = i;
    }
    return graph->listed != NULL;
}

/* Column COLUMN of the samples as FLAT and CUM of all groups, or as their divisors. */
static bool sum_groups(struct call_graph *graph, struct graph_source *source, size_t column, enum pass pass)
{
    struct group_sums sums;
    bool is_done = group_sums_init(&sums, source->grouping, &source->stacks);
    if (is_done) {
        add_samples(source, column, NULL);
        group_sums_walk(&sums, &source->stacks);
    }
    for (size_t i = 0; is_done && i < sums.used_count; i++) {
        uint32_t group = sums.used[i];
        struct call_node *node = &graph->nodes[group];
        *(pass == PASS_VALUES ? &node->flat : &node->flat_div) = sums.self[group];
        *(pass == PASS_VALUES ? &node->cum : &node->cum_div) = sums.total[group];
    }
    group_sums_fini(&sums);
    return is_done;
}

/* Column COLUMN of the stated costs, of the groups that are kept. The calls across others are not stated. */
static bool take_stated(struct walk *walk, size_t column, enum pass pass)
{
    struct call_graph *graph = walk->graph;
    const struct stated_query query = {.profile = walk->source->profile,
                                       .grouping = walk->source->grouping,
                                       .row_count = graph->node_count,
                                       .column = column};
    const struct stated_costs *stated = query.profile->stated;
    int64_t *self = calloc(query.row_count + 1, sizeof(*self)), *total = calloc(query.row_count + 1, sizeof(*total));
    bool is_done = self && total && stated_sums_compute(&query, self, total);
    for (uint32_t i = 0; is_done && i < graph->node_count; i++) {
        struct call_node *node = &graph->nodes[i];
        if (walk->kept && !walk->kept[i]) continue;
        *(pass == PASS_VALUES ? &node->flat : &node->flat_div) = self[i];
        *(pass == PASS_VALUES ? &node->cum : &node->cum_div) = total[i];
    }
    free(self);
    free(total);
    for (size_t i = 0; is_done && !walk->no_edges && !walk->failed && i < stated->calls.count; i++) {
        struct stated_ends ends = stated_call_ends(&query, &stated->calls.items[i]);
        bool is_left_out = walk->kept && (!walk->kept[ends.from] || !walk->kept[ends.to]);
        uint32_t none = 0;
        if (ends.from == ends.to || is_left_out) continue;
        uint32_t index = find_edge(walk, ends.from, ends.to, &none);
        if (index == GRAPH_NONE) return false;
        struct call_edge *edge = &graph->edges[index];
        edge->is_inline = false;
        add(pass == PASS_VALUES ? &edge->weight : &edge->weight_div,
            stated_value(stated, &stated->calls.items[i].values, column));
    }
    return is_done && !walk->failed;
}

static bool sum_column(struct walk *walk, size_t column, enum pass pass)
{
    if (walk->source->profile->stated && !walk->source->is_tree) return take_stated(walk, column, pass);
    bool has_nodes_only = walk->no_edges && !walk->kept;
    if (has_nodes_only) return sum_groups(walk->graph, walk->source, column, pass);
    walk->pass = pass;
    add_samples(walk->source, column, NULL);
    return walk_stacks(walk);
}

bool call_graph_build(struct call_graph *graph, struct graph_source *source, const bool *kept, bool no_edges)
{
    struct walk walk = {.graph = graph, .source = source, .kept = kept, .no_edges = no_edges && !source->is_tree};
    *graph = (struct call_graph){0};
    bool is_done = add_nodes(graph, source) && sum_column(&walk, source->choice.index, PASS_VALUES) &&
                   (!source->choice.is_mean || sum_column(&walk, 0, PASS_DIVISORS));
    free(walk.steps);
    free(walk.runs);
    return is_done && list_nodes(graph);
}

bool call_graph_mark(struct call_graph *graph, struct graph_source *source, const bool *kept,
                     const struct graph_marks *marks)
{
    struct walk walk = {
        .graph = graph, .source = source, .kept = kept, .no_edges = true, .pass = PASS_MARKS, .marks = marks};
    add_samples(source, source->choice.index, marks->is_wanted);
    bool is_done = walk_stacks(&walk);
    free(walk.steps);
    free(walk.runs);
    return is_done;
}

void call_graph_fini(struct call_graph *graph)
{
    free(graph->nodes);
    free(graph->edges);
    free(graph->listed);
    free(graph->in);
    free(graph->out);
    free(graph->in_first);
    free(graph->out_first);
    free(graph->sorted);
    index_table_fini(&graph->index);
    *graph = (struct call_graph){0};
}

bool graph_source_init(struct graph_source *source, const struct profile *profile, const struct grouping *grouping,
                       struct value_choice choice, bool is_tree)
{
    *source = (struct graph_source){.profile = profile, .grouping = grouping, .choice = choice, .is_tree = is_tree};
    return stack_tree_init(&source->stacks, profile);
}

void graph_source_fini(struct graph_source *source)
{
    stack_tree_fini(&source->stacks);
}
