/* SPDX-License-Identifier: MIT */
#include "store/rollup_values.h"

#include "base/clocks.h"
#include "base/cursor.h"
#include "base/leb128.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t LEVEL_NS[LEVELS] = {
    [LEVEL_10_MINUTES] = 600 * SECOND_NS, [LEVEL_HOUR] = 3600 * SECOND_NS, [LEVEL_DAY] = DAY_NS};

uint64_t rollup_level_start(int level, uint64_t time_ns)
{
    if (time_ns > INT64_MAX) time_ns = INT64_MAX; /* as it is stored */
    return time_ns - time_ns % LEVEL_NS[level];
}

uint64_t rollup_level_end(int level, uint64_t start_ns)
{
    return start_ns + LEVEL_NS[level];
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/* Makes room for NODE_COUNT nodes at least; false without memory, or if the rollup has another number of values. */
static bool rollup_room(struct rollup_values *rollup, size_t node_count, size_t value_count)
{
    if (rollup->value_count && rollup->value_count != value_count) return false;
    rollup->value_count = value_count;
    if (node_count <= rollup->node_count) return true;
    uint64_t *grown = realloc(rollup->values, node_count * value_count * sizeof(*grown));
    if (!grown) return false;
    (void)memset(grown + rollup->node_count * value_count, 0,
                 (node_count - rollup->node_count) * value_count * sizeof(*grown));
    rollup->values = grown;
    rollup->node_count = node_count;
    return true;
}

void rollup_encode_values(const struct rollup_values *rollup, struct buffer *out)
{
    size_t before = 0;
    leb128_append(out, rollup->value_count);
    for (size_t node = 0; node < rollup->node_count; node++) {
        const uint64_t *values = rollup->values + node * rollup->value_count;
        if (!store_has_values(values, rollup->value_count)) continue;
        leb128_append(out, node - before);
        for (size_t i = 0; i < rollup->value_count; i++) leb128_append(out, values[i]);
        before = node;
    }
}

bool rollup_add_entries(struct rollup_values *rollup, struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    size_t value_count = cursor_uleb128(&cursor);
    if (value_count == 0 || value_count > STORE_ROLLUP_VALUES_MAX || !rollup_room(rollup, 1, value_count)) return false;
    for (uint64_t node = 0; !cursor_at_end(&cursor);) {
        node += cursor_uleb128(&cursor);
        if (node >= DICTIONARY_NODES_MAX) return false;
        if (node >= rollup->node_count && !rollup_room(rollup, node + node / 2 + 64, value_count)) return false;
        uint64_t *values = rollup->values + node * value_count;
        for (size_t i = 0; i < value_count; i++) {
            uint64_t value = cursor_uleb128(&cursor);
            if (value > INT64_MAX) return false;
            values[i] = values[i] > (uint64_t)INT64_MAX - value ? (uint64_t)INT64_MAX : values[i] + value;
        }
    }
    return !cursor.failed;
}

void rollup_values_fini(struct rollup_values *rollup)
{
    free(rollup->values);
    *rollup = (struct rollup_values){0};
}

struct numbered {
    uint32_t node, place; /* number in the dictionary; index in the chunk's rollup */
};

static int compare_nodes(const void *a, const void *b)
{
    const struct numbered *left = a, *right = b;
    return (left->node > right->node) - (left->node < right->node);
}

bool rollup_encode_entries(const struct store_rollup *rollup, const uint32_t *nodes, struct buffer *out)
{
    struct numbered *order = calloc(rollup->node_count + 1, sizeof(*order));
    size_t count = 0, before = 0;
    for (size_t i = 0; order && i < rollup->node_count; i++) {
        if (store_has_values(rollup->values + i * rollup->value_count, rollup->value_count))
            order[count++] = (struct numbered){nodes[i], (uint32_t)i};
    }
    if (order) qsort(order, count, sizeof(*order), compare_nodes);
    leb128_append(out, rollup->value_count);
    for (size_t i = 0; i < count; i++) { /* equal nodes may follow each other: their distance is 0 */
        leb128_append(out, order[i].node - before);
        for (size_t k = 0; k < rollup->value_count; k++)
            leb128_append(out, rollup->values[order[i].place * rollup->value_count + k]);
        before = order[i].node;
    }
    free(order);
    return order && !out->failed;
}

/* --- Stacks with values ------------------------------------------------------------------------------------------- */

/* The part of a dictionary that has values, numbered again. */
struct part {
    uint32_t *nodes, *frames; /* index: number in the dictionary; value: 1 + the number in the part */
    struct store_node *part_nodes;
    struct slice *part_frames;
    uint64_t *values;
    struct store_rollup rollup;
};

static void mark_nodes(struct part *part, const struct stack_dictionary *dictionary, const struct rollup_values *values)
{
    size_t count = dictionary->node_count < values->node_count ? dictionary->node_count : values->node_count;
    for (size_t node = count; node-- > 1;) {
        bool has_values = store_has_values(values->values + node * values->value_count, values->value_count);
        if (part->nodes[node] || has_values) part->nodes[node] = part->nodes[dictionary->nodes[node].parent] = 1;
    }
}

static void fill_part(struct part *part, const struct stack_dictionary *dictionary, const struct rollup_values *values)
{
    size_t value_count = values->value_count;
    part->nodes[0] = 1;
    for (size_t node = 0; node < dictionary->node_count || node == 0; node++) {
        if (!part->nodes[node]) continue;
        size_t number = part->rollup.node_count++;
        part->nodes[node] = (uint32_t)number + 1;
        if (node > 0) {
            uint32_t frame = dictionary->nodes[node].frame;
            if (part->frames[frame] == 0) {
                part->part_frames[part->rollup.frame_count++] = stack_dictionary_frame(dictionary, frame);
                part->frames[frame] = (uint32_t)part->rollup.frame_count;
            }
            part->part_nodes[number] =
                (struct store_node){part->nodes[dictionary->nodes[node].parent] - 1, part->frames[frame] - 1};
        }
        if (node < values->node_count)
            (void)memcpy(part->values + number * value_count, values->values + node * value_count,
                         value_count * sizeof(uint64_t));
    }
    part->rollup.nodes = part->part_nodes;
    part->rollup.frames = part->part_frames;
    part->rollup.values = part->values;
    part->rollup.value_count = value_count;
}

enum status rollup_give(const struct stack_dictionary *dictionary, const struct rollup_values *values,
                        const struct store_rollup *whole, struct rollup_receiver *receiver, struct error *error)
{
    size_t count = dictionary->node_count + 1, frames = dictionary->frame_count + 1;
    enum status status = STATUS_OK;
    size_t known = dictionary->node_count ? dictionary->node_count : 1;
    if (values->node_count > known && store_has_values(values->values + known * values->value_count,
                                                       (values->node_count - known) * values->value_count))
        return error_set(error, STATUS_MALFORMED, 0, "a sum has stacks that are not there");
    struct part part = {.nodes = calloc(count, sizeof(*part.nodes)),
                        .frames = calloc(frames, sizeof(*part.frames)),
                        .part_nodes = calloc(count, sizeof(*part.part_nodes)),
                        .part_frames = calloc(frames, sizeof(*part.part_frames)),
                        .values = calloc(count * values->value_count, sizeof(*part.values))};
    if (part.nodes && part.frames && part.part_nodes && part.part_frames && part.values) {
        mark_nodes(&part, dictionary, values);
        fill_part(&part, dictionary, values);
        part.rollup.header = whole->header;
        part.rollup.labels = whole->labels;
        part.rollup.first_ns = whole->first_ns;
        part.rollup.last_ns = whole->last_ns;
        receiver->continues = receiver->visit(receiver->context, &part.rollup);
    } else {
        status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to add sums");
    }
    free(part.nodes);
    free(part.frames);
    free(part.part_nodes);
    free(part.part_frames);
    free(part.values);
    return status;
}
