/* Puts together what all sources say of a module.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_SYMBOL_INDEX_BUILD_H
#define OFFBEAT_SYMBOLIZE_SYMBOL_INDEX_BUILD_H

#include "binary/elf_symbols.h"
#include "symbolize/dwarf_names.h"
#include "symbolize/function_bounds.h"
#include "symbolize/symbol_index.h"

struct name_sources {
    struct dwarf_names *dwarf; /* one a thread; each is emptied as soon as it was read */
    size_t dwarf_count;
    const struct elf_symbols *symbols;
    const struct function_bounds *bounds;
    uint64_t base;
    struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS];
};

/* DWARF goes before symbols, these before bounds. False if memory is short or the maximum is reached. */
bool symbol_index_build(struct symbol_index *index, struct name_sources *sources);

/* Makes INDEX, which was built, the content of the file at PATH: nobody sees half of it. */
bool symbol_index_write(const struct symbol_index *index, const char *path);

/* The same for the open file DESCRIPTOR; half of it may be there after a failure, which its reader finds out. */
bool symbol_index_write_descriptor(const struct symbol_index *index, int descriptor);

#endif
