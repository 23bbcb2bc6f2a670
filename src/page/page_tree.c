/* One pass over the profile's stacks, parents first; each frame is looked up among its caller's children.
 * SPDX-License-Identifier: MIT */
#include "page/page_tree.h"

#include "base/array.h"
#include "base/hash.h"
#include "page/page.h"

#include <string.h>

struct child_key {
    uint32_t parent, group;
};

static bool is_child(const void *context, uint32_t index, const void *key)
{
    const struct page_node *node = &((const struct page_tree *)context)->nodes[index];
    const struct child_key *child = key;
    return node->parent == child->parent && node->group == child->group;
}

static uint32_t add_node(struct page_tree *tree, struct child_key key)
{
    if (!array_reserve(&tree->nodes, &tree->capacity, tree->count + 1, sizeof(*tree->nodes), PAGE_NODES_MAX))
        return PAGE_NO_NODE;
    uint32_t node = (uint32_t)tree->count++;
    tree->nodes[node] = (struct page_node){
        .parent = key.parent, .group = key.group, .first_child = PAGE_NO_NODE, .next_sibling = PAGE_NO_NODE};
    return node;
}

/* Finds or adds the child. PAGE_NO_NODE without memory or above the maximum. */
static uint32_t find_child(struct page_tree *tree, uint32_t parent, uint32_t group)
{
    struct child_key key = {parent, group};
    uint64_t hash = hash_mix(parent, group);
    uint32_t found = index_table_find(&tree->index, hash, is_child, tree, &key);
    if (found != INDEX_NONE) return found;
    uint32_t node = add_node(tree, key);
    if (node == PAGE_NO_NODE || !index_table_add(&tree->index, hash, node)) return PAGE_NO_NODE;
    tree->nodes[node].next_sibling = tree->nodes[parent].first_child;
    tree->nodes[parent].first_child = node;
    return node;
}

static bool add_stacks(struct page_tree *tree, const struct profile *profile, const struct grouping *grouping)
{
    for (uint32_t stack = 1; stack < profile_stack_limit(profile); stack++) {
        if (tree->of_stack[stack] == PAGE_NO_NODE) continue;
        struct stack frame = profile_stack_at(profile, stack);
        uint32_t node = tree->of_stack[frame.parent.index], count;
        const uint32_t *groups = grouping_frames(grouping, frame.location.index, &count);
        for (uint32_t i = count; i-- > 0 && node != PAGE_NO_NODE;) node = find_child(tree, node, groups[i]);
        if (node == PAGE_NO_NODE) return false;
        tree->of_stack[stack] = node;
    }
    return true;
}

uint32_t page_tree_next(const struct page_tree *tree, uint32_t node, uint32_t *ret_pops)
{
    *ret_pops = 0;
    if (tree->nodes[node].first_child != PAGE_NO_NODE) return tree->nodes[node].first_child;
    for (; node != 0; node = tree->nodes[node].parent) {
        (*ret_pops)++;
        if (tree->nodes[node].next_sibling != PAGE_NO_NODE) return tree->nodes[node].next_sibling;
    }
    return PAGE_NO_NODE;
}

enum status page_tree_init(struct page_tree *tree, const struct profile *profile, const struct grouping *grouping,
                           struct error *error)
{
    uint32_t pops, number = 0;
    *tree = (struct page_tree){.of_stack = calloc(profile_stack_limit(profile) + 1, sizeof(*tree->of_stack))};
    bool is_done = tree->of_stack && add_node(tree, (struct child_key){0, PAGE_NO_NODE}) == 0;
    if (is_done) {
        /* Children come after their parents: one pass from the end marks the callers of all marked stacks. */
        memset(tree->of_stack, 0xff, profile_stack_limit(profile) * sizeof(*tree->of_stack)); /* PAGE_NO_NODE */
        for (size_t i = 0; i < profile->samples.count; i++) tree->of_stack[profile->samples.stack[i].index] = 0;
        for (uint32_t stack = profile_stack_limit(profile); stack-- > 1;) {
            if (tree->of_stack[stack] == 0) tree->of_stack[profile_parent_at(profile, stack)] = 0;
        }
        tree->of_stack[0] = 0;
        is_done = add_stacks(tree, profile, grouping);
    }
    if (!is_done && tree->count >= PAGE_NODES_MAX)
        return error_set(error, STATUS_TOO_LARGE, 0,
                         "the profile has more than 8 million different calls, too many for a page; filters such as "
                         "--focus and --thread leave fewer");
    if (!is_done) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the page");
    for (uint32_t node = 0; node != PAGE_NO_NODE; node = page_tree_next(tree, node, &pops))
        tree->nodes[node].number = number++;
    return STATUS_OK;
}

void page_tree_fini(struct page_tree *tree)
{
    free(tree->nodes);
    free(tree->of_stack);
    index_table_fini(&tree->index);
    *tree = (struct page_tree){0};
}
