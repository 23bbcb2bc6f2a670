/* SPDX-License-Identifier: MIT */
#include "profile/build_id.h"

#include "base/hex.h"

bool is_build_id(struct slice text)
{
    if (text.size % 2 || text.size < 2 * BUILD_ID_PAIRS_MIN || text.size > 2 * BUILD_ID_PAIRS_MAX) return false;
    for (size_t i = 0; i < text.size; i++) {
        if (hex_digit(text.data[i]) < 0) return false;
    }
    return true;
}

/* Returns whether TEXT is short and has no character that means something in a path, on a terminal or in HTML. */
static bool is_word(struct slice text)
{
    enum { WORD_MAX = 128 };
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i], letter = byte | 0x20;
        bool is_plain = (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
        if (!is_plain) return false;
    }
    return text.size <= WORD_MAX;
}

void mapping_check_build_id(struct profile *profile, struct mapping *mapping)
{
    struct slice text = profile_slice(profile, mapping->build_id);
    if (text.size == 0) return;
    if (!is_build_id(text)) {
        if (is_word(text))
            mapping->build_text = mapping->build_id;
        else
            profile_add_omission(profile, "a build id that is not hexadecimal was left out");
        mapping->build_id = (struct string_id){0};
    } else if (!hex_is_lower(text)) {
        char lower[2 * BUILD_ID_PAIRS_MAX + 1];
        for (size_t i = 0; i < text.size; i++) lower[i] = (char)(text.data[i] | ('a' - 'A')); /* digits stay */
        mapping->build_id = profile_string(profile, slice_of(lower, text.size));
    }
}
