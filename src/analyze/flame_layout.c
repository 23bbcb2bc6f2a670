/* SPDX-License-Identifier: MIT */
#include "analyze/flame_layout.h"

#include "analyze/stack_tree.h"
#include "analyze/totals.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { BOXES_MAX = 1 << 28 };

/* Samples that have the same frames from the root on (inverted: from the leaf on), and the frame that they are at. */
struct item {
    int64_t sum;  /* value; in a comparison that of the new profile */
    int64_t base; /* both 0: the stack has ended, or other items took over its callees */
    uint32_t run; /* unused if inverted */
    uint32_t stack;
    uint32_t frame; /* index in the frames of the stack's location; 0 is the innermost inlined one */
};

/* A box whose inside has no boxes yet. Its items are from FROM to the end of all items: boxes that wait longer have
 * theirs before. The items of different boxes are different samples, so there are never more items than stacks. */
struct pending {
    uint32_t box;
    size_t from;
};

/* A function inside the box that is split. */
struct part {
    uint32_t group, rank;
    int64_t sum, base;
    size_t count; /* number of items; then the place of the next one */
};

struct builder {
    struct flame_layout *layout;
    const struct profile *profile;
    const struct grouping *grouping;
    const struct flame_options *options;
    struct stack_tree tree;
    uint32_t *first_child, *next_sibling; /* runs below and beside each run; 0: none. NULL if inverted */
    int64_t *base_sums;                   /* sums of the base by run; NULL if there is no base */
    bool *is_base;                        /* label sets of the base; NULL if there is no base */
    struct item *items, *sorted;
    size_t item_count, item_capacity, sorted_capacity;
    struct pending *pending;
    size_t pending_count, pending_capacity;
    struct part *parts;
    size_t part_count, part_capacity;
    uint32_t *part_of; /* part of each group, plus one; 0 outside of split */
    uint32_t *ranks;   /* place of each group in the order of names */
    bool failed;
};

/* --- Order of names ----------------------------------------------------------------------------------------------- */

static int compare_groups(const void *a, const void *b, void *context)
{
    const struct builder *builder = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    int order = strcmp(group_name(builder->grouping, &builder->grouping->items[left]),
                       group_name(builder->grouping, &builder->grouping->items[right]));
    return order != 0 ? order : (left > right) - (left < right);
}

static bool rank_groups(struct builder *builder)
{
    size_t count = builder->grouping->count;
    uint32_t *order = calloc(count + 1, sizeof(*order));
    builder->ranks = calloc(count + 1, sizeof(*builder->ranks));
    builder->part_of = calloc(count + 1, sizeof(*builder->part_of));
    bool has_memory = order && builder->ranks && builder->part_of;
    for (uint32_t i = 0; has_memory && i < count; i++) order[i] = i;
    if (has_memory) qsort_r(order, count, sizeof(*order), compare_groups, builder);
    for (uint32_t i = 0; has_memory && i < count; i++) builder->ranks[order[i]] = i;
    free(order);
    return has_memory;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *left = a, *right = b;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

static const uint32_t *frames_of(const struct builder *builder, uint32_t stack, uint32_t *ret_count)
{
    return grouping_frames(builder->grouping, profile_stack_location(builder->profile, stack), ret_count);
}

static struct item *add_item(struct builder *builder)
{
    if (!array_reserve(&builder->items, &builder->item_capacity, builder->item_count + 1, sizeof(*builder->items),
                       SIZE_MAX / sizeof(*builder->items))) {
        builder->failed = true;
        return NULL;
    }
    return &builder->items[builder->item_count++];
}

static int64_t base_of(const struct builder *builder, uint32_t run)
{
    return builder->base_sums ? builder->base_sums[run] : 0;
}

/* Returns the item of RUN at the outermost frame of STACK. */
static struct item item_at(const struct builder *builder, uint32_t run, uint32_t stack)
{
    uint32_t count;
    (void)frames_of(builder, stack, &count);
    return (struct item){.sum = builder->tree.nodes[run].sum,
                         .base = base_of(builder, run),
                         .run = run,
                         .stack = stack,
                         .frame = count - 1};
}

/* Adds the items of the runs below RUN. What remains of its sum is of samples that end there. */
static int64_t add_callees(struct builder *builder, uint32_t run)
{
    int64_t rest = builder->tree.nodes[run].sum;
    for (uint32_t child = builder->first_child[run]; child != 0; child = builder->next_sibling[child]) {
        struct item *item = add_item(builder);
        if (!item) return 0;
        *item = item_at(builder, child, builder->tree.runs[child].first);
        rest -= item->sum;
    }
    return rest;
}

/* Moves to the next callee. Returns the sum of the samples that end here. */
static int64_t advance(struct builder *builder, size_t index)
{
    struct item *item = &builder->items[index];
    if (item->frame > 0) {
        item->frame--;
        return 0;
    }
    if (item->stack < builder->tree.runs[item->run].last) {
        *item = item_at(builder, item->run, item->stack + 1);
        return 0;
    }
    item->sum = item->base = 0;
    return add_callees(builder, item->run);
}

/* Moves to the caller. */
static int64_t advance_inverted(struct builder *builder, size_t index)
{
    struct item *item = &builder->items[index];
    uint32_t count;
    int64_t sum = item->sum;
    (void)frames_of(builder, item->stack, &count);
    if (item->frame + 1 < count) {
        item->frame++;
        return 0;
    }
    item->stack = profile_parent_at(builder->profile, item->stack);
    item->frame = 0;
    if (item->stack != 0) return 0;
    item->sum = item->base = 0;
    return sum;
}

static int64_t advance_all(struct builder *builder, size_t from)
{
    int64_t flat = 0;
    for (size_t i = from, end = builder->item_count; i < end && !builder->failed; i++)
        flat += builder->options->is_inverted ? advance_inverted(builder, i) : advance(builder, i);
    size_t kept = from;
    for (size_t i = from; i < builder->item_count; i++) {
        const struct item *item = &builder->items[i];
        if (item->sum != 0 || item->base != 0) builder->items[kept++] = *item;
    }
    builder->item_count = kept;
    return flat;
}

/* --- Boxes -------------------------------------------------------------------------------------------------------- */

static uint32_t group_of(const struct builder *builder, const struct item *item)
{
    uint32_t count;
    return frames_of(builder, item->stack, &count)[item->frame];
}

static void find_parts(struct builder *builder, size_t from)
{
    builder->part_count = 0;
    for (size_t i = from; i < builder->item_count; i++) {
        uint32_t group = group_of(builder, &builder->items[i]);
        if (builder->part_of[group] == 0) {
            if (!array_reserve(&builder->parts, &builder->part_capacity, builder->part_count + 1,
                               sizeof(*builder->parts), SIZE_MAX / sizeof(*builder->parts))) {
                builder->failed = true;
                break;
            }
            builder->parts[builder->part_count++] = (struct part){.group = group, .rank = builder->ranks[group]};
            builder->part_of[group] = (uint32_t)builder->part_count;
        }
        struct part *part = &builder->parts[builder->part_of[group] - 1];
        part->sum += builder->items[i].sum;
        part->base += builder->items[i].base;
        part->count++;
    }
}

/* Whether the box of PART is drawn; if not, it is counted. */
static bool is_drawn(struct builder *builder, const struct part *part, uint32_t depth)
{
    const struct flame_options *options = builder->options;
    struct flame_layout *layout = builder->layout;
    if (part->sum == 0) {
        layout->removed_count++;
        layout->removed_sum += part->base;
        return false;
    }
    if (options->depth_max > 0 && depth > options->depth_max) {
        layout->deep_count++;
        layout->deep_sum += part->sum;
        return false;
    }
    unsigned __int128 scaled = (unsigned __int128)part->sum * options->parts;
    bool is_wide = options->parts == 0 || scaled >= (unsigned __int128)layout->boxes[0].cum;
    bool is_kept_tie = part->sum == options->narrowest && (options->tie_depth == 0 || depth <= options->tie_depth);
    if (is_wide && (part->sum > options->narrowest || is_kept_tie)) return true;
    layout->narrow_count++;
    layout->narrow_sum += part->sum;
    return false;
}

static void add_box(struct builder *builder, const struct flame_box *box, size_t from)
{
    struct flame_layout *layout = builder->layout;
    if (!array_reserve(&layout->boxes, &layout->capacity, layout->count + 1, sizeof(*layout->boxes), BOXES_MAX) ||
        !array_reserve(&builder->pending, &builder->pending_capacity, builder->pending_count + 1,
                       sizeof(*builder->pending), BOXES_MAX)) {
        builder->failed = true;
        return;
    }
    builder->pending[builder->pending_count++] = (struct pending){.box = (uint32_t)layout->count, .from = from};
    layout->boxes[layout->count++] = *box;
}

/* Adds a box for each part that is drawn. PART's COUNT becomes the place of its items, or SIZE_MAX. */
static void add_boxes(struct builder *builder, uint32_t parent, size_t from)
{
    uint64_t start = builder->layout->boxes[parent].start;
    uint32_t depth = builder->layout->boxes[parent].depth + 1;
    for (size_t i = 0; i < builder->part_count && !builder->failed; i++) {
        struct part *part = &builder->parts[i];
        struct flame_box box = {.group = part->group,
                                .parent = parent,
                                .depth = depth,
                                .start = start,
                                .width = (uint64_t)part->sum,
                                .cum = part->sum,
                                .base = part->base};
        size_t count = part->count;
        start += (uint64_t)part->sum;
        builder->part_of[part->group] = (uint32_t)i + 1;
        part->count = SIZE_MAX;
        if (!is_drawn(builder, part, depth)) {
            builder->layout->boxes[parent].hidden_count += part->sum != 0;
            continue;
        }
        part->count = from;
        add_box(builder, &box, from);
        from += count;
    }
}

/* Groups the items by part, in the order of the parts, and drops the items of boxes that are not drawn. */
static void sort_items(struct builder *builder, size_t from)
{
    size_t count = builder->item_count - from, end = from;
    if (!array_reserve(&builder->sorted, &builder->sorted_capacity, count, sizeof(*builder->sorted),
                       SIZE_MAX / sizeof(*builder->sorted))) {
        builder->failed = true;
        return;
    }
    if (count > 0) memcpy(builder->sorted, builder->items + from, count * sizeof(*builder->sorted));
    for (size_t i = 0; i < count; i++) {
        struct part *part = &builder->parts[builder->part_of[group_of(builder, &builder->sorted[i])] - 1];
        if (part->count == SIZE_MAX) continue;
        builder->items[part->count++] = builder->sorted[i];
        end++;
    }
    builder->item_count = end;
}

/* Makes boxes inside PARENT of the items from FROM on. */
static void split(struct builder *builder, uint32_t parent, size_t from)
{
    find_parts(builder, from);
    if (builder->failed) return;
    if (builder->part_count > 1) qsort(builder->parts, builder->part_count, sizeof(*builder->parts), compare_parts);
    add_boxes(builder, parent, from);
    if (builder->failed) return;
    sort_items(builder, from);
    for (size_t i = 0; i < builder->part_count; i++) builder->part_of[builder->parts[i].group] = 0;
}

/* The last box that waits is the next one: its items are the last. */
static void split_pending(struct builder *builder)
{
    while (builder->pending_count > 0 && !builder->failed) {
        struct pending pending = builder->pending[--builder->pending_count];
        builder->layout->boxes[pending.box].flat = advance_all(builder, pending.from);
        split(builder, pending.box, pending.from);
    }
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

/* Finds which samples are of the base, and makes room for their sums. */
static bool find_base(struct builder *builder)
{
    if (!builder->options->is_diff) return true;
    if (!find_base_sets(builder->profile, &builder->is_base)) return false;
    builder->base_sums = calloc((size_t)builder->tree.run_count + 1, sizeof(*builder->base_sums));
    return builder->base_sums != NULL;
}

static enum status add_samples(struct builder *builder, int64_t *ret_total, int64_t *ret_base, struct error *error)
{
    const struct profile *profile = builder->profile;
    int64_t totals[2] = {0, 0}; /* sums of the profile and of the base */
    for (size_t i = 0; i < profile->samples.count; i++) {
        int64_t value = profile_sample_values(profile, i)[builder->options->column];
        bool is_base = builder->is_base && builder->is_base[profile->samples.labels[i].index];
        if (value < 0)
            return error_set(error, STATUS_UNSUPPORTED, 0,
                             "a flame graph cannot show negative values; offbeat tree can");
        if (__builtin_add_overflow(totals[is_base], value, &totals[is_base]))
            return error_set(error, STATUS_TOO_LARGE, 0, "the sum of the values is too large for a flame graph");
        if (value == 0) continue;
        struct stack_id stack = profile->samples.stack[i];
        stack_tree_add(&builder->tree, stack, is_base ? 0 : value);
        if (is_base) builder->base_sums[ranked_bits_rank(&builder->tree.ends, stack.index)] += value;
    }
    *ret_total = totals[0];
    *ret_base = totals[1];
    return STATUS_OK;
}

static bool is_in_walk(const struct builder *builder, uint32_t run)
{
    return builder->tree.nodes[run].walk == builder->tree.walk;
}

/* The items that the root is split into. What has the empty stack is the root's own. */
static int64_t add_leaves(struct builder *builder)
{
    for (uint32_t run = 1; run < builder->tree.run_count; run++) {
        if (!is_in_walk(builder, run)) continue;
        int64_t sum = builder->tree.nodes[run].sum, base = base_of(builder, run);
        if (sum == 0 && base == 0) continue;
        struct item *item = add_item(builder);
        if (!item) return 0;
        *item = (struct item){.sum = sum, .base = base, .stack = builder->tree.runs[run].last};
    }
    return is_in_walk(builder, 0) ? builder->tree.nodes[0].sum : 0;
}

/* A parent is before its children. False without memory. */
static bool sum_up_runs(struct builder *builder)
{
    builder->first_child = calloc((size_t)builder->tree.run_count + 1, sizeof(*builder->first_child));
    builder->next_sibling = calloc((size_t)builder->tree.run_count + 1, sizeof(*builder->next_sibling));
    if (!builder->first_child || !builder->next_sibling) return false;
    for (uint32_t run = builder->tree.run_count; run-- > 1;) {
        if (!is_in_walk(builder, run)) continue;
        uint32_t parent = builder->tree.runs[run].parent;
        builder->tree.nodes[parent].sum += builder->tree.nodes[run].sum;
        builder->next_sibling[run] = builder->first_child[parent];
        builder->first_child[parent] = run;
        if (builder->base_sums) builder->base_sums[parent] += builder->base_sums[run];
    }
    return true;
}

static int64_t add_roots(struct builder *builder)
{
    if (!sum_up_runs(builder)) {
        builder->failed = true;
        return 0;
    }
    return is_in_walk(builder, 0) ? add_callees(builder, 0) : 0;
}

static enum status build(struct builder *builder, struct error *error)
{
    int64_t total = 0, base = 0;
    bool has_memory = stack_tree_init(&builder->tree, builder->profile) && rank_groups(builder) && find_base(builder);
    if (!has_memory) return STATUS_NO_MEMORY;
    enum status status = add_samples(builder, &total, &base, error);
    if (status != STATUS_OK) return status;
    struct flame_box root = {.group = FLAME_NO_GROUP, .width = (uint64_t)total, .cum = total, .base = base};
    add_box(builder, &root, 0);
    if (builder->failed) return STATUS_NO_MEMORY;
    builder->pending_count = 0;
    builder->layout->boxes[0].flat = builder->options->is_inverted ? add_leaves(builder) : add_roots(builder);
    if (!builder->failed) split(builder, 0, 0);
    split_pending(builder);
    return builder->failed ? STATUS_NO_MEMORY : STATUS_OK;
}

enum status flame_layout_init(struct flame_layout *layout, const struct profile *profile,
                              const struct grouping *grouping, const struct flame_options *options, struct error *error)
{
    *layout = (struct flame_layout){0};
    struct builder builder = {.layout = layout, .profile = profile, .grouping = grouping, .options = options};
    enum status status = build(&builder, error);
    if (status == STATUS_NO_MEMORY) (void)error_set(error, status, 0, "not enough memory for the flame graph");
    stack_tree_fini(&builder.tree);
    free(builder.first_child);
    free(builder.next_sibling);
    free(builder.base_sums);
    free(builder.is_base);
    free(builder.items);
    free(builder.sorted);
    free(builder.pending);
    free(builder.parts);
    free(builder.part_of);
    free(builder.ranks);
    return status;
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left < right) - (left > right);
}

/* Finds the number of rows for which there is room among the boxes that are WIDTH wide, 0: none. False without
 * memory. */
static bool find_tie_depth(const struct flame_layout *layout, uint64_t width, size_t room, uint32_t *ret_depth)
{
    uint32_t depth_count = 0, depth = 0;
    for (size_t i = 0; i < layout->count; i++) {
        if (layout->boxes[i].depth >= depth_count) depth_count = layout->boxes[i].depth + 1;
    }
    size_t *counts = calloc((size_t)depth_count + 1, sizeof(*counts));
    if (!counts) return false;
    for (size_t i = 0; i < layout->count; i++) counts[layout->boxes[i].depth] += layout->boxes[i].width == width;
    while (depth < depth_count && counts[depth] <= room) room -= counts[depth++];
    *ret_depth = depth > 0 ? depth - 1 : 0;
    free(counts);
    return true;
}

static size_t count_wider(const uint64_t *widths, size_t count, uint64_t width)
{
    size_t wider = 0;
    while (wider < count && widths[wider] > width) wider++;
    return wider;
}

/* No box is wider than its parent, so the boxes that remain have their parents. */
bool flame_layout_narrowest(const struct flame_layout *layout, size_t count_max, int64_t *ret_narrowest,
                            uint32_t *ret_tie_depth)
{
    *ret_narrowest = 0;
    if (ret_tie_depth) *ret_tie_depth = 0;
    if (layout->count <= count_max) return true;
    uint64_t *widths = calloc(layout->count, sizeof(*widths));
    if (!widths) return false;
    for (size_t i = 0; i < layout->count; i++) widths[i] = layout->boxes[i].width;
    qsort(widths, layout->count, sizeof(*widths), compare_descending);
    uint64_t last = widths[count_max - 1];
    bool is_tie = widths[count_max] == last, has_memory = true;
    size_t room = count_max - count_wider(widths, count_max, last);
    if (is_tie && ret_tie_depth) has_memory = find_tie_depth(layout, last, room, ret_tie_depth);
    bool drops_tie = is_tie && (!ret_tie_depth || *ret_tie_depth == 0);
    *ret_narrowest = (int64_t)(drops_tie && last < INT64_MAX ? last + 1 : last);
    free(widths);
    return has_memory;
}

void flame_layout_fini(struct flame_layout *layout)
{
    free(layout->boxes);
    *layout = (struct flame_layout){0};
}
