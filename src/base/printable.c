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

bool printable_is(struct slice text)
{
    size_t skip;
    for (size_t i = 0; i < text.size;) {
        if (text.data[i] >= 0x20 && text.data[i] < 0x7F) { /* nearly all */
            i++;
        } else {
            if (printable_size(slice_of(text.data + i, text.size - i), &skip) == 0) return false;
            i += skip;
        }
    }
    return true;
}

/* Appends the escape of the character, or of the byte that is not UTF-8, at the front of TEXT, which has SIZE bytes. */
static void append_escape(struct buffer *out, struct slice text, size_t size)
{
    bool is_character = utf8_sequence_size(text.data, text.data + text.size) == size && size > 1;
    uint32_t code = is_character ? utf8_code_point(text.data, size) : text.data[0];
    buffer_append_format(out, !is_character ? "\\x%02x" : code > 0xFFFF ? "\\U%08x" : "\\u%04x", code);
}

void printable_append(struct buffer *out, struct slice text, const char *kept)
{
    size_t begin = 0, skip;
    for (size_t i = 0; i < text.size; i += skip) {
        struct slice rest = slice_of(text.data + i, text.size - i);
        bool is_kept = rest.data[0] != '\0' && rest.data[0] < 0x20 && strchr(kept, rest.data[0]);
        if (printable_size(rest, &skip) > 0 || is_kept) continue;
        buffer_append(out, text.data + begin, i - begin);
        append_escape(out, rest, skip);
        begin = i + skip;
    }
    buffer_append(out, text.data + begin, text.size - begin);
}
