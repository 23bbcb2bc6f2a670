/* Everything that DWARF says about the names of code: which function, inlined function and line is where.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DWARF_NAMES_H
#define OFFBEAT_SYMBOLIZE_DWARF_NAMES_H

#include "binary/elf_symbols.h"
#include "symbolize/address_ranges.h"
#include "symbolize/text_table.h"

enum {
    DWARF_UNITS_MAX = 1 << 24,
    DWARF_SECTIONS_MAX = 64, /* sections of debug information, in a file and those that belong to it */
    DWARF_DEPTH_MAX = 512,   /* levels of nested entries: namespaces, functions, blocks, inlined functions */
    DWARF_SCOPES_MAX = 1 << 28,
    /* Entries, ranges and lines that each thread looks at: by the size of an image, and without one. */
    DWARF_STEPS_PER_BYTE = 4,
    DWARF_STEPS_MAX = 1 << 28,
};

/* Numbers of texts, 0 = not known. */
struct dwarf_function {
    uint32_t linkage_name;  /* name as the linker knows it, by DWARF */
    uint32_t exported_name; /* name by the symbol table; only real functions have one */
    uint32_t name;          /* name as in the source, without its class */
    uint64_t declaration;   /* place.h */
};

/* A function, or a copy of one that was inlined. */
struct dwarf_scope {
    uint32_t caller;   /* scope that it was inlined into: index + 1; 0 = it is a real function */
    uint32_t function; /* index + 1; 0 = it has no name */
    uint64_t call;     /* place of the call, of inlined ones */
};

/* Names that one thread found in its share of the units. Callers come before the functions they call. {0} is not valid.
 */
struct dwarf_names {
    struct text_table texts;
    struct address_ranges scope_ranges; /* value: index of a scope; the ranges of a unit do not overlap */
    struct address_ranges line_ranges;  /* value: index of a place; likewise */
    ARRAY_OF(struct dwarf_function) functions;
    ARRAY_OF(struct dwarf_scope) scopes;
    ARRAY_OF(uint64_t) places;
};

/* Where code is: nothing that DWARF says of other addresses is believed. */
struct dwarf_code {
    uint64_t base; /* address that others count from */
    const struct elf_segment *segments;
    size_t segment_count;
};

/* All names in FILE, whose shared part (dwz) is in ALTERNATE if that is not NULL. SYMBOLS say under which name a
 * function is known outside. *RET_NAMES is an array of *RET_COUNT, to be freed by dwarf_names_free also after a
 * failure. A range's layer is at least 1; what an earlier unit says has a higher one: where the linker keeps one copy
 * of what several units define, all of them claim it, and the first one is right. *RET_IS_SPLIT: part of this came out
 * of other files (-gsplit-dwarf). Broken DWARF gives fewer names. False if memory is short. */
bool dwarf_names_read(const struct elf_file *file, const struct elf_file *alternate, const struct dwarf_code *code,
                      const struct elf_symbols *symbols, struct dwarf_names **ret_names, size_t *ret_count,
                      bool *ret_is_split);

void dwarf_names_clear(struct dwarf_names *names); /* frees what it holds */
void dwarf_names_free(struct dwarf_names *names, size_t count);

#endif
