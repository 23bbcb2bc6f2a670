/* A node is ahead of its children: the length of its name, the name, its own value, and the number of children, each
 * number as a varint. The root has no name.  SPDX-License-Identifier: MIT */
#include "serve/pyroscope_tree.h"

#include "base/cursor.h"

#include <inttypes.h>
#include <stdlib.h>

struct level {
    uint64_t children; /* number of those that are still to be read */
    size_t path_size;
};

/* Appends NAME to PATH. A line break would end the stack. */
static void append_name(struct buffer *path, struct slice name)
{
    for (size_t i = 0; i < name.size; i++)
        buffer_append_byte(path, name.data[i] == '\n' || name.data[i] == '\r' ? ' ' : name.data[i]);
}

enum status pyroscope_tree_fold(struct slice bytes, bool is_trie, struct buffer *folded, struct error *error)
{
    struct level *levels = calloc(PYROSCOPE_TREE_DEPTH_MAX, sizeof(*levels));
    struct cursor cursor = cursor_of(bytes);
    struct buffer path;
    size_t depth = 0;
    bool is_fine = levels != NULL, is_deep = false;
    buffer_init(&path, PYROSCOPE_PATH_BYTES_MAX);
    do {
        struct slice name = cursor_take(&cursor, cursor_uleb128(&cursor));
        uint64_t value = cursor_uleb128(&cursor), children = cursor_uleb128(&cursor);
        is_deep = children > 0 && depth == PYROSCOPE_TREE_DEPTH_MAX;
        is_fine = is_fine && !cursor.failed && !is_deep;
        if (!is_fine) break;
        path.size = depth > 0 ? levels[depth - 1].path_size : 0;
        if (depth > 0) levels[depth - 1].children--;
        if (!is_trie && path.size > 0 && name.size > 0) buffer_append_byte(&path, ';');
        append_name(&path, name);
        if (value > 0) {
            buffer_append(folded, path.data, path.size);
            buffer_append_format(folded, " %" PRIu64 "\n", value);
        }
        if (children > 0) levels[depth++] = (struct level){children, path.size};
        while (depth > 0 && levels[depth - 1].children == 0) depth--;
    } while (depth > 0 && !path.failed && !folded->failed);
    bool is_long = path.is_full, lacks_memory = !levels || (path.failed && !is_long);
    buffer_fini(&path);
    free(levels);
    if (folded->is_full)
        return error_set(error, STATUS_TOO_LARGE, 0, "the stacks have over %zu bytes", folded->maximum);
    if (lacks_memory || folded->failed) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    if (is_long) return error_set(error, STATUS_TOO_LARGE, 0, "a stack has over %d bytes", PYROSCOPE_PATH_BYTES_MAX);
    if (is_deep && !cursor.failed)
        return error_set(error, STATUS_TOO_LARGE, 0, "a stack has over %d levels", PYROSCOPE_TREE_DEPTH_MAX);
    if (is_fine && cursor_at_end(&cursor)) return STATUS_OK;
    return error_set(error, STATUS_MALFORMED, 0, "the %s is damaged or cut short", is_trie ? "trie" : "tree");
}
