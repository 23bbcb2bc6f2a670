/* SPDX-License-Identifier: MIT */
#include "report/xml_text.h"

#include "base/printable.h"

static void append_character(struct buffer *out, const uint8_t *bytes, size_t size)
{
    /* U+FFFE and U+FFFF are valid UTF-8, but no characters of XML. */
    bool is_noncharacter = size == 3 && bytes[0] == 0xEF && bytes[1] == 0xBF && bytes[2] >= 0xBE;
    const char *entity = size != 1          ? NULL
                         : bytes[0] == '&'  ? "&amp;"
                         : bytes[0] == '<'  ? "&lt;"
                         : bytes[0] == '>'  ? "&gt;"
                         : bytes[0] == '"'  ? "&quot;"
                         : bytes[0] == '\'' ? "&#39;"
                                            : NULL;
    if (entity)
        buffer_append_text(out, entity);
    else if (size > 0 && !is_noncharacter)
        buffer_append(out, bytes, size);
    else
        buffer_append_byte(out, '?');
}

static size_t next_character(struct slice text, size_t at, size_t *ret_size)
{
    size_t skip;
    *ret_size = printable_size(slice_of(text.data + at, text.size - at), &skip);
    return at + skip;
}

void append_xml(struct buffer *out, struct slice text, size_t maximum)
{
    size_t count = 0, size, at;
    for (at = 0; at < text.size && count <= maximum; count++) at = next_character(text, at, &size);
    size_t shown = count > maximum ? maximum - 1 : count;
    at = 0;
    for (size_t i = 0; i < shown; i++) {
        const uint8_t *bytes = text.data + at;
        at = next_character(text, at, &size);
        append_character(out, bytes, size);
    }
    if (shown < count) buffer_append_text(out, "…");
}
