/* SPDX-License-Identifier: MIT */
#include "interpreters/cut_text.h"

#include "base/utf8.h"

#include <string.h>

void text_append_cut(char *text, size_t text_size, struct slice bytes, uint64_t length)
{
    static const char more[] = "…";
    size_t at = strlen(text), end = text_size - sizeof(more), i = 0;
    while (i < bytes.size) {
        size_t size = utf8_sequence_size(bytes.data + i, bytes.data + bytes.size), taken = size ? size : 1;
        if (at + taken > end) break;
        memcpy(text + at, size ? (const char *)bytes.data + i : "?", taken);
        at += taken;
        i += taken;
    }
    memcpy(text + at, more, i < length ? sizeof(more) : 0);
    if (i == length) text[at] = '\0';
}
