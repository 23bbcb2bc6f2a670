/* Samples are taken group by group: all samples of a group have the same labels. One walk over all stacks says which
 * nodes each goes through, for some nodes at a time, and a group's samples are summed up with that. Groups whose tags
 * cannot reach the cutoff in any node are skipped: in a large profile those are most, if not all.
 * SPDX-License-Identifier: MIT */
#include "analyze/graph_tags.h"

#include "analyze/label_groups.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/unsigned.h"
#include "profile/label_units.h"
#include "profile/units.h"

#include <stdio.h>
#include <stdlib.h>

/* A group without tags, or with all of them below the cutoff. */
#define NO_TAGS UINT32_MAX

struct computation {
    struct graph_tags *tags;
    struct call_graph *graph;
    struct graph_source *source;
    const bool *kept;
    const struct graph_tag_options *options;
    struct label_groups groups;
    struct label_units units;
    struct sample_labels labels;
    uint32_t *samples; /* group by group */
    size_t *first;     /* index in SAMPLES of each group's first one; one more at the end */
    uint32_t *texts;   /* name of each group's texts, as of a tag, or NO_TAGS */
    struct graph_marks marks;
    bool *is_wanted; /* samples whose group has tags */
    uint32_t *names; /* names of the numbers of the group at hand, by label */
    size_t name_capacity;
    const uint32_t *marked; /* the nodes with marks, by mark */
    size_t marked_count;
    struct mark_sums {
        int64_t flat, cum, flat_div, cum_div;
        bool is_touched;
    } sums[GRAPH_MARKS_MAX];  /* sums of the group at hand, by mark */
    struct index_table index; /* tags by node, texts and name */
    struct buffer text, pairs;
    size_t *pair_first; /* offsets into PAIRS */
    size_t pair_capacity;
};

/* --- Labels as text ----------------------------------------------------------------------------------------------- */

static int compare_pairs(const void *left, const void *right, void *pairs)
{
    const char *texts = pairs;
    return strcmp(texts + *(const size_t *)left, texts + *(const size_t *)right);
}

static bool is_text(const struct sample_label *label)
{
    return !label->is_number && strcmp(label->key, DIFF_BASE_LABEL) != 0;
}

static bool is_shown_number(const struct sample_label *label)
{
    return label->is_number && strcmp(label->key, "bytes") == 0;
}

/* The texts of the labels at hand, sorted and joined; 0: there are none, or no memory. */
static uint32_t joined_texts(struct computation *all)
{
    size_t count = 0;
    buffer_clear(&all->text);
    buffer_clear(&all->pairs);
    if (!array_reserve(&all->pair_first, &all->pair_capacity, all->labels.count, sizeof(*all->pair_first), SIZE_MAX))
        all->text.failed = true;
    for (uint32_t i = 0; i < all->labels.count && !all->text.failed; i++) {
        const struct sample_label *label = &all->labels.items[i];
        if (!is_text(label)) continue;
        all->pair_first[count++] = all->pairs.size;
        buffer_append_text(&all->pairs, label->key);
        buffer_append_byte(&all->pairs, ':');
        buffer_append_text(&all->pairs, label->text);
        buffer_append_byte(&all->pairs, '\0');
        all->text.failed |= all->pairs.failed;
    }
    if (all->text.failed) return 0;
    if (count > 1) qsort_r(all->pair_first, count, sizeof(*all->pair_first), compare_pairs, all->pairs.data);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) buffer_append_text(&all->text, "\\n");
        buffer_append_text(&all->text, (const char *)all->pairs.data + all->pair_first[i]);
    }
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

/* Adds the current group to the node of MARK: once for its texts and once for each of its numbers. */
static bool add_to_node(struct computation *all, size_t mark, uint32_t texts)
{
    const struct mark_sums *sums = &all->sums[mark];
    struct node_tag tag = {.node = all->marked[mark],
                           .texts = texts,
                           .flat = sums->flat,
                           .cum = sums->cum,
                           .flat_div = sums->flat_div,
                           .cum_div = sums->cum_div};
    if (texts != 0 && !add_tag(all, &tag)) return false;
    for (uint32_t i = 0; i < all->labels.count; i++) {
        const struct sample_label *label = &all->labels.items[i];
        if (!is_shown_number(label)) continue;
        tag.number = label->number;
        tag.name = all->names[i];
        if (!add_tag(all, &tag)) return false;
    }
    return true;
}

static bool has_tags(const struct computation *all)
{
    for (uint32_t i = 0; i < all->labels.count; i++) {
        const struct sample_label *label = &all->labels.items[i];
        if (is_text(label) || is_shown_number(label)) return true;
    }
    return false;
}

static void add_sample(struct computation *all, size_t sample)
{
    const struct graph_source *source = all->source;
    const struct profile *profile = source->profile;
    const int64_t *values = profile_sample_values(profile, sample);
    int64_t value = values[source->choice.index], divisor = source->choice.is_mean ? values[0] : 0;
    if (value == 0 && divisor == 0) return;
    uint32_t run = ranked_bits_rank(&source->stacks.ends, profile->samples.stack[sample].index);
    const struct stack_marks *marks = &all->marks.items[run];
    for (size_t word = 0; word < GRAPH_MARK_WORDS; word++) {
        for (uint64_t bits = marks->through[word]; bits != 0; bits &= bits - 1) {
            struct mark_sums *sums = &all->sums[64 * word + (size_t)__builtin_ctzll(bits)];
            sums->cum = profile_add_values(sums->cum, value);
            sums->cum_div = profile_add_values(sums->cum_div, divisor);
            sums->is_touched = true;
        }
    }
    if (marks->flat_mark == 0) return;
    struct mark_sums *sums = &all->sums[marks->flat_mark - 1];
    sums->flat = profile_add_values(sums->flat, value);
    sums->flat_div = profile_add_values(sums->flat_div, divisor);
}

static bool name_numbers(struct computation *all)
{
    if (!array_reserve(&all->names, &all->name_capacity, all->labels.count, sizeof(*all->names), SIZE_MAX))
        return false;
    for (uint32_t i = 0; i < all->labels.count; i++) {
        const struct sample_label *label = &all->labels.items[i];
        if (is_shown_number(label)) all->names[i] = number_name(all, label->number);
    }
    return true;
}

static void collect_labels(struct computation *all, size_t group)
{
    const struct label_group *item = &all->groups.items[group];
    sample_labels_collect(&all->labels, all->source->profile, item->labels, item->thread);
}

static bool add_group(struct computation *all, size_t group)
{
    if (all->texts[group] == NO_TAGS) return true;
    collect_labels(all, group);
    memset(all->sums, 0, all->marked_count * sizeof(*all->sums));
    for (size_t i = all->first[group]; i < all->first[group + 1]; i++) add_sample(all, all->samples[i]);
    bool is_done = name_numbers(all);
    for (size_t mark = 0; mark < all->marked_count && is_done; mark++) {
        if (all->sums[mark].is_touched) is_done = add_to_node(all, mark, all->texts[group]);
    }
    return is_done;
}

/* All groups, for as many nodes as there are marks. */
static bool add_marked(struct computation *all)
{
    for (size_t mark = 0; mark < all->marked_count; mark++)
        all->marks.mark_of_node[all->marked[mark]] = (uint32_t)mark + 1;
    bool is_done = call_graph_mark(all->graph, all->source, all->kept, &all->marks);
    for (size_t group = 0; group < all->groups.count && is_done; group++) is_done = add_group(all, group);
    for (size_t mark = 0; mark < all->marked_count; mark++) all->marks.mark_of_node[all->marked[mark]] = 0;
    return is_done;
}

/* --- Groups that can reach the cutoff ----------------------------------------------------------------------------- */

/* Returns the values of each group without their signs. NULL without memory. */
static int64_t *sum_values(const struct computation *all)
{
    const struct profile *profile = all->source->profile;
    int64_t *sums = calloc(all->groups.count + 1, sizeof(*sums));
    for (size_t i = 0; sums && i < profile->samples.count; i++) {
        int64_t *sum = &sums[all->groups.group_of_sample[i]];
        *sum = profile_add_values(*sum, magnitude_of(profile_sample_values(profile, i)[all->source->choice.index]));
    }
    return sums;
}

/* No tag of a node has more than all samples with its texts have together. */
static bool find_large_groups(struct computation *all, size_t *ret_count)
{
    size_t count = all->groups.count;
    int64_t *of_group = sum_values(all), *of_texts = NULL;
    all->texts = malloc((count + 1) * sizeof(*all->texts));
    bool has_memory = of_group && all->texts;
    for (size_t g = 0; has_memory && g < count; g++) {
        collect_labels(all, g);
        all->texts[g] = has_tags(all) ? joined_texts(all) : NO_TAGS;
    }
    if (has_memory) of_texts = calloc(all->tags->strings.strings.count + 1, sizeof(*of_texts));
    has_memory = has_memory && of_texts;
    for (size_t g = 0; has_memory && g < count; g++) {
        if (all->texts[g] == NO_TAGS) continue;
        of_texts[all->texts[g]] = profile_add_values(of_texts[all->texts[g]], of_group[g]);
    }
    *ret_count = 0;
    for (size_t g = 0; has_memory && g < count; g++) {
        if (all->texts[g] != NO_TAGS && of_texts[all->texts[g]] < all->options->cutoff) all->texts[g] = NO_TAGS;
        *ret_count += all->texts[g] != NO_TAGS;
    }
    free(of_group);
    free(of_texts);
    return has_memory;
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

/* NULL without memory. */
static bool *find_wanted(const struct computation *all)
{
    size_t count = all->source->profile->samples.count;
    bool *is_wanted = malloc(count + 1);
    for (size_t i = 0; is_wanted && i < count; i++)
        is_wanted[i] = all->texts[all->groups.group_of_sample[i]] != NO_TAGS;
    return is_wanted;
}

static bool prepare_marks(struct computation *all)
{
    all->marks.mark_of_node = calloc(all->graph->node_count + 1, sizeof(*all->marks.mark_of_node));
    all->is_wanted = find_wanted(all);
    all->marks.is_wanted = all->is_wanted;
    all->marks.items = calloc((size_t)all->source->stacks.run_count + 1, sizeof(*all->marks.items));
    return all->marks.mark_of_node && all->marks.items && all->is_wanted && order_samples(all);
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

/* Removes tags whose flat and cum are both below the cutoff. */
static void drop_small(struct graph_tags *tags, int64_t cutoff)
{
    size_t kept = 0;
    for (size_t i = 0; i < tags->count; i++) {
        const struct node_tag *tag = &tags->items[i];
        if (magnitude_of(tag->flat) >= cutoff || magnitude_of(tag->cum) >= cutoff) tags->items[kept++] = *tag;
    }
    tags->count = kept;
}

static bool sum_up(struct computation *all)
{
    struct graph_tags *tags = all->tags;
    const struct profile *profile = all->source->profile;
    size_t large_count = 0;
    bool is_done = label_groups_init(&all->groups, profile) && label_units_init(&all->units, profile) &&
                   sample_labels_init(&all->labels, profile) && find_large_groups(all, &large_count);
    if (is_done) find_unit(all);
    if (is_done && large_count > 0) is_done = prepare_marks(all);
    size_t wanted = large_count > 0 ? least(all->options->node_max, all->graph->listed_count) : 0;
    for (size_t i = 0; i < wanted && is_done; i += all->marked_count) {
        all->marked = all->graph->listed + i;
        all->marked_count = least(wanted - i, GRAPH_MARKS_MAX);
        is_done = add_marked(all);
    }
    tags->first = calloc(all->graph->node_count + 2, sizeof(*tags->first));
    if (!is_done || !tags->first || tags->strings.failed != STATUS_OK || all->text.failed) return false;
    drop_small(tags, all->options->cutoff);
    if (tags->count > 1) qsort(tags->items, tags->count, sizeof(*tags->items), compare_tags);
    memset(tags->first, 0, (all->graph->node_count + 1) * sizeof(*tags->first));
    for (size_t i = 0; i < tags->count; i++) tags->first[tags->items[i].node + 1]++;
    for (size_t n = 1; n <= all->graph->node_count; n++) tags->first[n] += tags->first[n - 1];
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
                              .text = {.maximum = SIZE_MAX},
                              .pairs = {.maximum = SIZE_MAX}};
    *tags = (struct graph_tags){0};
    profile_init(&tags->strings);
    bool is_done = sum_up(&all);
    label_groups_fini(&all.groups);
    label_units_fini(&all.units);
    sample_labels_fini(&all.labels);
    free(all.samples);
    free(all.first);
    free(all.texts);
    free(all.is_wanted);
    free(all.pair_first);
    free(all.names);
    free(all.marks.mark_of_node);
    free(all.marks.items);
    index_table_fini(&all.index);
    buffer_fini(&all.text);
    buffer_fini(&all.pairs);
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

size_t graph_tags_count_flat(const struct graph_tags *tags, uint32_t node)
{
    size_t count = 0;
    for (uint32_t i = tags->first[node]; i < tags->first[node + 1]; i++) count += tags->items[i].flat != 0;
    return count;
}
