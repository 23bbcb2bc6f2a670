/* Samples are taken group by group: all of a group have the same labels, so one walk over its stacks sums up what the
 * group adds to each node. SPDX-License-Identifier: MIT */
#include "analyze/graph_tags.h"

#include "analyze/label_groups.h"
#include "base/array.h"
#include "base/hash.h"
#include "profile/label_units.h"
#include "profile/units.h"

#include <stdio.h>
#include <stdlib.h>

struct computation {
    struct graph_tags *tags;
    struct call_graph *graph;
    struct graph_source *source;
    const bool *kept;
    const struct graph_tag_options *options;
    struct label_groups groups;
    struct label_units units;
    struct sample_labels labels;
    bool *is_wanted;   /* by node */
    uint32_t *samples; /* group by group */
    size_t *first;     /* by group; one more at the end */
    struct graph_part values, divisors;
    struct index_table index; /* tags by node, texts and name */
    struct buffer text;
};

/* --- Labels as text ----------------------------------------------------------------------------------------------- */

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool is_text(const struct sample_label *label)
{
    return !label->is_number && strcmp(label->key, DIFF_BASE_LABEL) != 0;
}

/* The texts of the labels at hand, sorted and joined; 0: there are none, or no memory. */
static uint32_t joined_texts(struct computation *all)
{
    char **pairs = calloc(all->labels.count + 1u, sizeof(*pairs));
    size_t count = 0;
    buffer_clear(&all->text);
    for (uint32_t i = 0; pairs && i < all->labels.count; i++) {
        const struct sample_label *label = &all->labels.items[i];
        if (!is_text(label)) continue;
        if (asprintf(&pairs[count], "%s:%s", label->key, label->text) < 0) break;
        count++;
    }
    if (pairs) qsort(pairs, count, sizeof(*pairs), compare_texts);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) buffer_append_text(&all->text, "\\n");
        buffer_append_text(&all->text, pairs[i]);
        free(pairs[i]);
    }
    free(pairs);
    return profile_string(&all->tags->strings, buffer_slice(&all->text)).index;
}

static uint32_t number_name(struct computation *all, int64_t number)
{
    buffer_clear(&all->text);
    unit_append(&all->text, number, all->tags->unit, all->options->unit);
    return profile_string(&all->tags->strings, buffer_slice(&all->text)).index;
}

/* --- Sums --------------------------------------------------------------------------------------------------------- */

static bool tag_equal(const void *context, uint32_t index, const void *key)
{
    const struct graph_tags *tags = context;
    const struct node_tag *a = &tags->items[index], *b = key;
    return a->node == b->node && a->texts == b->texts && a->name == b->name;
}

static bool add_tag(struct computation *all, const struct node_tag *tag)
{
    struct graph_tags *tags = all->tags;
    uint64_t hash = hash_mix(tag->node, (uint64_t)tag->texts << 32 | tag->name);
    uint32_t index = index_table_find(&all->index, hash, tag_equal, tags, tag);
    if (index != INDEX_NONE) {
        struct node_tag *known = &tags->items[index];
        known->flat = profile_add_values(known->flat, tag->flat);
        known->cum = profile_add_values(known->cum, tag->cum);
        known->flat_div = profile_add_values(known->flat_div, tag->flat_div);
        known->cum_div = profile_add_values(known->cum_div, tag->cum_div);
        return true;
    }
    if (tags->count == GRAPH_TAGS_MAX) {
        tags->left_out++;
        return true;
    }
    if (!array_reserve(&tags->items, &tags->capacity, tags->count + 1, sizeof(*tags->items), GRAPH_TAGS_MAX) ||
        !index_table_add(&all->index, hash, (uint32_t)tags->count)) {
        return false;
    }
    tags->items[tags->count++] = *tag;
    return true;
}

/* What the group at hand adds to NODE, once for its texts and once for each of its numbers. */
static bool add_to_node(struct computation *all, uint32_t node, uint32_t texts)
{
    struct node_tag tag = {.node = node,
                           .texts = texts,
                           .flat = all->values.sums[node].flat,
                           .cum = all->values.sums[node].cum,
                           .flat_div = all->divisors.sums[node].flat,
                           .cum_div = all->divisors.sums[node].cum};
    if (texts != 0 && !add_tag(all, &tag)) return false;
    for (uint32_t i = 0; i < all->labels.count; i++) {
        const struct sample_label *label = &all->labels.items[i];
        if (!label->is_number || strcmp(label->key, "bytes") != 0) continue;
        tag.number = label->number;
        tag.name = number_name(all, label->number);
        if (!add_tag(all, &tag)) return false;
    }
    return true;
}

static bool has_tags(const struct computation *all)
{
    for (uint32_t i = 0; i < all->labels.count; i++) {
        const struct sample_label *label = &all->labels.items[i];
        if (is_text(label) || (label->is_number && strcmp(label->key, "bytes") == 0)) return true;
    }
    return false;
}

static void clear(struct graph_part *part)
{
    for (size_t i = 0; i < part->touched_count; i++) part->sums[part->touched[i]] = (struct node_sums){0};
    part->touched_count = 0;
}

static bool sum_group(struct computation *all, struct graph_part *part, size_t group)
{
    part->samples = all->samples + all->first[group];
    part->sample_count = all->first[group + 1] - all->first[group];
    return call_graph_sum(all->graph, all->source, all->kept, part);
}

static bool add_group(struct computation *all, size_t group)
{
    const struct label_group *item = &all->groups.items[group];
    sample_labels_collect(&all->labels, all->source->profile, item->labels, item->thread);
    if (!has_tags(all)) return true;
    if (!sum_group(all, &all->values, group)) return false;
    if (all->source->choice.is_mean && !sum_group(all, &all->divisors, group)) return false;
    uint32_t texts = joined_texts(all);
    bool is_done = true;
    for (size_t i = 0; i < all->values.touched_count && is_done; i++) {
        uint32_t node = all->values.touched[i];
        if (all->is_wanted[node]) is_done = add_to_node(all, node, texts);
    }
    clear(&all->values);
    clear(&all->divisors);
    return is_done;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static bool order_samples(struct computation *all)
{
    size_t count = all->source->profile->samples.count;
    all->samples = calloc(count + 1, sizeof(*all->samples));
    all->first = calloc(all->groups.count + 3, sizeof(*all->first));
    if (!all->samples || !all->first) return false;
    for (size_t i = 0; i < count; i++) all->first[all->groups.group_of_sample[i] + 2]++;
    for (size_t g = 2; g <= all->groups.count; g++) all->first[g] += all->first[g - 1];
    for (size_t i = 0; i < count; i++) all->samples[all->first[all->groups.group_of_sample[i] + 1]++] = (uint32_t)i;
    return true;
}

static bool part_init(struct graph_part *part, size_t node_count, size_t column)
{
    *part = (struct graph_part){.column = column,
                                .sums = calloc(node_count + 1, sizeof(*part->sums)),
                                .touched = calloc(node_count + 1, sizeof(*part->touched))};
    return part->sums && part->touched;
}

static void part_fini(struct graph_part *part)
{
    free(part->sums);
    free(part->touched);
}

static bool prepare(struct computation *all)
{
    const struct profile *profile = all->source->profile;
    size_t wanted =
        all->options->node_max < all->graph->listed_count ? all->options->node_max : all->graph->listed_count;
    all->is_wanted = calloc(all->graph->node_count + 1, sizeof(*all->is_wanted));
    if (!all->is_wanted) return false;
    for (size_t i = 0; i < wanted; i++) all->is_wanted[all->graph->listed[i]] = true;
    return label_groups_init(&all->groups, profile) && label_units_init(&all->units, profile) &&
           sample_labels_init(&all->labels, profile) && order_samples(all) &&
           part_init(&all->values, all->graph->node_count, all->source->choice.index) &&
           part_init(&all->divisors, all->graph->node_count, 0);
}

static void find_unit(struct computation *all)
{
    struct sample_label bytes = {.key = "bytes"};
    const struct profile *profile = all->source->profile;
    for (size_t i = 0; i < profile->labels.count; i++) {
        const struct label *label = &profile->labels.items[i];
        if (label->is_number && strcmp(profile_c_string(profile, label->key), "bytes") == 0) bytes.key_id = label->key;
    }
    (void)snprintf(all->tags->unit, sizeof(all->tags->unit), "%s", label_unit(&all->units, &bytes));
}

static int compare_tags(const void *left, const void *right)
{
    const struct node_tag *a = left, *b = right;
    return (a->node > b->node) - (a->node < b->node);
}

static void find_first(struct graph_tags *tags, size_t node_count)
{
    memset(tags->first, 0, (node_count + 1) * sizeof(*tags->first));
    for (size_t i = 0; i < tags->count; i++) tags->first[tags->items[i].node + 1]++;
    for (size_t n = 1; n <= node_count; n++) tags->first[n] += tags->first[n - 1];
}

static bool sum_up(struct computation *all)
{
    struct graph_tags *tags = all->tags;
    bool is_done = prepare(all);
    if (is_done) find_unit(all);
    for (size_t i = 0; i < all->groups.count && is_done; i++) is_done = add_group(all, i);
    tags->first = calloc(all->graph->node_count + 2, sizeof(*tags->first));
    if (!is_done || !tags->first || tags->strings.failed != STATUS_OK || all->text.failed) return false;
    if (tags->count > 1) qsort(tags->items, tags->count, sizeof(*tags->items), compare_tags);
    find_first(tags, all->graph->node_count);
    return true;
}

enum status graph_tags_init(struct graph_tags *tags, struct call_graph *graph, struct graph_source *source,
                            const bool *kept, const struct graph_tag_options *options, struct error *error)
{
    struct computation all = {.tags = tags,
                              .graph = graph,
                              .source = source,
                              .kept = kept,
                              .options = options,
                              .text = {.maximum = SIZE_MAX}};
    *tags = (struct graph_tags){0};
    profile_init(&tags->strings);
    bool is_done = sum_up(&all);
    label_groups_fini(&all.groups);
    label_units_fini(&all.units);
    sample_labels_fini(&all.labels);
    free(all.is_wanted);
    free(all.samples);
    free(all.first);
    part_fini(&all.values);
    part_fini(&all.divisors);
    index_table_fini(&all.index);
    buffer_fini(&all.text);
    if (is_done) return STATUS_OK;
    return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the labels of the graph");
}

void graph_tags_fini(struct graph_tags *tags)
{
    free(tags->items);
    free(tags->first);
    profile_fini(&tags->strings);
    *tags = (struct graph_tags){0};
}

void graph_tags_trim(struct graph_tags *tags, const struct call_graph *graph, int64_t cutoff)
{
    size_t kept = 0;
    for (size_t i = 0; i < tags->count; i++) {
        const struct node_tag *tag = &tags->items[i];
        if (magnitude_of(tag->flat) >= cutoff || magnitude_of(tag->cum) >= cutoff) tags->items[kept++] = *tag;
    }
    tags->count = kept;
    find_first(tags, graph->node_count);
}

size_t graph_tags_count_flat(const struct graph_tags *tags, uint32_t node)
{
    size_t count = 0;
    for (uint32_t i = tags->first[node]; i < tags->first[node + 1]; i++) count += tags->items[i].flat != 0;
    return count;
}
