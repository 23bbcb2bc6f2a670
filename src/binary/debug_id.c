/* Sentry's debug id is the build id's first 16 bytes read as a UUID of a little-endian machine: its first three fields,
 * of 4, 2 and 2 bytes, are turned round.  SPDX-License-Identifier: MIT */
#include "binary/debug_id.h"

#include "base/hex.h"
#include "base/uuid.h"

/* The byte of the build id at each place of the debug id; and the other way round, as it only exchanges. */
static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

bool debug_id_from_build_id(struct slice build_id_hex, char ret_text[DEBUG_ID_TEXT_SIZE])
{
    uint8_t bytes[16] = {0}; /* shorter ids are filled up with zeros */

    if (build_id_hex.size < 2 || build_id_hex.size % 2) return false;
    for (size_t i = 0; i < build_id_hex.size / 2; i++) {
        int byte = hex_byte(build_id_hex.data + 2 * i);
        if (byte < 0) return false;
        if (i < sizeof(bytes)) bytes[i] = (uint8_t)byte;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *ret_text++ = '-';
        ret_text = hex_write(ret_text, slice_of(&bytes[order[i]], 1));
    }
    return true;
}

bool debug_id_to_build_id(struct slice debug_id, char ret_text[BUILD_ID_START_SIZE])
{
    char plain[UUID_TEXT_SIZE];
    bool has_bits = false;
    if (!uuid_parse(debug_id, plain)) return false;
    for (size_t i = 0; i < sizeof(order); i++) {
        memcpy(ret_text + 2 * i, plain + 2 * order[i], 2);
        has_bits |= plain[2 * i] != '0' || plain[2 * i + 1] != '0';
    }
    ret_text[BUILD_ID_START_SIZE - 1] = '\0';
    return has_bits;
}
