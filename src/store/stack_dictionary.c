/* The bytes of a dictionary are its frames with their sizes, then its nodes as (distance to the parent, frame), in
 * LEB128. SPDX-License-Identifier: MIT */
#include "store/stack_dictionary.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/leb128.h"

#include <stdlib.h>

void stack_dictionary_fini(struct stack_dictionary *dictionary)
{
    buffer_fini(&dictionary->text);
    free(dictionary->ends);
    free(dictionary->nodes);
    index_table_fini(&dictionary->frame_index);
    index_table_fini(&dictionary->node_index);
    *dictionary = (struct stack_dictionary){0};
}

struct slice stack_dictionary_frame(const struct stack_dictionary *dictionary, uint32_t frame)
{
    uint32_t start = frame ? dictionary->ends[frame - 1] : 0;
    return slice_of(dictionary->text.data + start, dictionary->ends[frame] - start);
}

size_t stack_dictionary_bytes(const struct stack_dictionary *dictionary)
{
    return dictionary->text.capacity + dictionary->frame_capacity * sizeof(*dictionary->ends) +
           dictionary->node_capacity * sizeof(*dictionary->nodes) +
           ((size_t)dictionary->frame_index.capacity + dictionary->node_index.capacity) * sizeof(struct index_slot);
}

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

static bool frame_equals(const void *context, uint32_t index, const void *key)
{
    return slice_equal(stack_dictionary_frame(context, index), *(const struct slice *)key);
}

static bool node_equals(const void *context, uint32_t index, const void *key)
{
    const struct stack_dictionary *dictionary = context;
    const struct store_node *node = key;
    return dictionary->nodes[index].parent == node->parent && dictionary->nodes[index].frame == node->frame;
}

static uint64_t hash_node(struct store_node node)
{
    return hash_mix(node.parent, node.frame);
}

static bool append_frame(struct stack_dictionary *dictionary, struct slice bytes)
{
    dictionary->text.maximum = DICTIONARY_TEXT_MAX;
    if (!array_reserve(&dictionary->ends, &dictionary->frame_capacity, dictionary->frame_count + 1,
                       sizeof(*dictionary->ends), DICTIONARY_FRAMES_MAX))
        return false;
    buffer_append(&dictionary->text, bytes.data, bytes.size);
    if (dictionary->text.failed) return false;
    dictionary->ends[dictionary->frame_count++] = (uint32_t)dictionary->text.size;
    return true;
}

static bool append_node(struct stack_dictionary *dictionary, struct store_node node)
{
    if (!array_reserve(&dictionary->nodes, &dictionary->node_capacity, dictionary->node_count + 2,
                       sizeof(*dictionary->nodes), DICTIONARY_NODES_MAX))
        return false;
    if (dictionary->node_count == 0) dictionary->nodes[dictionary->node_count++] = (struct store_node){0};
    dictionary->nodes[dictionary->node_count++] = node;
    return true;
}

static bool index_frame(struct stack_dictionary *dictionary, uint32_t frame)
{
    struct slice bytes = stack_dictionary_frame(dictionary, frame);
    return index_table_add(&dictionary->frame_index, hash_bytes(bytes.data, bytes.size), frame);
}

static bool index_node(struct stack_dictionary *dictionary, uint32_t node)
{
    return index_table_add(&dictionary->node_index, hash_node(dictionary->nodes[node]), node);
}

bool stack_dictionary_number(struct stack_dictionary *dictionary, const struct store_rollup *rollup,
                             uint32_t *ret_nodes)
{
    uint32_t *frames = calloc(rollup->frame_count + 1, sizeof(*frames));
    bool is_fine = frames != NULL;
    for (size_t i = 0; i < rollup->frame_count && is_fine; i++) {
        struct slice bytes = rollup->frames[i];
        frames[i] = index_table_find(&dictionary->frame_index, hash_bytes(bytes.data, bytes.size), frame_equals,
                                     dictionary, &bytes);
        if (frames[i] != INDEX_NONE) continue;
        frames[i] = (uint32_t)dictionary->frame_count;
        is_fine = append_frame(dictionary, bytes) && index_frame(dictionary, frames[i]);
    }
    ret_nodes[0] = 0;
    for (size_t i = 1; i < rollup->node_count && is_fine; i++) {
        struct store_node node = {ret_nodes[rollup->nodes[i].parent], frames[rollup->nodes[i].frame]};
        ret_nodes[i] = index_table_find(&dictionary->node_index, hash_node(node), node_equals, dictionary, &node);
        if (ret_nodes[i] != INDEX_NONE) continue;
        is_fine = append_node(dictionary, node);
        ret_nodes[i] = (uint32_t)dictionary->node_count - 1;
        is_fine = is_fine && index_node(dictionary, ret_nodes[i]);
    }
    free(frames);
    return is_fine;
}

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

void stack_dictionary_write(const struct stack_dictionary *dictionary, size_t frame, size_t node, struct buffer *out)
{
    if (node == 0) node = 1; /* the empty stack is in each dictionary */
    leb128_append(out, dictionary->frame_count - frame);
    for (; frame < dictionary->frame_count; frame++) {
        struct slice bytes = stack_dictionary_frame(dictionary, (uint32_t)frame);
        leb128_append(out, bytes.size);
        buffer_append(out, bytes.data, bytes.size);
    }
    leb128_append(out, dictionary->node_count > node ? dictionary->node_count - node : 0);
    for (; node < dictionary->node_count; node++) {
        leb128_append(out, node - dictionary->nodes[node].parent);
        leb128_append(out, dictionary->nodes[node].frame);
    }
}

bool stack_dictionary_read(struct stack_dictionary *dictionary, struct slice bytes, bool is_indexed)
{
    struct cursor cursor = cursor_of(bytes);
    bool is_fine = true;
    uint64_t frames = cursor_uleb128(&cursor);
    for (uint64_t i = 0; i < frames && is_fine; i++) {
        struct slice frame = cursor_take(&cursor, cursor_uleb128(&cursor));
        is_fine = !cursor.failed && append_frame(dictionary, frame) &&
                  (!is_indexed || index_frame(dictionary, (uint32_t)dictionary->frame_count - 1));
    }
    uint64_t nodes = cursor_uleb128(&cursor);
    for (uint64_t i = 0; i < nodes && is_fine; i++) {
        uint64_t number = dictionary->node_count ? dictionary->node_count : 1;
        uint64_t distance = cursor_uleb128(&cursor), frame = cursor_uleb128(&cursor);
        struct store_node node = {(uint32_t)(number - distance), (uint32_t)frame};
        is_fine = !cursor.failed && distance > 0 && distance <= number && frame < dictionary->frame_count &&
                  append_node(dictionary, node) &&
                  (!is_indexed || index_node(dictionary, (uint32_t)dictionary->node_count - 1));
    }
    return is_fine && !cursor.failed && cursor_at_end(&cursor);
}
