/* Collects the locations that want a name, groups them by file, and asks each file once for all of its addresses.
 * SPDX-License-Identifier: MIT */
#include "symbolize/symbolizer.h"

#include <stdlib.h>

#include "symbolize/module.h"

struct wanted {
    uint32_t location;
    struct mapping_id mapping;
    struct string_id file_name, build_id; /* of the mapping: what makes locations belong to one module */
    uint64_t file_address;
};

struct symbolizer {
    struct profile *profile;
    struct symbolizer_options options;
    const char *directories[SYMBOLIZER_DEBUG_DIRECTORIES_MAX + 1];
    struct debug_directories debug_directories;
    struct wanted *wanted;
    size_t wanted_count;
    struct symbolizer_result result;
};

/* --- What is wanted ----------------------------------------------------------------------------------------------- */

/* Anonymous memory and what the kernel names in brackets has no file; the vdso is one all the same. */
static bool has_file(const struct profile *profile, const struct mapping *mapping)
{
    const char *name = profile_c_string(profile, mapping->file_name);
    return name[0] == '/' || strcmp(name, "[vdso]") == 0;
}

static bool collect(struct symbolizer *symbolizer)
{
    const struct profile *profile = symbolizer->profile;
    symbolizer->wanted = calloc(profile->locations.count + 1, sizeof(*symbolizer->wanted));
    if (!symbolizer->wanted) return false;
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        if (location->line_count > 0) continue;
        symbolizer->result.locations++;
        const struct mapping *mapping = profile_mapping(profile, location->mapping);
        if (location->mapping.index == 0 || !has_file(profile, mapping)) continue;
        symbolizer->wanted[symbolizer->wanted_count++] = (struct wanted){
            .location = (uint32_t)i,
            .mapping = location->mapping,
            .file_name = mapping->file_name,
            .build_id = mapping->build_id,
        };
    }
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
    return order(a->file_address, b->file_address);
}

/* --- One module --------------------------------------------------------------------------------------------------- */

/* Where ADDRESS, which lay in MAPPING, lies in the file. Without the loaded file, whose segments tell, only a recorder
 * that noted where the image began can be followed. */
static bool file_address(const struct module *module, const struct mapping *mapping, uint64_t address,
                         uint64_t *ret_address)
{
    if (module->has_binary)
        return elf_file_address_of_offset(&module->binary, address - mapping->start + mapping->file_offset,
                                          ret_address);
    if (mapping->image_start == 0 || address < mapping->image_start) return false;
    *ret_address = address - mapping->image_start + mapping->image_vmaddr;
    return true;
}

/* Puts those of the COUNT wanted that lie in the file to the front, by address; returns how many. */
static size_t sort_by_address(const struct symbolizer *symbolizer, const struct module *module, struct wanted *wanted,
                              size_t count)
{
    const struct profile *profile = symbolizer->profile;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = profile->locations.items[wanted[i].location].address;
        struct wanted one = wanted[i];
        if (file_address(module, profile_mapping(profile, one.mapping), address, &one.file_address))
            wanted[kept++] = one;
    }
    if (kept > 0) qsort(wanted, kept, sizeof(*wanted), compare_by_address);
    return kept;
}

struct group {
    struct symbolizer *symbolizer;
    const struct wanted *wanted; /* by address */
};

static void mark_mapping(struct mapping *mapping, const struct module_frame *frames, uint32_t frame_count,
                         enum module_source source)
{
    mapping->has_functions |= source > MODULE_BY_BOUNDARY;
    mapping->has_inline_frames |= source == MODULE_BY_DWARF;
    for (uint32_t i = 0; i < frame_count; i++) {
        mapping->has_filenames |= frames[i].file_name[0] != '\0';
        mapping->has_line_numbers |= frames[i].line > 0;
    }
}

static struct string_id file_name(struct profile *profile, const struct module_frame *frame)
{
    if (frame->directory[0] == '\0') return profile_text(profile, frame->file_name);
    struct buffer path;
    buffer_init(&path, PROFILE_STRING_BYTES_MAX);
    buffer_append_format(&path, "%s/%s", frame->directory, frame->file_name);
    struct string_id id = profile_string(profile, buffer_slice(&path));
    buffer_fini(&path);
    return id;
}

static void take_answer(void *context, size_t index, const struct module_frame *frames, uint32_t frame_count,
                        enum module_source source)
{
    const struct group *group = context;
    struct symbolizer *symbolizer = group->symbolizer;
    struct profile *profile = symbolizer->profile;
    const struct wanted *wanted = &group->wanted[index];
    if (source == MODULE_UNNAMED) return;
    struct line lines[MODULE_FRAMES_MAX];
    for (uint32_t i = 0; i < frame_count; i++) {
        const struct module_frame *frame = &frames[i];
        struct function function = {
            .name = profile_text(profile, frame->name),
            .system_name = profile_text(profile, frame->system_name),
            .file_name = file_name(profile, frame),
            .start_line = frame->start_line,
        };
        lines[i].function = profile_add_function(profile, &function);
        lines[i].line = frame->line;
        lines[i].column = frame->column;
    }
    profile_set_lines(profile, (struct location_id){wanted->location}, lines, frame_count);
    mark_mapping(&profile->mappings.items[wanted->mapping.index], frames, frame_count, source);
    if (source == MODULE_BY_BOUNDARY)
        symbolizer->result.by_boundary++;
    else
        symbolizer->result.named++;
}

static enum status name_module(struct symbolizer *symbolizer, struct module *module, struct wanted *wanted,
                               size_t count, struct error *error)
{
    count = sort_by_address(symbolizer, module, wanted, count);
    uint64_t *addresses = calloc(count + 1, sizeof(*addresses));
    if (!addresses) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for %zu addresses", count);
    for (size_t i = 0; i < count; i++) addresses[i] = wanted[i].file_address;
    struct group group = {.symbolizer = symbolizer, .wanted = wanted};
    enum status status = module_find(module, addresses, count, take_answer, &group, error);
    free(addresses);
    return status;
}

/* WANTED is sorted by mapping. */
static size_t count_mappings(const struct wanted *wanted, size_t count)
{
    size_t mappings = 0;
    for (size_t i = 0; i < count; i++) mappings += i == 0 || wanted[i].mapping.index != wanted[i - 1].mapping.index;
    return mappings;
}

static enum status name_group(struct symbolizer *symbolizer, struct wanted *wanted, size_t count, struct error *error)
{
    struct module module;
    enum module_state state;
    const char *path = profile_c_string(symbolizer->profile, wanted->file_name);
    const char *build_id = profile_c_string(symbolizer->profile, wanted->build_id);
    enum status status = module_open(&module, path, build_id, &symbolizer->debug_directories, &state, error);
    if (status == STATUS_OK && state == MODULE_OPEN) status = name_module(symbolizer, &module, wanted, count, error);
    if (status == STATUS_OK && state == MODULE_MISSING)
        symbolizer->result.files_missing += count_mappings(wanted, count);
    if (status == STATUS_OK && state == MODULE_CHANGED)
        symbolizer->result.files_changed += count_mappings(wanted, count);
    module_close(&module);
    return status;
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

static size_t group_size(const struct wanted *wanted, size_t count)
{
    size_t size = 1;
    while (size < count && wanted[size].file_name.index == wanted->file_name.index &&
           wanted[size].build_id.index == wanted->build_id.index)
        size++;
    return size;
}

static enum status name_all(struct symbolizer *symbolizer, struct error *error)
{
    size_t count = symbolizer->wanted_count;
    const struct symbolizer_options *options = &symbolizer->options;
    if (count > 0) qsort(symbolizer->wanted, count, sizeof(*symbolizer->wanted), compare_by_file);
    enum status status = STATUS_OK;
    for (size_t done = 0; status == STATUS_OK && done < count;) {
        if (options->progress) options->progress(options->context, done, count);
        size_t size = group_size(symbolizer->wanted + done, count - done);
        status = name_group(symbolizer, symbolizer->wanted + done, size, error);
        done += size;
    }
    if (status == STATUS_OK && options->progress) options->progress(options->context, count, count);
    return status == STATUS_OK ? profile_failed(symbolizer->profile, error) : status;
}

static void set_directories(struct symbolizer *symbolizer)
{
    size_t count = symbolizer->options.debug_directory_count;
    if (count > SYMBOLIZER_DEBUG_DIRECTORIES_MAX) count = SYMBOLIZER_DEBUG_DIRECTORIES_MAX;
    for (size_t i = 0; i < count; i++) symbolizer->directories[i] = symbolizer->options.debug_directories[i];
    symbolizer->directories[count] = "/usr/lib/debug";
    symbolizer->debug_directories = (struct debug_directories){symbolizer->directories, count + 1};
}

enum status symbolize_profile(struct profile *profile, const struct symbolizer_options *options,
                              struct symbolizer_result *ret_result, struct error *error)
{
    struct symbolizer symbolizer = {.profile = profile};
    if (options) symbolizer.options = *options;
    set_directories(&symbolizer);
    enum status status = collect(&symbolizer) ? name_all(&symbolizer, error)
                                              : error_set(error, STATUS_NO_MEMORY, 0, "no memory for the locations");
    free(symbolizer.wanted);
    if (status == STATUS_OK && ret_result) *ret_result = symbolizer.result;
    return status;
}
