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

bool pyroscope_tree_fold(struct slice bytes, bool is_trie, struct buffer *folded)
{
    struct level *levels = calloc(PYROSCOPE_TREE_DEPTH_MAX, sizeof(*levels));
    struct cursor cursor = cursor_of(bytes);
    struct buffer path;
    size_t depth = 0;
    bool is_fine = levels != NULL;
    buffer_init(&path, PYROSCOPE_PATH_BYTES_MAX);
    do {
        struct slice name = cursor_take(&cursor, cursor_uleb128(&cursor));
        uint64_t value = cursor_uleb128(&cursor), children = cursor_uleb128(&cursor);
        is_fine = is_fine && !cursor.failed && (children == 0 || depth < PYROSCOPE_TREE_DEPTH_MAX);
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
    is_fine = is_fine && cursor_at_end(&cursor) && !path.failed && !folded->failed;
    buffer_fini(&path);
    free(levels);
    return is_fine;
}
