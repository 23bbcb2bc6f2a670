/* SPDX-License-Identifier: MIT */
#include "base/clean_path.h"

/* Returns where the last part of what is at FIRST of OUT begins. */
static size_t last_part(const struct buffer *out, size_t first)
{
    size_t at = out->size;
    while (at > first && out->data[at - 1] != '/') at--;
    return at;
}

static bool is_parent(const struct buffer *out, size_t at)
{
    return out->size - at == 2 && out->data[at] == '.' && out->data[at + 1] == '.';
}

static void append_part(struct buffer *out, size_t first, struct slice part, bool is_absolute)
{
    if (part.size == 0 || slice_equals_text(part, ".")) return;
    size_t last = last_part(out, first);
    if (slice_equals_text(part, "..")) {
        if (out->size > first && !is_parent(out, last)) {
            out->size = last > first ? last - 1 : first;
            return;
        }
        if (is_absolute) return;
    }
    if (out->size > first) buffer_append_byte(out, '/');
    buffer_append(out, part.data, part.size);
}

void clean_path_append(struct buffer *out, struct slice path)
{
    bool is_absolute = path.size > 0 && path.data[0] == '/';
    size_t start = out->size;
    if (is_absolute) buffer_append_byte(out, '/');
    size_t first = out->size, at = 0;
    while (at < path.size && !out->failed) {
        const uint8_t *slash = memchr(path.data + at, '/', path.size - at);
        size_t end = slash ? (size_t)(slash - path.data) : path.size;
        append_part(out, first, slice_of(path.data + at, end - at), is_absolute);
        at = end + 1;
    }
    if (out->size == start && !out->failed) buffer_append_byte(out, '.');
}
