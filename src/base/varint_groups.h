/* Long lists of small varints, as a profile's stacks are, four at a time: which of sixteen bytes are the last ones of
 * their numbers says how to put them in place, whatever their sizes, which no processor can guess where ids of two and
 * of three bytes are mixed. After "Vectorized VByte Decoding" (Plaisance, Kurz, Lemire; 2015).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_VARINT_GROUPS_H
#define OFFBEAT_BASE_VARINT_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    VARINT_GROUP_BYTES = 12, /* four of three bytes at most */
    VARINT_GROUP_ROOM = 16,  /* bytes that are read to have them */
    VARINT_GROUP_PATTERNS = 1 << VARINT_GROUP_BYTES,
    VARINT_GROUP_ORDERS = 3 * 3 * 3 * 3,
};

/* Tables by pattern, which has a bit for each byte that ends a number. {0} reads no group. */
struct varint_groups {
    bool can_read;
    uint8_t sizes[VARINT_GROUP_PATTERNS];  /* bytes of the first four numbers; 0: one of them is too long */
    uint8_t orders[VARINT_GROUP_PATTERNS]; /* index into BYTES */
    uint8_t bytes[VARINT_GROUP_ORDERS][VARINT_GROUP_ROOM];
};

/* Fills the tables. GROUPS reads no group if the processor has no SSE4.1. */
void varint_groups_init(struct varint_groups *groups);

/* Reads groups of four from *POSITION on, which moves after them, as long as VARINT_GROUP_ROOM bytes are there before
 * END; ends before a group that has a longer number, a 0, or one above MAXIMUM, and so perhaps at once. Returns how
 * many numbers were read: no more than bytes. */
size_t varint_groups_read(const struct varint_groups *groups, const uint8_t **position, const uint8_t *end,
                          uint32_t maximum, uint32_t *ret_values);

#endif
