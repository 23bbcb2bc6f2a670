/* What the reader and the builder of an index share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_NAME_INDEX_PRIVATE_H
#define OFFBEAT_SYMBOLIZE_NAME_INDEX_PRIVATE_H

#include "symbolize/name_index.h"

#define NAME_INDEX_MAGIC "offbeat2"

enum {
    NAME_INDEX_BLOCK_BYTES = 4 << 10,
    NAME_INDEX_SLOTS = 2048, /* blocks in memory */
    NAME_INDEX_TEXT_BYTES_MAX = 1 << 20,
    NAME_INDEX_LINE_BITS = 24,
    NAME_INDEX_LINE_MASK = (1 << NAME_INDEX_LINE_BITS) - 1,
};

_Static_assert(sizeof(struct name_index_header) <= NAME_INDEX_BLOCK_BYTES, "the header is in the first block");
_Static_assert(sizeof(struct name_index_input) == sizeof(uint64_t) + ELF_BUILD_ID_TEXT_SIZE + 7, "has no padding");
_Static_assert(sizeof(struct name_index_scope) == 16 && sizeof(struct name_index_function) == 16, "kept in files");

uint32_t name_index_checksum(const struct name_index_header *header, const uint32_t *checksums);

#endif
