/* SPDX-License-Identifier: MIT */
#include "base/clean_path.h"

/* Appends PART to the clean path that begins at FIRST of OUT. */
static void append_part(struct buffer *out, size_t first, struct slice part, bool is_absolute)
{
    if (part.size == 0 || slice_equals_text(part, ".")) return;
    if (slice_equals_text(part, "..")) {
        size_t last = out->size; /* start of the last part */
        while (last > first && out->data[last - 1] != '/') last--;
        if (out->size > first && !slice_equals_text(slice_of(out->data + last, out->size - last), "..")) {
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
