/* Small helpers of the text reports.  SPDX-License-Identifier: MIT */
#include "report/text.h"

void append_printable(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        buffer_append_byte(out, byte < 0x20 || byte == 0x7f ? '?' : byte);
    }
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
