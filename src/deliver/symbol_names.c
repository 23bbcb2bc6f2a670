/* SPDX-License-Identifier: MIT */
#include "deliver/symbol_names.h"

#include "binary/elf_symbols.h"

#include <string.h>

static void name_location(struct profile *profile, uint32_t index, const struct elf_symbols *symbols)
{
    const struct location *location = &profile->locations.items[index];
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    if (location->address < mapping->image_start) return;
    uint64_t address = location->address - mapping->image_start + mapping->image_vmaddr;
    const struct elf_symbol *symbol = elf_symbols_find(symbols, address);
    if (!symbol) return;
    struct function function = {.name = profile_text(profile, elf_symbol_name(symbols, symbol))};
    struct line line = {.function = profile_add_function(profile, &function)};
    profile_set_lines(profile, (struct location_id){index}, &line, 1);
}

static void name_mapping(struct profile *profile, uint32_t mapping, const struct elf_file *file)
{
    struct elf_symbols symbols;
    elf_symbols_init(&symbols);
    if (elf_symbols_add(&symbols, file) && elf_symbols_add_plt(&symbols, file)) {
        elf_symbols_finish(&symbols);
        for (size_t i = 1; i < profile->locations.count; i++) {
            const struct location *location = &profile->locations.items[i];
            if (location->mapping.index == mapping && location->line_count == 0) {
                name_location(profile, (uint32_t)i, &symbols);
            }
        }
    }
    elf_symbols_fini(&symbols);
}

static bool is_wanted(const struct profile *profile, uint32_t mapping)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        if (location->mapping.index == mapping && location->line_count == 0) return true;
    }
    return false;
}

void symbol_names_add(struct profile *profile)
{
    for (size_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        const char *path = profile_c_string(profile, mapping->file_name);
        const char *build_id = profile_c_string(profile, mapping->build_id);
        struct elf_file file;
        if (path[0] != '/' || mapping->image_start == 0 || !is_wanted(profile, (uint32_t)i)) continue;
        if (elf_file_open(&file, path, NULL) != STATUS_OK) continue;
        if (strcmp(file.build_id, build_id) == 0) name_mapping(profile, (uint32_t)i, &file);
        elf_file_close(&file);
    }
}
