/* SPDX-License-Identifier: MIT */
#include "base/printable.h"

#include "base/utf8.h"

/* Unicode 15: Cc, the marks of direction (Bidi_Control), line and paragraph separators, tags, and the byte order mark.
 */
static bool is_dangerous(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x061C ||
           (character >= 0x200E && character <= 0x200F) || (character >= 0x2028 && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069) || character == 0xFEFF ||
           (character >= 0xE0000 && character <= 0xE007F);
}

size_t printable_size(struct slice text, size_t *ret_skip)
{
    size_t size = utf8_sequence_size(text.data, text.data + text.size);
    *ret_skip = size > 0 ? size : 1;
    return size > 0 && !is_dangerous(utf8_code_point(text.data, size)) ? size : 0;
}

size_t printable_replace(char *text, size_t size, bool keeps_lines)
{
    size_t out = 0;
    for (size_t i = 0; i < size;) {
        size_t skip, shown = printable_size(slice_of(text + i, size - i), &skip);
        if (shown > 0) {
            memmove(text + out, text + i, shown);
            out += shown;
        } else {
            text[out++] = text[i] == '\n' && keeps_lines ? '\n' : '?';
        }
        i += skip;
    }
    return out;
}
