/* What is written is the frames with their sizes and the nodes as (distance to the parent, frame), in LEB128.
 * SPDX-License-Identifier: MIT */
#include "store/space.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/leb128.h"

#include <stdlib.h>
#include <string.h>

void space_fini(struct space *space)
{
    buffer_fini(&space->text);
    free(space->ends);
    free(space->nodes);
    index_table_fini(&space->frame_index);
    index_table_fini(&space->node_index);
    *space = (struct space){0};
}

struct slice space_frame(const struct space *space, uint32_t frame)
{
    uint32_t start = frame ? space->ends[frame - 1] : 0;
    return slice_of(space->text.data + start, space->ends[frame] - start);
}

size_t space_bytes(const struct space *space)
{
    return space->text.capacity + space->frame_capacity * sizeof(*space->ends) +
           space->node_capacity * sizeof(*space->nodes) +
           ((size_t)space->frame_index.capacity + space->node_index.capacity) * sizeof(struct index_slot);
}

/* --- Numbers --------------------------------------------------------------------------------------------------------
 */

static bool frame_equals(const void *context, uint32_t index, const void *key)
{
    return slice_equal(space_frame(context, index), *(const struct slice *)key);
}

static bool node_equals(const void *context, uint32_t index, const void *key)
{
    const struct space *space = context;
    const struct store_node *node = key;
    return space->nodes[index].parent == node->parent && space->nodes[index].frame == node->frame;
}

static uint64_t hash_node(struct store_node node)
{
    return hash_mix(node.parent, node.frame);
}

static bool append_frame(struct space *space, struct slice bytes)
{
    space->text.maximum = SPACE_TEXT_MAX;
    if (!array_reserve(&space->ends, &space->frame_capacity, space->frame_count + 1, sizeof(*space->ends),
                       SPACE_FRAMES_MAX))
        return false;
    buffer_append(&space->text, bytes.data, bytes.size);
    if (space->text.failed) return false;
    space->ends[space->frame_count++] = (uint32_t)space->text.size;
    return true;
}

static bool append_node(struct space *space, struct store_node node)
{
    if (!array_reserve(&space->nodes, &space->node_capacity, space->node_count + 2, sizeof(*space->nodes),
                       SPACE_NODES_MAX))
        return false;
    if (space->node_count == 0) space->nodes[space->node_count++] = (struct store_node){0};
    space->nodes[space->node_count++] = node;
    return true;
}

static bool index_frame(struct space *space, uint32_t frame)
{
    struct slice bytes = space_frame(space, frame);
    return index_table_add(&space->frame_index, hash_bytes(bytes.data, bytes.size), frame);
}

static bool index_node(struct space *space, uint32_t node)
{
    return index_table_add(&space->node_index, hash_node(space->nodes[node]), node);
}

static bool number_frame(struct space *space, struct slice bytes, uint32_t *ret_frame)
{
    *ret_frame = index_table_find(&space->frame_index, hash_bytes(bytes.data, bytes.size), frame_equals, space, &bytes);
    if (*ret_frame != INDEX_NONE) return true;
    *ret_frame = (uint32_t)space->frame_count;
    return append_frame(space, bytes) && index_frame(space, *ret_frame);
}

static bool number_node(struct space *space, struct store_node node, uint32_t *ret_node)
{
    *ret_node = index_table_find(&space->node_index, hash_node(node), node_equals, space, &node);
    if (*ret_node != INDEX_NONE) return true;
    if (!append_node(space, node)) return false;
    *ret_node = (uint32_t)space->node_count - 1;
    return index_node(space, *ret_node);
}

bool space_number(struct space *space, const struct store_sum *sum, uint32_t *ret_nodes)
{
    uint32_t *frames = calloc(sum->frame_count + 1, sizeof(*frames));
    bool is_fine = frames != NULL;
    for (size_t i = 0; i < sum->frame_count && is_fine; i++) is_fine = number_frame(space, sum->frames[i], &frames[i]);
    ret_nodes[0] = 0;
    for (size_t i = 1; i < sum->node_count && is_fine; i++) {
        const struct store_node *node = &sum->nodes[i];
        is_fine = number_node(space, (struct store_node){ret_nodes[node->parent], frames[node->frame]}, &ret_nodes[i]);
    }
    free(frames);
    return is_fine;
}

/* --- Bytes ----------------------------------------------------------------------------------------------------------
 */

void space_write(const struct space *space, size_t frame, size_t node, struct buffer *out)
{
    if (node == 0) node = 1; /* the empty stack is in each space */
    leb128_append(out, space->frame_count - frame);
    for (; frame < space->frame_count; frame++) {
        struct slice bytes = space_frame(space, (uint32_t)frame);
        leb128_append(out, bytes.size);
        buffer_append(out, bytes.data, bytes.size);
    }
    leb128_append(out, space->node_count > node ? space->node_count - node : 0);
    for (; node < space->node_count; node++) {
        leb128_append(out, node - space->nodes[node].parent);
        leb128_append(out, space->nodes[node].frame);
    }
}

static bool read_node(struct space *space, struct cursor *cursor)
{
    uint64_t number = space->node_count ? space->node_count : 1;
    uint64_t distance = cursor_uleb128(cursor), frame = cursor_uleb128(cursor);
    if (cursor->failed || distance == 0 || distance > number || frame >= space->frame_count) return false;
    return append_node(space, (struct store_node){(uint32_t)(number - distance), (uint32_t)frame});
}

bool space_read(struct space *space, struct slice bytes, bool is_indexed)
{
    struct cursor cursor = cursor_of(bytes);
    bool is_fine = true;
    uint64_t frames = cursor_uleb128(&cursor);
    for (uint64_t i = 0; i < frames && is_fine; i++) {
        struct slice frame = cursor_take(&cursor, cursor_uleb128(&cursor));
        is_fine = !cursor.failed && append_frame(space, frame) &&
                  (!is_indexed || index_frame(space, (uint32_t)space->frame_count - 1));
    }
    uint64_t nodes = cursor_uleb128(&cursor);
    for (uint64_t i = 0; i < nodes && is_fine; i++)
        is_fine = read_node(space, &cursor) && (!is_indexed || index_node(space, (uint32_t)space->node_count - 1));
    return is_fine && !cursor.failed && cursor_at_end(&cursor);
}
