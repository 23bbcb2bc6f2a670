/* Small helpers of the text reports.  SPDX-License-Identifier: MIT */
#include "report/text.h"

static bool is_control(uint8_t byte)
{
    return byte < 0x20 || byte == 0x7f;
}

void append_printable(struct buffer *out, const char *text)
{
    for (; *text; text++) buffer_append_byte(out, is_control((uint8_t)*text) ? '?' : (uint8_t)*text);
}

void make_printable(struct buffer *lines)
{
    for (size_t i = 0; i < lines->size; i++) {
        if (is_control(lines->data[i]) && lines->data[i] != '\n') lines->data[i] = '?';
    }
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
