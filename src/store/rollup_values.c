/* SPDX-License-Identifier: MIT */
#include "store/rollup_values.h"

#include "base/clocks.h"
#include "base/cursor.h"
#include "base/leb128.h"
#include "store/running_values.h"

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

/* The first number of entries: the number of values, of those that grow since a start, and whether they have increases.
 */
enum { HEAD_COUNT = 0xF, HEAD_RUNNING_SHIFT = 4, HEAD_HAS_INCREASES = 1 << 8, HEAD_END = 1 << 9 };

/* Makes ROLLUP one whose first COUNT values grow since a start; false if it is another one, or without memory. */
static bool rollup_running(struct rollup_values *rollup, size_t count)
{
    if (count > 0 && !rollup->running && rollup->node_count <= 1 &&
        (rollup->running = calloc(1, sizeof(*rollup->running))))
        rollup->running->count = count;
    return count == (rollup->running ? rollup->running->count : 0);
}

/* COUNT first or last values of NODE, which may be one that VALUES has not. */
static void copy_running(const struct running_values *running, const uint64_t *values, size_t node,
                         uint64_t *ret_values)
{
    for (size_t i = 0; i < running->count; i++)
        ret_values[i] = node < running->node_count ? values[node * running->count + i] : 0;
}

static bool node_has_values(const struct rollup_values *rollup, size_t node)
{
    const struct running_values *running = rollup->running;
    if (store_has_values(rollup->values + node * rollup->value_count, rollup->value_count)) return true;
    return running && node < running->node_count &&
           (store_has_values(running->first + node * running->count, running->count) ||
            store_has_values(running->last + node * running->count, running->count));
}

void rollup_encode_values(const struct rollup_values *rollup, struct buffer *out)
{
    size_t before = 0, running_count = rollup->running ? rollup->running->count : 0;
    leb128_append(out, rollup->value_count | running_count << HEAD_RUNNING_SHIFT |
                           (running_count ? (size_t)HEAD_HAS_INCREASES : 0));
    if (running_count) leb128_append(out, rollup->running->restart_count);
    for (size_t node = 0; node < rollup->node_count; node++) {
        const uint64_t *values = rollup->values + node * rollup->value_count;
        uint64_t first[STORE_ROLLUP_VALUES_MAX], last[STORE_ROLLUP_VALUES_MAX];
        if (!node_has_values(rollup, node)) continue;
        leb128_append(out, node - before);
        if (running_count) {
            copy_running(rollup->running, rollup->running->first, node, first);
            copy_running(rollup->running, rollup->running->last, node, last);
        }
        for (size_t i = 0; i < running_count; i++) {
            leb128_append(out, first[i]);
            leb128_append(out, values[i]);
            leb128_append(out, last[i]);
        }
        for (size_t i = running_count; i < rollup->value_count; i++) leb128_append(out, values[i]);
        before = node;
    }
}

/* Reads the values of one node that grow since a start. */
static bool note_running(struct running_values *running, struct cursor *cursor, uint64_t node, bool has_increases)
{
    struct running_entry entry = {.node = (uint32_t)node};
    for (size_t i = 0; i < running->count; i++) {
        entry.first[i] = entry.last[i] = cursor_uleb128(cursor);
        if (has_increases) entry.increase[i] = cursor_uleb128(cursor);
        if (has_increases) entry.last[i] = cursor_uleb128(cursor);
        if ((entry.first[i] | entry.increase[i] | entry.last[i]) > INT64_MAX) return false;
    }
    return running_values_note(running, &entry);
}

bool rollup_add_entries(struct rollup_values *rollup, struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    uint64_t head = cursor_uleb128(&cursor);
    size_t value_count = head & HEAD_COUNT, running_count = head >> HEAD_RUNNING_SHIFT & HEAD_COUNT;
    bool has_increases = head & HEAD_HAS_INCREASES;
    if (head >= HEAD_END || value_count == 0 || value_count > STORE_ROLLUP_VALUES_MAX || running_count > value_count ||
        (has_increases && running_count == 0) || !rollup_room(rollup, 1, value_count) ||
        !rollup_running(rollup, running_count))
        return false;
    if (running_count) rollup->running->entry_count = 0; /* a damaged row may have left some */
    uint64_t restart_count = has_increases ? cursor_uleb128(&cursor) : 0;
    for (uint64_t node = 0; !cursor_at_end(&cursor);) {
        uint64_t distance = cursor_uleb128(&cursor);
        if (distance >= DICTIONARY_NODES_MAX - node) return false;
        node += distance;
        if (node >= rollup->node_count && !rollup_room(rollup, node + node / 2 + 64, value_count)) return false;
        if (running_count && !note_running(rollup->running, &cursor, node, has_increases)) return false;
        uint64_t *values = rollup->values + node * value_count;
        for (size_t i = running_count; i < value_count; i++) {
            uint64_t value = cursor_uleb128(&cursor);
            if (value > INT64_MAX) return false;
            values[i] = values[i] > (uint64_t)INT64_MAX - value ? (uint64_t)INT64_MAX : values[i] + value;
        }
    }
    if (cursor.failed) return false;
    return running_count == 0 || running_values_add(rollup->running, rollup->values, value_count, restart_count);
}

void rollup_values_fini(struct rollup_values *rollup)
{
    free(rollup->values);
    if (rollup->running) running_values_fini(rollup->running);
    free(rollup->running);
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
    leb128_append(out, rollup->value_count | rollup->running_count << HEAD_RUNNING_SHIFT);
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
    uint64_t *values, *first_values, *last_values;
    struct store_rollup rollup;
};

static void mark_nodes(struct part *part, const struct stack_dictionary *dictionary, const struct rollup_values *values)
{
    size_t count = dictionary->node_count < values->node_count ? dictionary->node_count : values->node_count;
    for (size_t node = count; node-- > 1;) {
        if (part->nodes[node] || node_has_values(values, node))
            part->nodes[node] = part->nodes[dictionary->nodes[node].parent] = 1;
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
        if (!values->running) continue;
        copy_running(values->running, values->running->first, node, part->first_values + number * value_count);
        copy_running(values->running, values->running->last, node, part->last_values + number * value_count);
    }
    part->rollup.nodes = part->part_nodes;
    part->rollup.frames = part->part_frames;
    part->rollup.values = part->values;
    part->rollup.value_count = value_count;
    if (!values->running) return;
    part->rollup.running_count = values->running->count;
    part->rollup.restart_count = values->running->restart_count;
    part->rollup.first_values = part->first_values;
    part->rollup.last_values = part->last_values;
}

enum status rollup_give(const struct stack_dictionary *dictionary, const struct rollup_values *values,
                        const struct store_rollup *whole, struct rollup_receiver *receiver, struct error *error)
{
    size_t count = dictionary->node_count + 1, frames = dictionary->frame_count + 1;
    enum status status = STATUS_OK;
    size_t known = dictionary->node_count ? dictionary->node_count : 1;
    for (size_t node = known; node < values->node_count; node++) {
        if (node_has_values(values, node))
            return error_set(error, STATUS_MALFORMED, 0, "a sum has stacks that are not there");
    }
    size_t running_values = values->running ? count * values->value_count : 1;
    struct part part = {.nodes = calloc(count, sizeof(*part.nodes)),
                        .frames = calloc(frames, sizeof(*part.frames)),
                        .part_nodes = calloc(count, sizeof(*part.part_nodes)),
                        .part_frames = calloc(frames, sizeof(*part.part_frames)),
                        .values = calloc(count * values->value_count, sizeof(*part.values)),
                        .first_values = calloc(running_values, sizeof(*part.first_values)),
                        .last_values = calloc(running_values, sizeof(*part.last_values))};
    if (part.nodes && part.frames && part.part_nodes && part.part_frames && part.values && part.first_values &&
        part.last_values) {
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
    free(part.first_values);
    free(part.last_values);
    return status;
}
