/* The functions that an ELF file names: address → name.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BINARY_ELF_SYMBOLS_H
#define OFFBEAT_BINARY_ELF_SYMBOLS_H

#include "binary/elf_file.h"

enum { ELF_SYMBOLS_MAX = 64 << 20 };

struct elf_symbol {
    uint64_t address, end;
    uint32_t name_offset; /* see elf_symbol_name */
    bool is_sized;        /* the file says where it ends */
    uint8_t unfitness;    /* private: which of several names of one address is taken */
};

/* Sorted by address, one symbol an address. {0} is not valid: elf_symbols_init. */
struct elf_symbols {
    struct elf_symbol *items;
    size_t count, capacity;
    struct buffer names;
};

void elf_symbols_init(struct elf_symbols *symbols);
void elf_symbols_fini(struct elf_symbols *symbols);

/* Adds the functions of FILE's .symtab, or of its .dynsym if it has no .symtab, without their versions ("@@GLIBC…").
 * Missing or broken tables add nothing. False if memory is short or a maximum is reached. */
bool elf_symbols_add(struct elf_symbols *symbols, const struct elf_file *file);

/* Adds the stubs through which FILE calls other files: "malloc@plt". Else as elf_symbols_add. */
bool elf_symbols_add_plt(struct elf_symbols *symbols, const struct elf_file *file);

/* Sorts SYMBOLS and keeps one name for each address. Call it once, after adding and before finding. As `perf report`,
 * it prefers a name with a size, then one that is not weak, a global one, the fewest leading underscores, the longest,
 * the first in the alphabet. A function without a size ends at the next function or with its section. */
void elf_symbols_finish(struct elf_symbols *symbols);

/* The function that holds ADDRESS, or NULL. */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address);

static inline const char *elf_symbol_name(const struct elf_symbols *symbols, const struct elf_symbol *symbol)
{
    return (const char *)symbols->names.data + symbol->name_offset;
}

#endif
