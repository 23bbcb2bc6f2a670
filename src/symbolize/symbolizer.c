/* Collects the locations that want a name, groups them by file, and asks each file once for all of its addresses.
 * SPDX-License-Identifier: MIT */
#include "symbolize/symbolizer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "binary/contents_id.h"
#include "profile/frame_kind.h"
#include "symbolize/jit_names.h"
#include "symbolize/kernel_names.h"
#include "symbolize/mapped_file.h"

enum { SYMBOLS_IN_FILES = SYMBOLS_FILES | SYMBOLS_DEBUG_FILES | SYMBOLS_DEBUGINFOD };

struct wanted {
    uint32_t location;
    struct mapping_id mapping;
    struct string_id file_name, build_id; /* names of the mapping; locations with equal ones belong to one module */
    uint64_t file_address;
    int64_t pid; /* process that has the code; only for code without a file */
};

/* The numbers of a frame in the index of a module, and its function in the profile. */
struct known_function {
    uint32_t function, file;
    struct function_id id;
};

struct symbolizer {
    struct profile *profile;
    struct symbolizer_options options;
    const char *directories[SYMBOLIZER_DEBUG_DIRECTORIES_MAX + 1];
    struct debug_sources debug_sources;
    struct wanted *wanted;
    size_t wanted_count; /* number in files; up to all_count come those in code without a file */
    size_t all_count;
    INDEXED_ARRAY_OF(struct known_function) known; /* known functions of the module that is asked */
    struct symbolizer_result result;
};

/* A source of names. FIND names the locations that it knows; a place that has lines already is another source's. */
struct symbol_source {
    unsigned kinds; /* bits of enum symbol_sources: the source is asked if one of them is allowed */
    enum status (*find)(struct symbolizer *symbolizer, struct error *error);
    void (*close)(struct symbolizer *symbolizer); /* function that ends FIND; may be NULL */
};

/* --- What is wanted ----------------------------------------------------------------------------------------------- */

/* The process that the profile describes; 0 if it does not say. */
static int64_t pid_of_metadata(const struct profile *profile)
{
    int64_t pid = profile_metadata_number(profile, "pid");
    return pid != 0 ? pid : strtoll(profile_metadata_text(profile, "pid"), NULL, 10);
}

/* Code that a program made while it ran. The process of its memory is asked for names, else the profile's process. */
static void collect_without_file(struct symbolizer *symbolizer)
{
    const struct profile *profile = symbolizer->profile;
    int64_t pid = pid_of_metadata(profile);
    symbolizer->all_count = symbolizer->wanted_count;
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        const struct mapping *mapping = profile_mapping(profile, location->mapping);
        bool is_in_file = location->mapping.index != 0 && mapping_has_file(profile, mapping);
        if (location->line_count > 0 || location->address == 0 || is_in_file) continue;
        int64_t own_pid = profile_process(profile, mapping->process)->pid;
        symbolizer->wanted[symbolizer->all_count++] =
            (struct wanted){.location = (uint32_t)i, .file_address = location->address, .pid = own_pid ? own_pid : pid};
    }
}

static bool collect_locations(struct symbolizer *symbolizer)
{
    struct profile *profile = symbolizer->profile;
    symbolizer->wanted = calloc(profile->locations.count + 1, sizeof(*symbolizer->wanted));
    if (!symbolizer->wanted) return false;
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        if (location->line_count > 0) continue;
        symbolizer->result.locations++;
        const struct mapping *mapping = profile_mapping(profile, location->mapping);
        bool is_in_file =
            location->mapping.index != 0 && mapping_has_file(profile, mapping) && mapping_has_place(mapping);
        if (!is_in_file || !(symbolizer->options.sources & SYMBOLS_IN_FILES)) continue;
        symbolizer->wanted[symbolizer->wanted_count++] = (struct wanted){
            .location = (uint32_t)i,
            .mapping = location->mapping,
            .file_name = mapping->file_name,
            .build_id = mapping_build_id(profile, mapping),
        };
    }
    collect_without_file(symbolizer);
    return true;
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_by_file(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;
    if (a->file_name.index != b->file_name.index) return order(a->file_name.index, b->file_name.index);
    if (a->build_id.index != b->build_id.index) return order(a->build_id.index, b->build_id.index);
    if (a->mapping.index != b->mapping.index) return order(a->mapping.index, b->mapping.index);
    return order(a->location, b->location);
}

static int compare_by_address(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;
    if (a->pid != b->pid) return order((uint64_t)a->pid, (uint64_t)b->pid);
    return order(a->file_address, b->file_address);
}

/* --- One module --------------------------------------------------------------------------------------------------- */

/* Moves the wanted addresses that are in the file to the front of the COUNT, sorted; returns how many. */
static size_t sort_by_address(const struct symbolizer *symbolizer, const struct symbol_module *module,
                              struct wanted *wanted, size_t count)
{
    const struct profile *profile = symbolizer->profile;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = profile->locations.items[wanted[i].location].address;
        struct wanted one = wanted[i];
        if (mapping_file_address(module, profile_mapping(profile, one.mapping), address, &one.file_address))
            wanted[kept++] = one;
    }
    if (kept > 0) qsort(wanted, kept, sizeof(*wanted), compare_by_address);
    return kept;
}

static void mark_mapping(struct mapping *mapping, const struct name_answer *answer)
{
    mapping->has_functions |= answer->source > NAME_BY_BOUNDARY;
    mapping->has_inline_frames |= answer->source == NAME_BY_DWARF;
    for (uint32_t i = 0; i < answer->frame_count; i++) {
        mapping->has_filenames |= answer->frames[i].file != 0;
        mapping->has_line_numbers |= answer->frames[i].line > 0;
    }
}

/* "libx.so.1+0x1234" for a function that is known by nothing but its first address. */
static struct string_id name_by_boundary(struct profile *profile, const char *path, uint64_t boundary)
{
    char name[NAME_MAX + 32];
    const char *slash = strrchr(path, '/');
    snprintf(name, sizeof(name), "%.*s+0x%" PRIx64, NAME_MAX, slash ? slash + 1 : path, boundary);
    return profile_text(profile, name);
}

static bool is_known(const void *context, uint32_t index, const void *key)
{
    const struct known_function *known = &((const struct symbolizer *)context)->known.items[index], *wanted = key;
    return known->function == wanted->function && known->file == wanted->file;
}

/* Numbers mean something else in the next index. */
static void forget_functions(struct symbolizer *symbolizer)
{
    index_table_fini(&symbolizer->known.index);
    symbolizer->known.count = 0;
}

static struct function_id add_function(struct symbolizer *symbolizer, struct symbol_module *module,
                                       const struct name_answer *answer, const struct name_frame *frame)
{
    struct profile *profile = symbolizer->profile;
    struct symbol_index *names = &module->names;
    struct function function = {
        .name = answer->source == NAME_BY_BOUNDARY ? name_by_boundary(profile, module->path, answer->boundary)
                                                   : profile_string(profile, symbol_index_text(names, frame->name)),
        .system_name = profile_string(profile, symbol_index_text(names, frame->system_name)),
        .file_name = profile_string(profile, symbol_index_text(names, frame->file)),
        .start_line = frame->start_line,
    };
    if (function.system_name.index == 0) function.system_name = function.name;
    return profile_add_function(profile, &function);
}

/* Long names of C++ are read and hashed once. */
static struct function_id function_of_frame(struct symbolizer *symbolizer, struct symbol_module *module,
                                            const struct name_answer *answer, const struct name_frame *frame)
{
    struct known_function wanted = {.function = frame->function, .file = frame->file};
    uint64_t hash = hash_mix(wanted.function, wanted.file);
    uint32_t known = index_table_find(&symbolizer->known.index, hash, is_known, symbolizer, &wanted);
    if (known != INDEX_NONE) return symbolizer->known.items[known].id;
    wanted.id = add_function(symbolizer, module, answer, frame);
    bool is_one = answer->source != NAME_BY_BOUNDARY && !module->names.failed;
    if (is_one) (void)INDEXED_ARRAY_PUSH(&symbolizer->known, PROFILE_ENTITIES_MAX, hash, wanted);
    return wanted.id;
}

static void take_answer(struct symbolizer *symbolizer, const struct wanted *wanted, const struct name_answer *answer,
                        const struct line *lines)
{
    struct profile *profile = symbolizer->profile;
    profile_set_lines(profile, (struct location_id){wanted->location}, lines, answer->frame_count);
    mark_mapping(&profile->mappings.items[wanted->mapping.index], answer);
    if (answer->source == NAME_BY_BOUNDARY)
        symbolizer->result.by_boundary++;
    else
        symbolizer->result.named++;
}

/* False if the index of MODULE has failed. */
static bool name_location(struct symbolizer *symbolizer, struct symbol_module *module, const struct wanted *wanted)
{
    struct name_answer answer;
    struct line lines[SYMBOL_INDEX_FRAMES_MAX];
    if (!symbol_index_find(&module->names, wanted->file_address, &answer)) return false;
    for (uint32_t i = 0; i < answer.frame_count; i++) {
        const struct name_frame *frame = &answer.frames[i];
        struct function_id function = function_of_frame(symbolizer, module, &answer, frame);
        lines[i] = (struct line){.function = function, .line = frame->line, .column = frame->column};
    }
    if (module->names.failed) return false;
    if (answer.frame_count > 0) take_answer(symbolizer, wanted, &answer, lines);
    return true;
}

static enum status name_module(struct symbolizer *symbolizer, struct symbol_module *module, struct wanted *wanted,
                               size_t count, struct error *error)
{
    count = sort_by_address(symbolizer, module, wanted, count);
    enum status status = count > 0 ? symbol_module_read_names(module, error) : STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        if (name_location(symbolizer, module, &wanted[i])) continue;
        forget_functions(symbolizer);
        status = symbol_module_renew_names(module, error);
        if (status == STATUS_OK) (void)name_location(symbolizer, module, &wanted[i]);
    }
    forget_functions(symbolizer);
    return status;
}

/* WANTED is sorted by mapping. */
static size_t count_mappings(const struct wanted *wanted, size_t count)
{
    size_t mappings = 0;
    for (size_t i = 0; i < count; i++) mappings += i == 0 || wanted[i].mapping.index != wanted[i - 1].mapping.index;
    return mappings;
}

static enum symbol_module_state open_module(const struct symbolizer *symbolizer, const char *path, const char *build_id,
                                            struct symbol_module **module)
{
    struct symbol_module_cache *modules = symbolizer->options.modules;
    if (modules) return symbol_module_cache_open(modules, path, build_id, &symbolizer->debug_sources, module);
    return symbol_module_open(*module, path, build_id, &symbolizer->debug_sources);
}

static enum status name_group(struct symbolizer *symbolizer, struct wanted *wanted, size_t count, struct error *error)
{
    struct symbol_module own, *module = &own;
    const char *path = profile_c_string(symbolizer->profile, wanted->file_name);
    const char *build_id = profile_c_string(symbolizer->profile, wanted->build_id);
    if (build_id[0] == '\0' && !symbolizer->options.trusts_paths) {
        symbolizer->result.files_unproven += count_mappings(wanted, count);
        return STATUS_OK;
    }
    enum symbol_module_state state = open_module(symbolizer, path, build_id, &module);
    enum status status = STATUS_OK;
    if (state == SYMBOL_MODULE_OPEN) status = name_module(symbolizer, module, wanted, count, error);
    if (state == SYMBOL_MODULE_MISSING) symbolizer->result.files_missing += count_mappings(wanted, count);
    if (state == SYMBOL_MODULE_CHANGED) symbolizer->result.files_changed += count_mappings(wanted, count);
    if (symbolizer->options.modules)
        symbol_module_cache_release(symbolizer->options.modules);
    else
        symbol_module_close(&own);
    return status;
}

/* --- Code without a file ------------------------------------------------------------------------------------------ */

static void name_jit_location(struct symbolizer *symbolizer, const struct wanted *wanted, const char *name)
{
    struct profile *profile = symbolizer->profile;
    struct slice file;
    struct function function = {.name = profile_text(profile, name), .package = profile_text(profile, JIT_PACKAGE)};
    function.system_name = function.name;
    if (jit_name_place(name, &file, &function.start_line)) function.file_name = profile_string(profile, file);
    struct line line = {.function = profile_add_function(profile, &function)};
    profile_set_lines(profile, (struct location_id){wanted->location}, &line, 1);
    symbolizer->result.named++;
}

/* Finds the names of COUNT ADDRESSES of process PID in the map that the recorder has kept, or in that of this machine.
 */
static bool find_jit_names(const struct symbolizer *symbolizer, int64_t pid, const uint64_t *addresses, size_t count,
                           struct jit_names *ret_names)
{
    enum { NANOSECONDS = 1000000000, CLOCKS_DIFFER_SECONDS = 2 };
    char path[PATH_MAX];
    const char *directory = symbolizer->options.map_directory;
    (void)snprintf(path, sizeof(path), "%s/maps/perf-%" PRId64 ".map", directory ? directory : "", pid);
    if (directory && jit_names_find_kept(ret_names, path, addresses, count)) return true;
    (void)snprintf(path, sizeof(path), "/tmp/perf-%" PRId64 ".map", pid);
    int64_t start = (int64_t)(symbolizer->profile->time_ns / NANOSECONDS) - CLOCKS_DIFFER_SECONDS;
    return jit_names_find(ret_names, path, start, addresses, count);
}

/* All of WANTED have one pid and are in order of their addresses. */
static bool name_by_map(struct symbolizer *symbolizer, const struct wanted *wanted, size_t count)
{
    uint64_t *addresses = calloc(count, sizeof(*addresses));
    if (!addresses) return false;
    for (size_t i = 0; i < count; i++) addresses[i] = wanted[i].file_address;
    struct jit_names names;
    bool ok = find_jit_names(symbolizer, wanted->pid, addresses, count, &names);
    for (size_t i = 0; ok && i < count; i++)
        if (names.by_address[i]) name_jit_location(symbolizer, &wanted[i], names.by_address[i]);
    jit_names_fini(&names);
    free(addresses);
    return ok;
}

/* Each process has its map. */
static enum status find_in_perf_maps(struct symbolizer *symbolizer, struct error *error)
{
    struct wanted *wanted = symbolizer->wanted + symbolizer->wanted_count;
    size_t count = symbolizer->all_count - symbolizer->wanted_count, size;
    if (count > 0) qsort(wanted, count, sizeof(*wanted), compare_by_address);
    for (size_t done = 0; done < count; done += size) {
        for (size = 1; done + size < count && wanted[done + size].pid == wanted[done].pid; size++) {
        }
        if (wanted[done].pid > 0 && !name_by_map(symbolizer, wanted + done, size))
            return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the names of %zu places", size);
    }
    return STATUS_OK;
}

/* --- The kernel --------------------------------------------------------------------------------------------------- */

static enum status find_in_kernel(struct symbolizer *symbolizer, struct error *error)
{
    size_t named;
    enum status status = kernel_names_give(symbolizer->profile, symbolizer->options.kernel,
                                           symbolizer->options.trusts_paths, &named, error);
    symbolizer->result.named += named;
    return status;
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static size_t group_size(const struct wanted *wanted, size_t count)
{
    size_t size = 1;
    while (size < count && wanted[size].file_name.index == wanted->file_name.index &&
           wanted[size].build_id.index == wanted->build_id.index)
        size++;
    return size;
}

static void set_debug_sources(struct symbolizer *symbolizer)
{
    const struct symbolizer_options *options = &symbolizer->options;
    struct debug_sources *sources = &symbolizer->debug_sources;
    size_t count = options->debug_directory_count;
    if (count > SYMBOLIZER_DEBUG_DIRECTORIES_MAX) count = SYMBOLIZER_DEBUG_DIRECTORIES_MAX;
    for (size_t i = 0; i < count; i++) symbolizer->directories[i] = options->debug_directories[i];
    symbolizer->directories[count] = "/usr/lib/debug";
    sources->items = symbolizer->directories;
    sources->count = options->sources & SYMBOLS_DEBUG_FILES ? count + 1 : 0;
    sources->opens_no_path = !(options->sources & SYMBOLS_FILES);
    if (options->sources & SYMBOLS_DEBUGINFOD)
        sources->server = debug_server_open(options->fetch_progress, options->context);
}

static enum status find_in_files(struct symbolizer *symbolizer, struct error *error)
{
    size_t count = symbolizer->wanted_count;
    const struct symbolizer_options *options = &symbolizer->options;
    set_debug_sources(symbolizer);
    if (count > 0) qsort(symbolizer->wanted, count, sizeof(*symbolizer->wanted), compare_by_file);
    enum status status = STATUS_OK;
    for (size_t done = 0; status == STATUS_OK && done < count;) {
        if (options->progress) options->progress(options->context, done, count);
        size_t size = group_size(symbolizer->wanted + done, count - done);
        status = name_group(symbolizer, symbolizer->wanted + done, size, error);
        done += size;
    }
    if (status == STATUS_OK && options->progress) options->progress(options->context, count, count);
    return status;
}

static void close_files(struct symbolizer *symbolizer)
{
    debug_server_close(symbolizer->debug_sources.server);
    free(symbolizer->known.items);
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

static enum status name_all(struct symbolizer *symbolizer, struct error *error)
{
    static const struct symbol_source sources[] = {
        {SYMBOLS_IN_FILES, find_in_files, close_files},
        {SYMBOLS_PERF_MAPS, find_in_perf_maps, NULL},
        {SYMBOLS_KERNEL, find_in_kernel, NULL},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (!(sources[i].kinds & symbolizer->options.sources)) continue;
        status = sources[i].find(symbolizer, error);
        if (sources[i].close) sources[i].close(symbolizer);
    }
    return status == STATUS_OK ? profile_failed(symbolizer->profile, error) : status;
}

/* --- Files without a build id --------------------------------------------------------------------------------------
 */

static bool read_id(const char *path, char ret_text[DEBUG_ID_TEXT_SIZE])
{
    struct elf_file file;
    char hex[BUILD_ID_START_SIZE];
    if (elf_file_open(&file, path, NULL) != STATUS_OK) return false;
    bool is_read = contents_id_of(&file, hex);
    elf_file_close(&file);
    return is_read && debug_id_from_build_id(slice_of_text(hex), ret_text);
}

/* A file has several mappings; the id of the one before is the same then. */
void contents_ids_give(struct profile *profile)
{
    struct string_id last_file = {0}, last_id = {0};
    for (size_t i = 1; i < profile->mappings.count; i++) {
        struct mapping *mapping = &profile->mappings.items[i];
        char text[DEBUG_ID_TEXT_SIZE];
        const char *path = profile_c_string(profile, mapping->file_name);
        if (mapping->build_id.index != 0 || mapping->debug_id.index != 0 || path[0] != '/') continue;
        if (mapping->file_name.index != last_file.index) {
            last_file = mapping->file_name;
            last_id = read_id(path, text) ? profile_text(profile, text) : (struct string_id){0};
        }
        mapping->debug_id = last_id;
    }
}

enum status symbolize_profile(struct profile *profile, const struct symbolizer_options *options,
                              struct symbolizer_result *ret_result, struct error *error)
{
    struct symbolizer symbolizer = {.profile = profile, .options.sources = SYMBOLS_OF_THIS_MACHINE};
    if (options) symbolizer.options = *options;
    enum status status = collect_locations(&symbolizer)
                             ? name_all(&symbolizer, error)
                             : error_set(error, STATUS_NO_MEMORY, 0, "no memory for the locations");
    free(symbolizer.wanted);
    if (symbolizer.options.trusts_paths) contents_ids_give(profile);
    if (status == STATUS_OK && ret_result) *ret_result = symbolizer.result;
    return status;
}
