/* Symbols that a mapped ELF file exports, found in memory as the loader finds them: no file is opened, so that the
 * process may have another root directory, or have deleted the file. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_DYNAMIC_SYMBOLS_H
#define OFFBEAT_INTERPRETERS_DYNAMIC_SYMBOLS_H

#include "interpreters/interpreter.h"

struct dynamic_symbols {
    uint64_t bias;
    uint64_t hash, symbols, strings; /* addresses of the tables */
    uint32_t bucket_count, first_symbol, bloom_count, bloom_shift;
};

/* Finds the tables of IMAGE. Returns false if it has none. */
bool dynamic_symbols_open(const struct interpreter_image *image, const struct process_memory *memory,
                          struct memory_pieces *pieces, struct dynamic_symbols *ret_symbols);

/* Finds NAME. Returns false if the file does not define it. */
bool dynamic_symbols_find(const struct dynamic_symbols *symbols, const struct process_memory *memory,
                          struct memory_pieces *pieces, const char *name, struct memory_range *ret_range);

#endif
