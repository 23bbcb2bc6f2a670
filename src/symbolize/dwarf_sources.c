/* SPDX-License-Identifier: MIT */
#include "symbolize/dwarf_sources.h"

#include "binary/debug_id.h"
#include "symbolize/mapped_file.h"
#include "symbolize/symbol_module_cache.h"

#include <stdlib.h>

static void mark_names(struct dwarf_sources *sources, struct symbol_module *module, uint64_t address)
{
    struct name_answer answer;
    if (!symbol_index_find(&module->names, address, &answer) || answer.source != NAME_BY_DWARF) return;
    for (uint32_t i = 0; i < answer.frame_count; i++) {
        struct string_id file;
        struct slice text = symbol_index_text(&module->names, answer.frames[i].file);
        if (profile_find_string(sources->profile, text, &file) && file.index < sources->string_count)
            sources->is_named[file.index] = true;
    }
}

/* Marks what MODULE, the file of the mapping INDEX, names at the addresses of LOCATIONS, COUNT of them. */
static void mark_module(struct dwarf_sources *sources, struct symbol_module *module, uint32_t index,
                        const uint32_t *locations, size_t count)
{
    struct error error;
    const struct profile *profile = sources->profile;
    if (symbol_module_read_names(module, &error) != STATUS_OK) return;
    for (size_t i = 0; i < count; i++) {
        uint64_t address;
        if (mapping_file_address(module, &profile->mappings.items[index],
                                 profile->locations.items[locations[i]].address, &address))
            mark_names(sources, module, address);
    }
}

static const char *build_id_of(const struct profile *profile, const struct mapping *mapping,
                               char start[BUILD_ID_START_SIZE])
{
    if (mapping->build_id.index) return profile_c_string(profile, mapping->build_id);
    return debug_id_to_build_id(profile_slice(profile, mapping->debug_id), start) ? start : "";
}

static void mark_mapping(struct dwarf_sources *sources, struct symbol_module_cache *modules, uint32_t index,
                         const uint32_t *locations, size_t count)
{
    static const char *const folders[] = {"/usr/lib/debug"};
    const struct debug_sources debug_sources = {.items = folders, .count = 1};
    const struct mapping *mapping = &sources->profile->mappings.items[index];
    char start[BUILD_ID_START_SIZE];
    const char *build_id = build_id_of(sources->profile, mapping, start);
    struct symbol_module *module;
    if (!build_id[0] || !mapping_has_file(sources->profile, mapping) || !mapping_has_place(mapping)) return;
    const char *path = profile_c_string(sources->profile, mapping->file_name);
    if (symbol_module_cache_open(modules, path, build_id, &debug_sources, &module) == SYMBOL_MODULE_OPEN)
        mark_module(sources, module, index, locations, count);
    symbol_module_cache_release(modules);
}

static int compare_by_mapping(const void *left, const void *right, void *context)
{
    const struct location *locations = ((const struct dwarf_sources *)context)->profile->locations.items;
    const struct location *a = &locations[*(const uint32_t *)left], *b = &locations[*(const uint32_t *)right];
    if (a->mapping.index != b->mapping.index) return a->mapping.index < b->mapping.index ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

static void mark_all(struct dwarf_sources *sources)
{
    const struct profile *profile = sources->profile;
    struct symbol_module_cache *modules = symbol_module_cache_new();
    uint32_t *locations = calloc(profile->locations.count + 1, sizeof(*locations));
    size_t count = 0;
    for (uint32_t i = 1; locations && i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        if (location->mapping.index && location->address && location->line_count) locations[count++] = i;
    }
    if (count > 0) qsort_r(locations, count, sizeof(*locations), compare_by_mapping, sources);
    for (size_t first = 0, end; modules && first < count; first = end) {
        uint32_t index = profile->locations.items[locations[first]].mapping.index;
        for (end = first + 1; end < count; end++) {
            if (profile->locations.items[locations[end]].mapping.index != index) break;
        }
        mark_mapping(sources, modules, index, locations + first, end - first);
    }
    free(locations);
    symbol_module_cache_free(modules);
}

bool dwarf_sources_have(struct dwarf_sources *sources, const char *path)
{
    struct string_id id;
    if (!sources->is_named) {
        sources->string_count = sources->profile->strings.count;
        sources->is_named = calloc(sources->string_count, sizeof(*sources->is_named));
        if (!sources->is_named) return false;
        mark_all(sources);
    }
    bool is_string = profile_find_string(sources->profile, slice_of_text(path), &id);
    return is_string && id.index < sources->string_count && sources->is_named[id.index];
}

void dwarf_sources_fini(struct dwarf_sources *sources)
{
    free(sources->is_named);
    *sources = (struct dwarf_sources){.profile = sources->profile};
}
