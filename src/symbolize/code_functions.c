/* Locations are grouped by file. A file is opened only if one of its locations may match; its symbols, or else its
 * unwind tables, say from where to where the function of each address goes.  SPDX-License-Identifier: MIT */
#include "symbolize/code_functions.h"

#include "base/array.h"
#include "binary/elf_symbols.h"
#include "demangle/demangler.h"
#include "symbolize/function_bounds.h"
#include "symbolize/mapped_file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct wanted {
    uint64_t address; /* address as the file has it */
    uint32_t location;
    struct mapping_id mapping;
    struct string_id file_name, build_id;
};

struct finder {
    struct code_functions *all;
    struct wanted *wanted;
    size_t wanted_count;
    struct elf_symbols symbols; /* symbols of the file at hand */
    struct function_bounds bounds;
    struct buffer text;
};

/* --- What matches ------------------------------------------------------------------------------------------------- */

static bool matches(const struct code_functions *all, struct slice name)
{
    return name.size > 0 && all->options.matches(all->options.context, name);
}

static bool line_matches(const struct code_functions *all, const struct line *line)
{
    const struct function *function = profile_function(all->profile, line->function);
    return matches(all, profile_slice(all->profile, function->name)) ||
           (function->system_name.index != function->name.index &&
            matches(all, profile_slice(all->profile, function->system_name)));
}

/* The function whose code it is: not those that were inlined into it. */
static const struct line *outer_line(const struct code_functions *all, uint32_t location)
{
    const struct location *at = &all->profile->locations.items[location];
    return at->line_count > 0 ? &profile_lines(all->profile, at)[at->line_count - 1] : NULL;
}

static struct string_id name_of(const struct code_functions *all, const struct line *line)
{
    const struct function *function = profile_function(all->profile, line->function);
    return function->name.index != 0 ? function->name : function->system_name;
}

static bool location_matches(const struct code_functions *all, uint32_t location)
{
    const struct line *line = outer_line(all, location);
    return line && line_matches(all, line);
}

/* A caller that names an inlined function gets the place of its code. */
static void note_inlined(struct code_functions *all, uint32_t location)
{
    const struct location *at = &all->profile->locations.items[location];
    for (uint32_t i = 0; all->inlined_into.index == 0 && i + 1 < at->line_count; i++) {
        if (line_matches(all, &profile_lines(all->profile, at)[i]))
            all->inlined_into = name_of(all, outer_line(all, location));
    }
}

/* Returns whether the file must be opened: only its symbols say whether a location without a name matches, and what an
 * address is in. */
static bool may_match(const struct code_functions *all, uint32_t location)
{
    const struct line *line = outer_line(all, location);
    return all->options.has_address || !line || name_of(all, line).index == 0 || line_matches(all, line);
}

static void note_problem(struct code_functions *all, enum code_problem problem, struct string_id file)
{
    if (all->problem_counts[problem]++ == 0) all->problem_files[problem] = file;
}

/* --- Functions of one file ---------------------------------------------------------------------------------------- */

/* From where to where a function goes, and its name by the file. */
struct range {
    uint64_t start, end;
    const char *symbol; /* NULL: none */
};

static bool find_range(const struct finder *finder, uint64_t address, struct range *ret_range)
{
    const struct elf_symbol *symbol = elf_symbols_find(&finder->symbols, address);
    if (symbol && address >= symbol->address && address < symbol->end) {
        *ret_range = (struct range){symbol->address, symbol->end, elf_symbol_name(&finder->symbols, symbol)};
        return true;
    }
    const struct function_bound *bound = function_bounds_find(&finder->bounds, address);
    if (bound) *ret_range = (struct range){bound->start, bound->end, NULL};
    return bound != NULL;
}

static struct slice readable_name(struct finder *finder, const char *symbol)
{
    return demangle(symbol, &finder->text) ? slice_of_text((const char *)finder->text.data) : slice_of_text(symbol);
}

static struct string_id name_by_file(struct finder *finder, const struct range *range, struct string_id file)
{
    char name[NAME_MAX + 32];
    struct profile *profile = finder->all->profile;
    if (range->symbol) return profile_string(profile, readable_name(finder, range->symbol));
    const char *path = profile_c_string(profile, file), *slash = strrchr(path, '/');
    (void)snprintf(name, sizeof(name), "%.*s+0x%" PRIx64, NAME_MAX, slash ? slash + 1 : path, range->start);
    return profile_text(profile, name);
}

static bool has_address(const struct code_functions *all, const struct range *range, const struct wanted *wanted,
                        size_t count)
{
    uint64_t address = all->options.address;
    bool found = all->options.has_address && address >= range->start && address < range->end;
    for (size_t i = 0; all->options.has_address && i < count; i++)
        found |= all->profile->locations.items[wanted[i].location].address == address;
    return found;
}

static bool range_matches(struct finder *finder, const struct range *range, const struct wanted *wanted, size_t count)
{
    bool has_name = false;
    for (size_t i = 0; i < count; i++) {
        const struct line *line = outer_line(finder->all, wanted[i].location);
        if (line && line_matches(finder->all, line)) return true;
        has_name |= line && name_of(finder->all, line).index != 0;
    }
    if (has_address(finder->all, range, wanted, count)) return true;
    if (has_name || !range->symbol) return false;
    return matches(finder->all, slice_of_text(range->symbol)) ||
           matches(finder->all, readable_name(finder, range->symbol));
}

/* Returns the name of RANGE in the profile, as other reports have it. */
static struct string_id name_of_range(struct finder *finder, const struct range *range, const struct wanted *wanted,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct line *line = outer_line(finder->all, wanted[i].location);
        if (line && name_of(finder->all, line).index != 0) return name_of(finder->all, line);
    }
    return name_by_file(finder, range, wanted->file_name);
}

static bool add_function(struct finder *finder, const struct range *range, const struct wanted *wanted, size_t count)
{
    struct code_functions *all = finder->all;
    struct code_function function = {.name = name_of_range(finder, range, wanted, count),
                                     .mapping = wanted->mapping,
                                     .build_id = wanted->build_id,
                                     .start = range->start,
                                     .end = range->end,
                                     .place_first = all->place_count,
                                     .place_count = count};
    if (!array_reserve(&all->places, &all->place_capacity, all->place_count + count, sizeof(*all->places),
                       PROFILE_ENTITIES_MAX) ||
        !ARRAY_PUSH(all, PROFILE_ENTITIES_MAX, function))
        return false;
    for (size_t i = 0; i < count; i++)
        all->places[all->place_count++] =
            (struct code_place){.address = wanted[i].address, .location = wanted[i].location};
    return true;
}

/* WANTED is in the file, ascending by address. */
static bool find_functions(struct finder *finder, const struct wanted *wanted, size_t count)
{
    struct range range;
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        if (!find_range(finder, wanted[first].address, &range)) {
            if (location_matches(finder->all, wanted[first].location))
                note_problem(finder->all, CODE_BOUNDLESS, wanted->file_name);
            continue;
        }
        while (end < count && wanted[end].address < range.end) end++;
        if (range_matches(finder, &range, wanted + first, end - first) &&
            !add_function(finder, &range, wanted + first, end - first))
            return false;
    }
    return true;
}

static bool read_ranges(struct finder *finder, const struct symbol_module *module)
{
    elf_symbols_init(&finder->symbols);
    finder->bounds = (struct function_bounds){0};
    bool is_done = elf_symbols_add(&finder->symbols, &module->binary) &&
                   elf_symbols_add_plt(&finder->symbols, &module->binary) &&
                   (!module->has_debug || elf_symbols_add(&finder->symbols, &module->debug));
    elf_symbols_finish(&finder->symbols);
    if (is_done) (void)function_bounds_read(&finder->bounds, &module->binary);
    return is_done;
}

static int compare_addresses(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;
    if (a->address != b->address) return a->address < b->address ? -1 : 1;
    return (a->location > b->location) - (a->location < b->location);
}

static bool find_in_module(struct finder *finder, const struct symbol_module *module, struct wanted *wanted,
                           size_t count)
{
    const struct profile *profile = finder->all->profile;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct wanted one = wanted[i];
        uint64_t address = profile->locations.items[one.location].address;
        if (mapping_file_address(module, profile_mapping(profile, one.mapping), address, &one.address))
            wanted[kept++] = one;
    }
    if (kept == 0) return true;
    qsort(wanted, kept, sizeof(*wanted), compare_addresses);
    bool is_done = read_ranges(finder, module) && find_functions(finder, wanted, kept);
    elf_symbols_fini(&finder->symbols);
    function_bounds_fini(&finder->bounds);
    return is_done;
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static enum symbol_module_state open_module(struct code_functions *all, struct string_id file,
                                            struct string_id build_id, struct symbol_module **ret_module)
{
    return symbol_module_cache_open(all->modules, profile_c_string(all->profile, file),
                                    profile_c_string(all->profile, build_id), &all->directories, ret_module);
}

static bool find_in_file(struct finder *finder, struct wanted *wanted, size_t count)
{
    struct code_functions *all = finder->all;
    struct symbol_module *module;
    bool is_candidate = false, is_named = false, is_done = true;
    for (size_t i = 0; i < count; i++) {
        is_candidate |= may_match(all, wanted[i].location);
        is_named |= location_matches(all, wanted[i].location);
    }
    if (!is_candidate) return true;
    enum code_problem problem = CODE_PROBLEMS;
    if (wanted->build_id.index == 0 && !all->options.trusts_paths) {
        problem = CODE_UNPROVEN;
    } else {
        enum symbol_module_state state = open_module(all, wanted->file_name, wanted->build_id, &module);
        if (state == SYMBOL_MODULE_OPEN && module->has_binary)
            is_done = find_in_module(finder, module, wanted, count);
        else
            problem = state == SYMBOL_MODULE_CHANGED ? CODE_CHANGED : CODE_MISSING;
        symbol_module_cache_release(all->modules);
    }
    if (problem != CODE_PROBLEMS && is_named) {
        note_problem(all, problem, wanted->file_name);
    } else if (problem != CODE_PROBLEMS && all->unnamed_problem == CODE_PROBLEMS) {
        all->unnamed_problem = problem;
        all->unnamed_file = wanted->file_name;
    }
    return is_done;
}

static int compare_files(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;
    if (a->file_name.index != b->file_name.index) return a->file_name.index < b->file_name.index ? -1 : 1;
    return (a->build_id.index > b->build_id.index) - (a->build_id.index < b->build_id.index);
}

static void collect_locations(struct finder *finder, const bool *is_used)
{
    struct code_functions *all = finder->all;
    struct profile *profile = all->profile;
    for (uint32_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        const struct mapping *mapping = profile_mapping(profile, location->mapping);
        if (!is_used[i]) continue;
        note_inlined(all, i);
        if (location->address != 0 && mapping_has_file(profile, mapping) && mapping_has_place(mapping)) {
            finder->wanted[finder->wanted_count++] = (struct wanted){.location = i,
                                                                     .mapping = location->mapping,
                                                                     .file_name = mapping->file_name,
                                                                     .build_id = mapping_build_id(profile, mapping)};
        } else if (location_matches(all, i)) {
            note_problem(all, CODE_UNPLACED, mapping->file_name);
        }
    }
    qsort(finder->wanted, finder->wanted_count, sizeof(*finder->wanted), compare_files);
}

static bool find_all(struct finder *finder)
{
    size_t count = finder->wanted_count;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count; end++) {
            if (compare_files(&finder->wanted[first], &finder->wanted[end]) != 0) break;
        }
        if (!find_in_file(finder, finder->wanted + first, end - first)) return false;
    }
    return true;
}

static int compare_functions(const void *left, const void *right, void *context)
{
    const struct code_function *a = left, *b = right;
    const struct profile *profile = context;
    int order = strcmp(profile_c_string(profile, a->name), profile_c_string(profile, b->name));
    if (order != 0) return order;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return (a->mapping.index > b->mapping.index) - (a->mapping.index < b->mapping.index);
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

/* Each place is in an instruction. Functions whose code cannot be read are removed. */
static enum status find_instructions(struct code_functions *all, struct error *error)
{
    struct disassembly code;
    enum status status = STATUS_OK;
    size_t kept = 0;
    disassembly_init(&code);
    for (size_t i = 0; status != STATUS_NO_MEMORY && i < all->count; i++) {
        const struct code_function *function = &all->items[i];
        struct string_id file = profile_mapping(all->profile, function->mapping)->file_name;
        struct symbol_module *module;
        struct error problem = {0};
        bool is_open = open_module(all, file, function->build_id, &module) == SYMBOL_MODULE_OPEN && module->has_binary;
        status = is_open ? disassemble(&code, &module->binary, function->start, function->end, false, &problem)
                         : error_set(&problem, STATUS_NOT_FOUND, 0, "the file is gone");
        symbol_module_cache_release(all->modules);
        if (status != STATUS_OK) {
            if (all->problem_counts[CODE_UNREAD] == 0) all->problem = problem;
            note_problem(all, CODE_UNREAD, file);
            continue;
        }
        for (size_t p = function->place_first; p < function->place_first + function->place_count; p++)
            all->places[p].instruction = code.items[disassembly_find(&code, all->places[p].address)].address;
        all->items[kept++] = all->items[i];
    }
    all->count = kept;
    disassembly_fini(&code);
    if (status == STATUS_NO_MEMORY) return error_set(error, status, 0, "not enough memory for the instructions");
    return STATUS_OK;
}

enum status code_functions_find(struct code_functions *functions, struct profile *profile, const bool *is_used,
                                const struct code_options *options, struct error *error)
{
    struct finder finder = {.all = functions};
    *functions = (struct code_functions){.profile = profile,
                                         .options = *options,
                                         .modules = symbol_module_cache_new(),
                                         .unnamed_problem = CODE_PROBLEMS};
    size_t folder_count = options->debug_folder_count;
    for (size_t i = 0; i < folder_count; i++) functions->folders[i] = options->debug_folders[i];
    functions->folders[folder_count] = "/usr/lib/debug";
    functions->directories = (struct debug_sources){.items = functions->folders, .count = folder_count + 1};
    buffer_init(&finder.text, DEMANGLED_BYTES_MAX + 1);
    finder.wanted = calloc(profile->locations.count, sizeof(*finder.wanted));
    bool is_done = functions->modules && finder.wanted;
    if (is_done) collect_locations(&finder, is_used);
    is_done = is_done && find_all(&finder);
    free(finder.wanted);
    buffer_fini(&finder.text);
    if (!is_done) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the functions of the files");
    if (functions->count > 0)
        qsort_r(functions->items, functions->count, sizeof(*functions->items), compare_functions, profile);
    enum status status = find_instructions(functions, error);
    return status == STATUS_OK ? profile_failed(profile, error) : status;
}

void code_functions_fini(struct code_functions *functions)
{
    symbol_module_cache_free(functions->modules);
    free(functions->items);
    free(functions->places);
    *functions = (struct code_functions){0};
}

static struct string_id string_of(struct code_functions *functions, struct symbol_module *module, uint32_t text)
{
    return profile_string(functions->profile, symbol_index_text(&module->names, text));
}

/* Finds the source of INSTRUCTION. Without names, it is shown without lines. */
static void find_source(struct code_functions *functions, const struct code_function *function,
                        struct symbol_module *module, const struct instruction *instruction,
                        struct code_source_location *source)
{
    struct name_answer answer;
    if (!symbol_index_find(&module->names, instruction->address, &answer)) return;
    if (answer.source == NAME_BY_DWARF && answer.frame_count > 0) {
        const struct name_frame *innermost = &answer.frames[0];
        source->function = string_of(functions, module, innermost->name);
        source->file = string_of(functions, module, innermost->file);
        source->line = innermost->line;
    }
    bool is_outside = instruction->target < function->start || instruction->target >= function->end;
    if (instruction->target == 0 || !is_outside) return;
    if (!symbol_index_find(&module->names, instruction->target, &answer) || answer.source <= NAME_BY_BOUNDARY) return;
    if (answer.frame_count > 0)
        source->target = string_of(functions, module, answer.frames[answer.frame_count - 1].name);
}

enum status code_function_read(struct code_functions *functions, const struct code_function *function,
                               struct disassembly *disassembly, struct code_source_location **ret_sources,
                               struct error *error)
{
    struct symbol_module *module;
    struct string_id file = profile_mapping(functions->profile, function->mapping)->file_name;
    if (open_module(functions, file, function->build_id, &module) != SYMBOL_MODULE_OPEN || !module->has_binary)
        return error_set(error, STATUS_NOT_FOUND, 0, "%s is gone", profile_c_string(functions->profile, file));
    enum status status = disassemble(disassembly, &module->binary, function->start, function->end,
                                     functions->options.is_intel_syntax, error);
    if (status == STATUS_OK) status = symbol_module_read_names(module, error);
    struct code_source_location *sources =
        status == STATUS_OK ? calloc(disassembly->count + 1, sizeof(*sources)) : NULL;
    for (size_t i = 0; sources && i < disassembly->count; i++)
        find_source(functions, function, module, &disassembly->items[i], &sources[i]);
    symbol_module_cache_release(functions->modules);
    if (status == STATUS_OK && !sources)
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the lines of the code");
    if (status == STATUS_OK) *ret_sources = sources;
    return status;
}
