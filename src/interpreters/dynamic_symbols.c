/* SPDX-License-Identifier: MIT */
#include "interpreters/dynamic_symbols.h"

#include <elf.h>
#include <string.h>

enum { HEADERS_MAX = 32, ENTRIES_MAX = 64, CHAIN_MAX = 256, NAME_MAX_BYTES = 64 };

static bool find_dynamic(const struct interpreter_image *image, const struct process_memory *memory,
                         struct memory_pieces *pieces, struct memory_range *ret_range)
{
    Elf64_Ehdr header;
    Elf64_Phdr segments[HEADERS_MAX];
    if (!process_memory_read(memory, pieces, image->start, &header, sizeof(header))) return false;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
    size_t count = header.e_phnum < HEADERS_MAX ? header.e_phnum : HEADERS_MAX;
    if (header.e_phentsize != sizeof(segments[0]) || header.e_phoff > image->size || count == 0) return false;
    if (!process_memory_read(memory, pieces, image->start + header.e_phoff, segments, count * sizeof(segments[0])))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (segments[i].p_type != PT_DYNAMIC) continue;
        *ret_range = (struct memory_range){image->bias + segments[i].p_vaddr, segments[i].p_memsz};
        return true;
    }
    return false;
}

/* Returns the address in ENTRY. glibc's loader adds where the file is loaded, others do not. */
static uint64_t address_of(const struct interpreter_image *image, const Elf64_Dyn *entry)
{
    return entry->d_un.d_ptr < image->start ? entry->d_un.d_ptr + image->bias : entry->d_un.d_ptr;
}

bool dynamic_symbols_open(const struct interpreter_image *image, const struct process_memory *memory,
                          struct memory_pieces *pieces, struct dynamic_symbols *ret_symbols)
{
    struct memory_range dynamic;
    Elf64_Dyn entries[ENTRIES_MAX];
    uint32_t header[4];
    if (!find_dynamic(image, memory, pieces, &dynamic)) return false;
    size_t count = dynamic.size / sizeof(entries[0]);
    if (count > ENTRIES_MAX) count = ENTRIES_MAX;
    if (count == 0 || !process_memory_read(memory, pieces, dynamic.address, entries, count * sizeof(entries[0])))
        return false;
    *ret_symbols = (struct dynamic_symbols){.bias = image->bias};
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
        if (entries[i].d_tag == DT_GNU_HASH) ret_symbols->hash = address_of(image, &entries[i]);
        if (entries[i].d_tag == DT_SYMTAB) ret_symbols->symbols = address_of(image, &entries[i]);
        if (entries[i].d_tag == DT_STRTAB) ret_symbols->strings = address_of(image, &entries[i]);
    }
    if (!ret_symbols->hash || !ret_symbols->symbols || !ret_symbols->strings) return false;
    if (!process_memory_read(memory, pieces, ret_symbols->hash, header, sizeof(header))) return false;
    ret_symbols->bucket_count = header[0];
    ret_symbols->first_symbol = header[1];
    ret_symbols->bloom_count = header[2];
    ret_symbols->bloom_shift = header[3] % 32;
    return ret_symbols->bucket_count > 0 && ret_symbols->bloom_count > 0;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++) hash = hash * 33 + (uint8_t)*name;
    return hash;
}

/* Returns false if the filter of SYMBOLS says that no symbol has HASH. */
static bool may_have(const struct dynamic_symbols *symbols, const struct process_memory *memory,
                     struct memory_pieces *pieces, uint32_t hash)
{
    enum { HEADER = 16, BITS = 64 };
    uint64_t word, place = hash / BITS % symbols->bloom_count;
    if (!process_memory_read(memory, pieces, symbols->hash + HEADER + place * sizeof(word), &word, sizeof(word)))
        return false;
    return (word >> hash % BITS & 1) && (word >> (hash >> symbols->bloom_shift) % BITS & 1);
}

static bool is_symbol(const struct dynamic_symbols *symbols, const struct process_memory *memory,
                      struct memory_pieces *pieces, uint32_t index, const char *name, struct memory_range *ret_range)
{
    Elf64_Sym symbol;
    char text[NAME_MAX_BYTES];
    size_t size = strlen(name) + 1;
    if (!process_memory_read(memory, pieces, symbols->symbols + index * sizeof(symbol), &symbol, sizeof(symbol)))
        return false;
    if (size > sizeof(text) || symbol.st_shndx == SHN_UNDEF) return false;
    if (!process_memory_read(memory, pieces, symbols->strings + symbol.st_name, text, size)) return false;
    if (memcmp(text, name, size) != 0) return false;
    *ret_range = (struct memory_range){symbols->bias + symbol.st_value, symbol.st_size};
    return true;
}

bool dynamic_symbols_find(const struct dynamic_symbols *symbols, const struct process_memory *memory,
                          struct memory_pieces *pieces, const char *name, struct memory_range *ret_range)
{
    enum { HEADER = 16 };
    uint32_t hash = hash_of(name), index, value;
    uint64_t buckets = symbols->hash + HEADER + symbols->bloom_count * sizeof(uint64_t);
    uint64_t chains = buckets + symbols->bucket_count * sizeof(uint32_t);
    if (!may_have(symbols, memory, pieces, hash)) return false;
    uint64_t bucket = buckets + hash % symbols->bucket_count * sizeof(uint32_t);
    if (!process_memory_read(memory, pieces, bucket, &index, sizeof(index)) || index < symbols->first_symbol)
        return false;
    for (unsigned i = 0; i < CHAIN_MAX; i++, index++) {
        uint64_t chain = chains + (uint64_t)(index - symbols->first_symbol) * sizeof(value);
        if (!process_memory_read(memory, pieces, chain, &value, sizeof(value))) return false;
        if ((value | 1) == (hash | 1) && is_symbol(symbols, memory, pieces, index, name, ret_range)) return true;
        if (value & 1) return false;
    }
    return false;
}
