/* Small helpers of the text reports.  SPDX-License-Identifier: MIT */
#include "report/text.h"

#include "base/printable.h"

void append_printable(struct buffer *out, const char *text)
{
    size_t first = out->size;
    buffer_append_text(out, text);
    out->size = first + printable_replace((char *)out->data + first, out->size - first, false);
}

void make_printable(struct buffer *lines)
{
    lines->size = printable_replace((char *)lines->data, lines->size, true);
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
