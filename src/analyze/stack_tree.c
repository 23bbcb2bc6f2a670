/* SPDX-License-Identifier: MIT */
#include "analyze/stack_tree.h"

#include "base/pages.h"

/* The parent of a branch may be anywhere in the table: its memory is prefetched. */
static inline void fetch_ahead(const struct stack_tree *tree, uint32_t i)
{
    enum { AHEAD = 128 };
    if (profile_stack_limit(tree->profile) - i <= AHEAD) return;
    if (profile_is_stack(tree->profile, i + AHEAD)) return;
    ranked_bits_prefetch(&tree->ends, profile_branch_parent(tree->profile, i + AHEAD));
}

static void find_runs(struct stack_tree *tree)
{
    uint32_t run = 0, parent = 0, first = 1;
    for (uint32_t i = 1; i < profile_stack_limit(tree->profile); i++) {
        fetch_ahead(tree, i);
        if (!profile_is_stack(tree->profile, i)) {
            parent = ranked_bits_rank(&tree->ends, profile_branch_parent(tree->profile, i));
            first = i + 1;
        } else if (ranked_bits_has(&tree->ends, i)) {
            tree->runs[++run] = (struct stack_run){.first = first, .last = i, .parent = parent};
            parent = run;
            first = i + 1;
        }
    }
}

bool stack_tree_init(struct stack_tree *tree, const struct profile *profile)
{
    *tree = (struct stack_tree){.profile = profile, .walk = 1};
    if (!ranked_bits_init(&tree->ends, profile_stack_limit(profile))) return false;
    /* Stacks between the last end and a branch are in no sample and in no run. */
    ranked_bits_add(&tree->ends, 0);
    for (size_t i = 0; i < profile->samples.count; i++) ranked_bits_add(&tree->ends, profile->samples.stack[i].index);
    for (uint32_t i = 1; i < profile_stack_limit(profile); i++) {
        if (!profile_is_stack(profile, i)) ranked_bits_add(&tree->ends, profile_branch_parent(profile, i));
    }
    tree->run_count = ranked_bits_count(&tree->ends);
    tree->runs = calloc((size_t)tree->run_count + 1, sizeof(*tree->runs));
    tree->nodes = calloc((size_t)tree->run_count + 1, sizeof(*tree->nodes));
    tree->included = malloc(((size_t)tree->run_count + 1) * sizeof(*tree->included));
    tree->order = malloc(((size_t)tree->run_count + 1) * sizeof(*tree->order));
    if (!tree->runs || !tree->nodes || !tree->included || !tree->order) return false;
    pages_prepare(tree->runs, ((size_t)tree->run_count + 1) * sizeof(*tree->runs));
    pages_prepare(tree->nodes, ((size_t)tree->run_count + 1) * sizeof(*tree->nodes));
    find_runs(tree);
    return true;
}

void stack_tree_fini(struct stack_tree *tree)
{
    ranked_bits_fini(&tree->ends);
    free(tree->runs);
    free(tree->nodes);
    free(tree->included);
    free(tree->order);
    *tree = (struct stack_tree){0};
}

/* Adds RUN to the walk. False if it was already added. */
static bool include(struct stack_tree *tree, uint32_t run)
{
    if (tree->nodes[run].walk == tree->walk) return false;
    tree->nodes[run] = (struct stack_node){.walk = tree->walk};
    tree->included[tree->included_count++] = run;
    return true;
}

void stack_tree_add(struct stack_tree *tree, struct stack_id stack, int64_t value)
{
    struct stack_node *nodes = tree->nodes;
    uint32_t run = ranked_bits_rank(&tree->ends, stack.index), included_before = tree->included_count;
    bool is_new = include(tree, run);
    nodes[run].self = nodes[run].sum = profile_add_values(nodes[run].self, value);
    while (is_new && run != 0) {
        uint32_t parent = tree->runs[run].parent;
        is_new = include(tree, parent);
        run = parent;
    }
    uint32_t *items = tree->included + included_before;
    size_t count = tree->included_count - included_before;
    for (size_t i = 0; i < count / 2; i++) { /* from the leaf to the root, and the other way round */
        uint32_t item = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = item;
    }
}

/* Children come after their parents in the list, so their sums and sizes are complete when they are added. */
static void sum_up(struct stack_tree *tree)
{
    for (uint32_t i = tree->included_count; i-- > 0;) {
        const struct stack_node *node = &tree->nodes[tree->included[i]];
        struct stack_node *parent = &tree->nodes[tree->runs[tree->included[i]].parent];
        if (tree->included[i] == 0) continue;
        parent->sum = profile_add_values(parent->sum, node->sum);
        parent->end += node->end + 1;
    }
}

/* Sets ORDER: the runs below a run come right after it. The runs take their places in it from its end. */
static void find_order(struct stack_tree *tree)
{
    for (uint32_t i = 0; i < tree->included_count; i++) {
        uint32_t run = tree->included[i], size = tree->nodes[run].end + 1;
        struct stack_node *parent = &tree->nodes[tree->runs[run].parent];
        uint32_t end = run == 0 ? size : parent->end;
        if (run != 0) parent->end = end - size;
        tree->order[end - size] = run;
        tree->nodes[run].end = end;
    }
}

/* Runs are anywhere in memory: it is loaded before the walk comes to them. */
static inline void fetch_runs(const struct stack_tree *tree, uint32_t place)
{
    enum { RUNS_AHEAD = 16, STACKS_AHEAD = 8, LINE_WORDS = 16 };
    if (tree->included_count - place <= RUNS_AHEAD) return;
    uint32_t run = tree->order[place + RUNS_AHEAD];
    __builtin_prefetch(&tree->runs[run]);
    __builtin_prefetch(&tree->nodes[run]);
    const struct stack_run *next = &tree->runs[tree->order[place + STACKS_AHEAD]];
    const uint32_t *locations = profile_run_locations(tree->profile, next->first);
    __builtin_prefetch(locations);
    if (next->last - next->first >= LINE_WORDS) __builtin_prefetch(locations + LINE_WORDS);
}

static void describe(const struct stack_tree *tree, bool is_entry, struct stack_visit *ret_visit)
{
    const struct stack_run *run = &tree->runs[tree->at];
    const struct stack_node *node = &tree->nodes[tree->at];
    *ret_visit = (struct stack_visit){
        .first = run->first, .last = run->last, .is_entry = is_entry, .self = node->self, .sum = node->sum};
}

static void begin(struct stack_tree *tree)
{
    sum_up(tree);
    find_order(tree);
    tree->entered_count = 1; /* the empty stack, where the walk is */
}

/* Enters the next run if its parent is where the walk is; leaves that place otherwise. */
bool stack_tree_next(struct stack_tree *tree, struct stack_visit *ret_visit)
{
    if (tree->entered_count == 0 && tree->included_count > 0) begin(tree);
    if (tree->entered_count < tree->included_count) {
        uint32_t run = tree->order[tree->entered_count];
        if (tree->runs[run].parent == tree->at) {
            fetch_runs(tree, tree->entered_count++);
            tree->at = run;
            describe(tree, true, ret_visit);
            return true;
        }
    }
    if (tree->at == 0) {
        tree->walk++;
        tree->entered_count = tree->included_count = 0;
        return false;
    }
    describe(tree, false, ret_visit);
    tree->at = tree->runs[tree->at].parent;
    return true;
}
