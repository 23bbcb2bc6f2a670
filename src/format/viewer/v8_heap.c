/* Reads V8's sampling heap profiles (the .heapprofile of Chrome's DevTools and of node --heap-prof): a tree of
 * functions, each with what it allocated itself, and the sampled allocations. Values are objects/count, the sampled
 * allocations, and space/bytes, what V8 estimates that they hold. "(root)" is left out.  SPDX-License-Identifier: MIT
 */
#include "base/array.h"
#include "base/hash.h"
#include "base/json_reader.h"
#include "format/common/format_ops.h"

#include <stdlib.h>

enum { V8_HEAP_DEPTH_MAX = 400 }; /* frames of a stack; V8 records at most 128 */

struct node {
    struct stack_id stack;
    uint64_t id;
    int64_t size, samples;
};

struct decoder {
    struct json_reader reader;
    struct profile *profile;
    INDEXED_ARRAY_OF(struct node) nodes;
};

static bool has_id(const void *context, uint32_t index, const void *key)
{
    return ((const struct decoder *)context)->nodes.items[index].id == *(const uint64_t *)key;
}

static uint32_t find_node(const struct decoder *decoder, uint64_t id)
{
    return index_table_find(&decoder->nodes.index, hash_mix(0, id), has_id, decoder, &id);
}

/* Lines and columns count from 0; -1 is not known. */
static int64_t read_place(struct json_reader *reader)
{
    double number = json_double(reader);
    return number >= 0 && number < INT32_MAX ? (int64_t)number + 1 : 0;
}

static struct stack_id read_call_frame(struct decoder *decoder, struct stack_id parent)
{
    struct profile *profile = decoder->profile;
    struct json_reader *reader = &decoder->reader;
    struct function function = {0};
    struct line line = {0};
    struct slice name;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        if (slice_equals_text(name, "functionName"))
            function.name = profile_string(profile, json_string(reader));
        else if (slice_equals_text(name, "url"))
            function.file_name = profile_string(profile, json_string(reader));
        else if (slice_equals_text(name, "lineNumber"))
            line.line = read_place(reader);
        else if (slice_equals_text(name, "columnNumber"))
            line.column = read_place(reader);
        else
            json_skip(reader);
    }
    if (slice_equals_text(profile_slice(profile, function.name), "(root)")) return parent;
    if (function.name.index == 0) function.name = profile_text(profile, "(anonymous)");
    line.function = profile_add_function(profile, &function);
    return profile_add_stack(profile, parent, profile_add_location(profile, &(struct location){0}, &line, 1));
}

/* The children may come before the frame that they are called from: It must come first, as V8 writes it. */
static void read_node(struct decoder *decoder, struct stack_id parent, int depth)
{
    struct json_reader *reader = &decoder->reader;
    struct node node = {.stack = parent};
    bool has_frame = false;
    struct slice name;
    if (depth > V8_HEAP_DEPTH_MAX) json_reader_reject(reader, STATUS_TOO_LARGE, "a stack of more than 400 frames");
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        if (slice_equals_text(name, "callFrame")) {
            node.stack = read_call_frame(decoder, parent);
            has_frame = true;
        } else if (slice_equals_text(name, "selfSize")) {
            double size = json_double(reader);
            node.size = size > 0 && size < 0x1p62 ? (int64_t)size : 0;
        } else if (slice_equals_text(name, "id")) {
            node.id = json_u64(reader);
        } else if (slice_equals_text(name, "children")) {
            if (!has_frame)
                json_reader_reject(reader, STATUS_UNSUPPORTED, "children before the frame that called them");
            json_array_begin(reader);
            while (json_array_next(reader)) read_node(decoder, node.stack, depth + 1);
        } else {
            json_skip(reader);
        }
    }
    if (reader->failed) return;
    size_t count = decoder->nodes.count;
    bool is_new = node.id != 0 && find_node(decoder, node.id) == INDEX_NONE;
    if (!ARRAY_PUSH(&decoder->nodes, PROFILE_ENTITIES_MAX, node) ||
        (is_new && !index_table_add(&decoder->nodes.index, hash_mix(0, node.id), (uint32_t)count)))
        json_reader_reject(reader, STATUS_NO_MEMORY, "no memory for the nodes");
}

/* {"size":16,"nodeId":7,"ordinal":3}: COUNT allocations of one size. */
static void read_samples(struct decoder *decoder)
{
    struct json_reader *reader = &decoder->reader;
    json_array_begin(reader);
    while (json_array_next(reader)) {
        struct slice name;
        uint32_t node = INDEX_NONE;
        json_object_begin(reader);
        while (json_object_next(reader, &name)) {
            if (slice_equals_text(name, "nodeId"))
                node = find_node(decoder, json_u64(reader));
            else
                json_skip(reader);
        }
        if (node != INDEX_NONE) decoder->nodes.items[node].samples++;
    }
}

static void add_samples(struct decoder *decoder)
{
    for (size_t i = 0; i < decoder->nodes.count; i++) {
        const struct node *node = &decoder->nodes.items[i];
        int64_t values[] = {node->samples, node->size};
        if (node->size || node->samples)
            profile_add_sample(decoder->profile, &(struct sample){.stack = node->stack}, values);
    }
}

static bool v8_heap_detect(struct slice bytes)
{
    enum { BYTES_LOOKED_AT = 4096 };
    struct json_reader reader;
    struct slice name, front = slice_of(bytes.data, bytes.size < BYTES_LOOKED_AT ? bytes.size : BYTES_LOOKED_AT);
    json_reader_init(&reader, bytes);
    json_object_begin(&reader);
    bool is_head = json_object_next(&reader, &name) && slice_equals_text(name, "head");
    json_reader_fini(&reader);
    return is_head && memmem(front.data, front.size, "\"selfSize\"", 10) &&
           memmem(front.data, front.size, "\"callFrame\"", 11);
}

static enum status v8_heap_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.profile = profile};
    struct json_reader *reader = &decoder.reader;
    struct slice name;
    if (!v8_heap_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a heap profile of V8");
    profile_add_value_type(profile, "objects", "count");
    profile_add_value_type(profile, "space", "bytes");
    profile->platform = profile_text(profile, "javascript");
    json_reader_init(reader, bytes);
    reader->depth_max = 2 * V8_HEAP_DEPTH_MAX + 16;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        if (slice_equals_text(name, "head"))
            read_node(&decoder, (struct stack_id){0}, 0);
        else if (slice_equals_text(name, "samples"))
            read_samples(&decoder);
        else
            json_skip(reader);
    }
    enum status status = json_reader_finish(reader, error);
    if (status == STATUS_OK) add_samples(&decoder);
    json_reader_fini(reader);
    free(decoder.nodes.items);
    index_table_fini(&decoder.nodes.index);
    return status == STATUS_OK ? profile_failed(profile, error) : status;
}

const struct format format_v8_heap = {
    .name = "v8-heap",
    .suffixes = {".heapprofile"},
    .detect = v8_heap_detect,
    .decode = v8_heap_decode,
};
