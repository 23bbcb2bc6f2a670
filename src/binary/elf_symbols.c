/* Symbol tables, flattened into one array that is searched by halving.  SPDX-License-Identifier: MIT */
#include "binary/elf_symbols.h"

#include <elf.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cursor.h"

enum {
    PLT_ENTRY_SIZE = 16,           /* x86-64 and aarch64 */
    PLT_PROTECTED_ENTRY_SIZE = 24, /* aarch64 with branch protection */
    PLT_X86_64_HEADER_SIZE = 16,
    PLT_AARCH64_HEADER_SIZE = 32,
    ENCLOSING_SYMBOLS_MAX = 16, /* symbols that a search for an enclosing function goes back */
};

/* From the least to the most important reason to take another name. */
enum { UNFIT_LOCAL = 1, UNFIT_WEAK = 2, UNFIT_NO_SIZE = 4 };

void elf_symbols_init(struct elf_symbols *symbols)
{
    *symbols = (struct elf_symbols){0};
    buffer_init(&symbols->names, UINT32_MAX);
}

void elf_symbols_fini(struct elf_symbols *symbols)
{
    free(symbols->items);
    buffer_fini(&symbols->names);
    *symbols = (struct elf_symbols){0};
}

static bool add(struct elf_symbols *symbols, const struct elf_symbol *symbol)
{
    if (!array_reserve(&symbols->items, &symbols->capacity, symbols->count + 1, sizeof(*symbol), ELF_SYMBOLS_MAX))
        return false;
    symbols->items[symbols->count++] = *symbol;
    return true;
}

/* --- Symbol tables ------------------------------------------------------------------------------------------------ */

static const struct elf_section *section_of_type(const struct elf_file *file, uint32_t type)
{
    for (size_t i = 0; i < file->section_count; i++)
        if (file->sections[i].type == type && file->sections[i].size > 0) return &file->sections[i];
    return NULL;
}

/* The string at OFFSET of a string table that ends with a NUL; "" if the offset is outside of it. */
static const char *text_at(const struct buffer *texts, uint64_t offset)
{
    return offset < texts->size ? (const char *)texts->data + offset : "";
}

/* Copies the string table of TABLE to the end of INTO, with a NUL after it. */
static bool read_texts(const struct elf_file *file, const struct elf_section *table, struct buffer *into)
{
    if (table->link >= file->section_count) return false;
    if (elf_file_read_section(file, &file->sections[table->link], into, NULL) != STATUS_OK) return false;
    buffer_append_byte(into, '\0');
    return !into->failed;
}

/* Names may overlap, so that a table of strings with N bytes could hold N names of N bytes. In real files the names
 * have at most the bytes of their table, a little more where linkers let names share their ends. */
enum { NAME_BYTES_FREE = 1 << 16, NAME_BYTES_RATIO = 4 };

static size_t name_bytes_max(size_t table_size)
{
    return NAME_BYTES_FREE + table_size * NAME_BYTES_RATIO;
}

/* Takes the size of NAME from *LEFT. False if it is longer than that, or empty. */
static bool take_name(const char *name, size_t *left)
{
    size_t size = strnlen(name, *left);
    if (size == *left || size == 0) return false;
    *left -= size;
    return true;
}

static bool add_entry(struct elf_symbols *symbols, const struct elf_file *file, const Elf64_Sym *entry, size_t texts,
                      size_t *names_left)
{
    unsigned type = ELF64_ST_TYPE(entry->st_info), binding = ELF64_ST_BIND(entry->st_info);
    bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (!is_function || entry->st_shndx == SHN_UNDEF || entry->st_shndx >= file->section_count) return true;
    if (entry->st_name >= symbols->names.size - texts) return true;
    char *name = (char *)symbols->names.data + texts + entry->st_name;
    if (!take_name(name, names_left)) return true;
    /* Our own copy of the names is cut at the version, inside of which no other name can begin. */
    char *version = strchr(name + 1, '@');
    if (version) *version = '\0';
    const struct elf_section *section = &file->sections[entry->st_shndx];
    uint64_t end;
    if (__builtin_add_overflow(entry->st_value, entry->st_size, &end)) return true;
    struct elf_symbol symbol = {
        .address = entry->st_value,
        .end = entry->st_size ? end : section->address + section->size,
        .name_offset = (uint32_t)(texts + entry->st_name),
        .is_sized = entry->st_size > 0,
        .unfitness = (uint8_t)((entry->st_size ? 0 : UNFIT_NO_SIZE) | (binding == STB_WEAK ? UNFIT_WEAK : 0) |
                               (binding == STB_LOCAL ? UNFIT_LOCAL : 0)),
    };
    return add(symbols, &symbol);
}

bool elf_symbols_add(struct elf_symbols *symbols, const struct elf_file *file)
{
    const struct elf_section *table = section_of_type(file, SHT_SYMTAB);
    if (!table || !table->has_bytes) table = section_of_type(file, SHT_DYNSYM);
    if (!table || !table->has_bytes) return true;
    size_t texts = symbols->names.size;
    struct buffer entries;
    buffer_init(&entries, ELF_SECTION_BYTES_MAX + 1);
    bool is_read =
        elf_file_read_section(file, table, &entries, NULL) == STATUS_OK && read_texts(file, table, &symbols->names);
    struct cursor cursor = cursor_of(buffer_slice(&entries));
    bool ok = true;
    size_t names_left = name_bytes_max(symbols->names.size - texts);
    while (is_read && ok && cursor_left(&cursor) >= sizeof(Elf64_Sym)) {
        Elf64_Sym entry;
        memcpy(&entry, cursor_take(&cursor, sizeof(entry)).data, sizeof(entry));
        ok = add_entry(symbols, file, &entry, texts, &names_left);
    }
    ok = ok && !entries.failed && !symbols->names.failed;
    buffer_fini(&entries);
    return ok;
}

/* --- Procedure linkage tables ------------------------------------------------------------------------------------- */

/* A table whose entries are in the order of the relocations in .rela.plt. */
static bool add_stub(struct elf_symbols *symbols, const struct elf_section *stubs, uint64_t offset, uint64_t size,
                     const char *name)
{
    if (!stubs || offset >= stubs->size) return true;
    size_t name_offset = symbols->names.size;
    buffer_append_format(&symbols->names, "%s@plt", name);
    buffer_append_byte(&symbols->names, '\0');
    struct elf_symbol symbol = {
        .address = stubs->address + offset,
        .end = stubs->address + offset + size,
        .name_offset = (uint32_t)name_offset,
        .is_sized = true,
    };
    return !symbols->names.failed && add(symbols, &symbol);
}

struct plt {
    struct buffer relocations, imports, texts; /* .rela.plt and the tables that it points into */
};

static bool read_plt(const struct elf_file *file, struct plt *ret_plt)
{
    const struct elf_section *relocations = elf_file_section(file, ".rela.plt");
    if (!relocations || relocations->link >= file->section_count) return false;
    const struct elf_section *imports = &file->sections[relocations->link];
    return imports->type == SHT_DYNSYM &&
           elf_file_read_section(file, relocations, &ret_plt->relocations, NULL) == STATUS_OK &&
           elf_file_read_section(file, imports, &ret_plt->imports, NULL) == STATUS_OK &&
           read_texts(file, imports, &ret_plt->texts);
}

static const char *imported_name(const struct plt *plt, const Elf64_Rela *relocation)
{
    Elf64_Sym symbol;
    uint64_t offset = ELF64_R_SYM(relocation->r_info) * sizeof(symbol);
    if (offset == 0 || offset + sizeof(symbol) > plt->imports.size) return "";
    memcpy(&symbol, plt->imports.data + offset, sizeof(symbol));
    return text_at(&plt->texts, symbol.st_name);
}

/* Returns the size of the entries of STUBS on AArch64, which no header states: the distance between the jumps that end
 * the first two, or the place of the only one. */
static uint64_t measure_entry(const struct elf_file *file, const struct elf_section *stubs)
{
    enum { BR_X17 = 0xd61f0220, INSTRUCTION = 4, ENTRIES = 2 };
    const uint64_t first = PLT_AARCH64_HEADER_SIZE;
    uint32_t code[ENTRIES * PLT_PROTECTED_ENTRY_SIZE / INSTRUCTION] = {0};
    uint64_t jumps[ENTRIES] = {0}, count = 0;
    uint64_t size = stubs && stubs->size > first ? stubs->size - first : 0;
    if (size > sizeof(code)) size = sizeof(code);
    if (size == 0 || !stubs->has_bytes || !elf_file_read(file, stubs->file_offset + first, code, size))
        return PLT_ENTRY_SIZE;
    for (uint64_t i = 0; i < sizeof(code) / INSTRUCTION && count < ENTRIES; i++)
        if (code[i] == BR_X17) jumps[count++] = (i + 1) * INSTRUCTION;
    uint64_t measured = count == ENTRIES ? jumps[1] - jumps[0] : jumps[0];
    return measured > PLT_ENTRY_SIZE ? PLT_PROTECTED_ENTRY_SIZE : PLT_ENTRY_SIZE;
}

static bool add_stubs(struct elf_symbols *symbols, const struct elf_file *file, const struct plt *plt)
{
    /* With branch protection, x86-64 code calls .plt.sec, which has no header; .plt is then its slow path. */
    const struct elf_section *first = elf_file_section(file, ".plt"), *second = elf_file_section(file, ".plt.sec");
    bool is_aarch64 = file->machine == EM_AARCH64;
    uint64_t header = is_aarch64 ? PLT_AARCH64_HEADER_SIZE : PLT_X86_64_HEADER_SIZE;
    uint64_t size = is_aarch64 ? measure_entry(file, first) : PLT_ENTRY_SIZE;
    struct cursor cursor = cursor_of(buffer_slice(&plt->relocations));
    size_t names_left = name_bytes_max(plt->texts.size);
    bool ok = true;
    for (uint64_t offset = 0; ok && cursor_left(&cursor) >= sizeof(Elf64_Rela); offset += size) {
        Elf64_Rela relocation;
        memcpy(&relocation, cursor_take(&cursor, sizeof(relocation)).data, sizeof(relocation));
        const char *name = imported_name(plt, &relocation);
        if (!take_name(name, &names_left)) continue;
        ok = add_stub(symbols, first, header + offset, size, name) && add_stub(symbols, second, offset, size, name);
    }
    return ok;
}

bool elf_symbols_add_plt(struct elf_symbols *symbols, const struct elf_file *file)
{
    if (file->machine != EM_X86_64 && file->machine != EM_AARCH64) return true;
    struct plt plt;
    buffer_init(&plt.relocations, ELF_SECTION_BYTES_MAX + 1);
    buffer_init(&plt.imports, ELF_SECTION_BYTES_MAX + 1);
    buffer_init(&plt.texts, ELF_SECTION_BYTES_MAX + 1);
    bool ok = !read_plt(file, &plt) || add_stubs(symbols, file, &plt);
    ok = ok && !plt.relocations.failed && !plt.imports.failed && !plt.texts.failed;
    buffer_fini(&plt.relocations);
    buffer_fini(&plt.imports);
    buffer_fini(&plt.texts);
    return ok;
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

/* Numbers, so that qsort's order is the rule of elf_symbols_finish. */
static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_symbols(const void *left, const void *right, void *names)
{
    const struct elf_symbol *a = left, *b = right;
    if (a->address != b->address) return order(a->address, b->address);
    if (a->unfitness != b->unfitness) return order(a->unfitness, b->unfitness);
    const char *a_name = (const char *)names + a->name_offset, *b_name = (const char *)names + b->name_offset;
    size_t a_underscores = strspn(a_name, "_"), b_underscores = strspn(b_name, "_");
    if (a_underscores != b_underscores) return order(a_underscores, b_underscores);
    size_t a_length = strlen(a_name), b_length = strlen(b_name);
    if (a_length != b_length) return order(b_length, a_length);
    return strcmp(a_name, b_name);
}

void elf_symbols_finish(struct elf_symbols *symbols)
{
    if (symbols->count == 0) return;
    qsort_r(symbols->items, symbols->count, sizeof(*symbols->items), compare_symbols, symbols->names.data);
    size_t kept = 1;
    for (size_t i = 1; i < symbols->count; i++)
        if (symbols->items[i].address != symbols->items[kept - 1].address) symbols->items[kept++] = symbols->items[i];
    symbols->count = kept;
    for (size_t i = 0; i + 1 < kept; i++) {
        struct elf_symbol *symbol = &symbols->items[i], *next = symbol + 1;
        if (!symbol->is_sized && symbol->end > next->address) symbol->end = next->address;
    }
}

const struct elf_symbol *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address)
{
    size_t low = 0, high = symbols->count; /* all below LOW begin at or before ADDRESS, none from HIGH on does */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols->items[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t back = 1; back <= low && back <= ENCLOSING_SYMBOLS_MAX; back++) {
        const struct elf_symbol *symbol = &symbols->items[low - back];
        if (address < symbol->end) return symbol;
    }
    return NULL;
}
