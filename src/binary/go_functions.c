/* The table begins with a header: a magic number, the size of a pointer, and offsets of its parts. A list, sorted by
 * address, leads to the description of each function, and that to its name. Source: src/runtime/symtab.go of Go.
 * SPDX-License-Identifier: MIT */
#include "binary/go_functions.h"

#include <string.h>

enum { TABLE_BYTES_MAX = 256 << 20, FUNCTIONS_MAX = 1 << 24, HEADER_START = 8, ENTRY_BYTES = 8, POINTER_BYTES = 8 };

/* Words of the header after its first 8 bytes. */
enum { WORD_FUNCTION_COUNT, WORD_FILE_COUNT, WORD_TEXT_START, WORD_NAMES, WORD_UNITS, WORD_FILES, WORD_PCS, WORD_LIST };

static const struct elf_section *find_table(const struct elf_file *file)
{
    const struct elf_section *section = elf_file_section(file, ".gopclntab");
    return section ? section : elf_file_section(file, ".data.rel.ro.gopclntab");
}

bool go_is_program(const struct elf_file *file)
{
    return find_table(file) != NULL;
}

static bool read_u32(struct slice table, uint64_t offset, uint32_t *ret_value)
{
    if (offset > table.size || table.size - offset < sizeof(*ret_value)) return false;
    memcpy(ret_value, table.data + offset, sizeof(*ret_value));
    return true;
}

static uint64_t header_word(struct slice table, unsigned number)
{
    uint64_t value;
    memcpy(&value, table.data + HEADER_START + number * sizeof(value), sizeof(value));
    return value;
}

static bool is_named(struct slice table, uint64_t offset, const char *name)
{
    size_t size = strlen(name) + 1;
    return offset <= table.size && table.size - offset >= size && memcmp(table.data + offset, name, size) == 0;
}

/* Takes over the range of function INDEX if it is one of FUNCTIONS. Returns false if the table is damaged. */
static bool take_function(struct slice table, uint64_t index, struct go_function *functions, size_t count)
{
    uint64_t list = header_word(table, WORD_LIST), text = header_word(table, WORD_TEXT_START);
    uint64_t entry = list + index * ENTRY_BYTES;
    uint32_t start, description, end, name;
    if (!read_u32(table, entry, &start) || !read_u32(table, entry + 4, &description) ||
        !read_u32(table, entry + ENTRY_BYTES, &end) || !read_u32(table, list + description + 4, &name))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!is_named(table, header_word(table, WORD_NAMES) + name, functions[i].name)) continue;
        functions[i].start = text + start;
        functions[i].end = text + end;
    }
    return true;
}

static bool find_in_table(struct slice table, struct go_function *functions, size_t count)
{
    enum { MAGIC_118 = 0xfffffff0u, MAGIC_120 = 0xfffffff1u, POINTER_SIZE_OFFSET = 7 };
    uint32_t magic = 0;
    if (table.size < HEADER_START + (WORD_LIST + 1) * sizeof(uint64_t) || !read_u32(table, 0, &magic)) return false;
    bool is_known = magic == MAGIC_118 || magic == MAGIC_120;
    if (!is_known || table.data[POINTER_SIZE_OFFSET] != POINTER_BYTES) return false;
    uint64_t function_count = header_word(table, WORD_FUNCTION_COUNT);
    if (function_count > FUNCTIONS_MAX || header_word(table, WORD_TEXT_START) == 0) return false;
    if (header_word(table, WORD_LIST) > table.size || header_word(table, WORD_NAMES) > table.size) return false;
    for (uint64_t i = 0; i < function_count; i++) {
        if (!take_function(table, i, functions, count)) return false;
    }
    return true;
}

bool go_functions_find(const struct elf_file *file, struct go_function *functions, size_t count)
{
    const struct elf_section *section = find_table(file);
    struct buffer bytes;
    buffer_init(&bytes, TABLE_BYTES_MAX);
    bool is_found = section && section->has_bytes && section->size <= TABLE_BYTES_MAX &&
                    elf_file_read_section(file, section, &bytes, NULL) == STATUS_OK &&
                    find_in_table(buffer_slice(&bytes), functions, count);
    buffer_fini(&bytes);
    return is_found;
}
