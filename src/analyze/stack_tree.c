/* SPDX-License-Identifier: MIT */
#include "analyze/stack_tree.h"

/* What lies behind the last end before a branch is in no sample, and in no run. */
static void find_ends(struct stack_tree *tree)
{
    const struct profile *profile = tree->profile;
    const uint32_t *words = profile->stacks.items;
    ranked_bits_add(&tree->ends, 0);
    for (size_t i = 0; i < profile->samples.count; i++) ranked_bits_add(&tree->ends, profile->samples.stack[i].index);
    for (uint32_t i = 1; i < profile->stacks.count; i++) {
        if (!profile_is_stack(profile, i)) ranked_bits_add(&tree->ends, words[i] & ~PROFILE_BRANCH);
    }
}

/* Parents of branches lie anywhere: their memory is fetched in time. */
static inline void fetch_ahead(const struct stack_tree *tree, uint32_t i)
{
    enum { AHEAD = 128 };
    if (tree->profile->stacks.count - i <= AHEAD) return;
    uint32_t word = tree->profile->stacks.items[i + AHEAD];
    if (word & PROFILE_BRANCH) ranked_bits_prefetch(&tree->ends, word & ~PROFILE_BRANCH);
}

static void find_runs(struct stack_tree *tree)
{
    const uint32_t *words = tree->profile->stacks.items;
    uint32_t run = 0, parent = 0, first = 1;
    for (uint32_t i = 1; i < tree->profile->stacks.count; i++) {
        fetch_ahead(tree, i);
        if (!profile_is_stack(tree->profile, i)) {
            parent = ranked_bits_rank(&tree->ends, words[i] & ~PROFILE_BRANCH);
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
    if (!ranked_bits_init(&tree->ends, profile->stacks.count)) return false;
    find_ends(tree);
    tree->run_count = ranked_bits_count(&tree->ends);
    tree->runs = calloc((size_t)tree->run_count + 1, sizeof(*tree->runs));
    tree->nodes = calloc((size_t)tree->run_count + 1, sizeof(*tree->nodes));
    tree->included = malloc(((size_t)tree->run_count + 1) * sizeof(*tree->included));
    if (!tree->runs || !tree->nodes || !tree->included) return false;
    find_runs(tree);
    return true;
}

void stack_tree_fini(struct stack_tree *tree)
{
    ranked_bits_fini(&tree->ends);
    free(tree->runs);
    free(tree->nodes);
    free(tree->included);
    *tree = (struct stack_tree){0};
}

/* Makes RUN part of the walk, if it is none yet. True if it was none. */
static bool include(struct stack_tree *tree, uint32_t run)
{
    if (tree->nodes[run].walk == tree->walk) return false;
    tree->nodes[run] = (struct stack_node){.walk = tree->walk};
    tree->included[tree->included_count++] = run;
    return true;
}

static void reverse(uint32_t *items, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t item = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = item;
    }
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
        nodes[run].next_sibling = nodes[parent].first_child;
        nodes[parent].first_child = run;
        run = parent;
    }
    reverse(tree->included + included_before, tree->included_count - included_before);
}

/* Children come after their parents in the list, so their sums are complete when they are added. */
static void sum_up(struct stack_tree *tree)
{
    while (tree->included_count > 0) {
        uint32_t run = tree->included[--tree->included_count];
        struct stack_node *parent = &tree->nodes[tree->runs[run].parent];
        if (run != 0) parent->sum = profile_add_values(parent->sum, tree->nodes[run].sum);
    }
}

static void describe(const struct stack_tree *tree, bool is_entry, struct stack_visit *ret_visit)
{
    const struct stack_run *run = &tree->runs[tree->at];
    const struct stack_node *node = &tree->nodes[tree->at];
    *ret_visit = (struct stack_visit){
        .first = run->first, .last = run->last, .is_entry = is_entry, .self = node->self, .sum = node->sum};
}

/* A run leaves its parent's list of children when it is entered; the one after it may lie anywhere. */
bool stack_tree_next(struct stack_tree *tree, struct stack_visit *ret_visit)
{
    struct stack_node *nodes = tree->nodes, *node = &nodes[tree->at];
    if (tree->included_count > 0) sum_up(tree);
    uint32_t child = node->walk == tree->walk ? node->first_child : 0;
    if (child != 0) {
        node->first_child = nodes[child].next_sibling;
        __builtin_prefetch(&nodes[node->first_child]);
        __builtin_prefetch(&tree->runs[node->first_child]);
        tree->at = child;
        describe(tree, true, ret_visit);
        return true;
    }
    if (tree->at == 0) {
        tree->walk++;
        return false;
    }
    describe(tree, false, ret_visit);
    tree->at = tree->runs[tree->at].parent;
    return true;
}
