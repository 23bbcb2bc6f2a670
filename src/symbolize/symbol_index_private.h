/* Parts that the reader and the builder of an index share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_SYMBOL_INDEX_PRIVATE_H
#define OFFBEAT_SYMBOLIZE_SYMBOL_INDEX_PRIVATE_H

#include "symbolize/symbol_index.h"

#define SYMBOL_INDEX_MAGIC "offbeat2"

enum {
    SYMBOL_INDEX_BLOCK_BYTES = 4 << 10,
    SYMBOL_INDEX_SLOTS = 2048, /* blocks in memory */
    SYMBOL_INDEX_TEXT_BYTES_MAX = 1 << 20,
    SYMBOL_INDEX_LINE_BITS = 24,
    SYMBOL_INDEX_LINE_MASK = (1 << SYMBOL_INDEX_LINE_BITS) - 1,
};

_Static_assert(sizeof(struct symbol_index_header) <= SYMBOL_INDEX_BLOCK_BYTES, "the header is in the first block");
_Static_assert(sizeof(struct symbol_index_input) == sizeof(uint64_t) + ELF_BUILD_ID_TEXT_SIZE + 7, "has no padding");
_Static_assert(sizeof(struct symbol_index_scope) == 16 && sizeof(struct symbol_index_function) == 16, "kept in files");

uint32_t symbol_index_checksum(const struct symbol_index_header *header, const uint32_t *checksums);

#endif
