/* Finds the files that belong together and the index of what they say.  SPDX-License-Identifier: MIT */
#include "symbolize/symbol_module.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "binary/contents_id.h"
#include "binary/debug_id.h"
#include "symbolize/index_store.h"
#include "symbolize/symbol_index_build.h"

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static enum status open_vdso(struct elf_file *file)
{
    uintptr_t address = getauxval(AT_SYSINFO_EHDR);
    if (address == 0) return STATUS_NOT_FOUND;
    const uint8_t *start = (const uint8_t *)address; /* the kernel's own: its headers need no check */
    const Elf64_Ehdr *header = (const void *)start;
    const Elf64_Phdr *segments = (const void *)(start + header->e_phoff);
    size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_offset + segments[i].p_filesz > size) size = segments[i].p_offset + segments[i].p_filesz;
    return elf_file_open_memory(file, slice_of(start, size), NULL);
}

/* A build id may be known by its first 16 bytes only: those that a debug id contains. */
static bool is_same_build(const char *build_id, const char *wanted)
{
    size_t size = strlen(wanted);
    if (size == BUILD_ID_START_SIZE - 1) return strncmp(build_id, wanted, size) == 0;
    return strcmp(build_id, wanted) == 0;
}

/* A file without a build id is known by its code (symbolizer.h). */
static bool has_same_code(const struct elf_file *file, const char *wanted)
{
    char id[BUILD_ID_START_SIZE];
    return contents_id_of(file, id) && strcmp(id, wanted) == 0;
}

static enum symbol_module_state open_binary(struct symbol_module *module, const char *build_id,
                                            const struct debug_sources *sources)
{
    bool is_vdso = strcmp(module->path, "[vdso]") == 0;
    if (sources->opens_no_path && !is_vdso) return SYMBOL_MODULE_MISSING;
    enum status status = is_vdso ? open_vdso(&module->binary) : elf_file_open(&module->binary, module->path, NULL);
    if (status != STATUS_OK) return SYMBOL_MODULE_MISSING;
    if (is_same_build(module->binary.build_id, build_id) || has_same_code(&module->binary, build_id) ||
        (build_id[0] == '\0' && !is_vdso)) {
        module->has_binary = true;
        return SYMBOL_MODULE_OPEN;
    }
    elf_file_close(&module->binary);
    return SYMBOL_MODULE_CHANGED;
}

static bool has_dwarf(const struct elf_file *file)
{
    const struct elf_section *section = elf_file_section(file, ".debug_info");
    if (!section) section = elf_file_section(file, ".zdebug_info");
    return section && section->has_bytes;
}

static void open_debug_file(struct symbol_module *module, const char *build_id, const struct debug_sources *sources)
{
    if (module->has_binary && has_dwarf(&module->binary)) return;
    if (module->has_binary) build_id = module->binary.build_id;
    module->has_debug = debug_file_open_by_build_id(&module->debug, build_id, sources);
    if (!module->has_debug && module->has_binary)
        module->has_debug = debug_file_open_by_link(&module->debug, &module->binary, module->path, sources);
    if (!module->has_debug) module->has_debug = debug_file_open_from_server(&module->debug, build_id, sources);
}

/* The file whose debug information is read; the other one, if there are two, was stripped. */
static const struct elf_file *debug_source(const struct symbol_module *module)
{
    return module->has_debug ? &module->debug : &module->binary;
}

enum symbol_module_state symbol_module_open(struct symbol_module *module, const char *path, const char *build_id,
                                            const struct debug_sources *sources)
{
    *module = (struct symbol_module){.path = path};
    enum symbol_module_state state = open_binary(module, build_id, sources);
    open_debug_file(module, build_id, sources);
    if (!module->has_binary && !module->has_debug) return state;
    module->has_alternate = debug_file_open_alternate(&module->alternate, debug_source(module), sources);
    return SYMBOL_MODULE_OPEN;
}

enum status symbol_module_open_descriptor(struct symbol_module *module, int descriptor, struct error *error)
{
    *module = (struct symbol_module){.path = "a debug file"};
    enum status status = elf_file_open_descriptor(&module->binary, descriptor, error);
    module->has_binary = status == STATUS_OK;
    return status;
}

void symbol_module_close(struct symbol_module *module)
{
    symbol_index_close(&module->names);
    if (module->has_binary) elf_file_close(&module->binary);
    if (module->has_debug) elf_file_close(&module->debug);
    if (module->has_alternate) elf_file_close(&module->alternate);
    *module = (struct symbol_module){0};
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

static bool read_symbols(const struct symbol_module *module, struct elf_symbols *symbols)
{
    bool ok = true;
    if (module->has_binary)
        ok = elf_symbols_add(symbols, &module->binary) && elf_symbols_add_plt(symbols, &module->binary);
    if (module->has_debug) ok = ok && elf_symbols_add(symbols, &module->debug);
    elf_symbols_finish(symbols);
    return ok;
}

static void note_input(struct symbol_index_input *input, const struct elf_file *file)
{
    input->size = file->size;
    memcpy(input->build_id, file->build_id, sizeof(file->build_id));
}

static void note_inputs(const struct symbol_module *module, struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS])
{
    memset(inputs, 0, SYMBOL_INDEX_INPUTS * sizeof(*inputs));
    if (module->has_binary) note_input(&inputs[0], &module->binary);
    if (module->has_debug) note_input(&inputs[1], &module->debug);
    if (module->has_alternate) note_input(&inputs[2], &module->alternate);
}

/* Returns the number of bytes that an index is built from. */
static uint64_t source_size(const struct elf_file *file)
{
    uint64_t size = 0;
    for (size_t i = 0; i < file->section_count; i++) {
        const struct elf_section *section = &file->sections[i];
        bool is_source = section->type == SHT_SYMTAB || strncmp(section->name, ".debug_", 7) == 0 ||
                         strncmp(section->name, ".zdebug_", 8) == 0;
        if (is_source && section->has_bytes && section->size <= file->size) size += section->size;
    }
    return size < file->size ? size : file->size; /* headers that are broken can say anything */
}

static bool build_names(struct symbol_module *module, const struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS],
                        bool *ret_is_split)
{
    const struct elf_file *file = debug_source(module);
    struct elf_symbols symbols;
    struct function_bounds bounds = {0};
    elf_symbols_init(&symbols);
    struct name_sources sources = {
        .symbols = &symbols, .bounds = &bounds, .base = file->segment_count > 0 ? file->segments[0].address : 0};
    memcpy(sources.inputs, inputs, sizeof(sources.inputs));
    struct dwarf_code code = {.base = sources.base, .segments = file->segments, .segment_count = file->segment_count};
    bool ok = read_symbols(module, &symbols);
    if (ok && module->has_binary) (void)function_bounds_read(&bounds, &module->binary);
    ok = ok && dwarf_names_read(file, module->has_alternate ? &module->alternate : NULL, &code, &symbols,
                                &sources.dwarf, &sources.dwarf_count, ret_is_split);
    ok = ok && symbol_index_build(&module->names, &sources);
    dwarf_names_free(sources.dwarf, sources.dwarf_count);
    function_bounds_fini(&bounds);
    elf_symbols_fini(&symbols);
    return ok;
}

static bool use_names(struct symbol_module *module, bool believe_kept)
{
    struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS];
    bool is_split = false;
    note_inputs(module, inputs);
    const char *build_id = debug_source(module)->build_id;
    bool is_worth_keeping = build_id[0] != '\0' && source_size(debug_source(module)) >= INDEX_STORE_WORTH_BYTES;
    if (believe_kept && is_worth_keeping && index_store_open(&module->names, build_id, inputs)) return true;
    if (!build_names(module, inputs, &is_split)) return false;
    if (is_worth_keeping && !is_split) index_store_keep(&module->names, build_id);
    return true;
}

static enum status no_memory(const struct symbol_module *module, struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the names in %s", module->path);
}

enum status symbol_module_read_names(struct symbol_module *module, struct error *error)
{
    return module->names.is_open || use_names(module, true) ? STATUS_OK : no_memory(module, error);
}

enum status symbol_module_read_names_by_descriptor(struct symbol_module *module, int kept, int into,
                                                   struct error *error)
{
    struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS];
    bool is_split;
    note_inputs(module, inputs);
    if (symbol_index_open_descriptor(&module->names, kept, inputs)) return STATUS_OK;
    if (!build_names(module, inputs, &is_split)) return no_memory(module, error);
    (void)symbol_index_write_descriptor(&module->names, into); /* without room it is built again next time */
    return STATUS_OK;
}

enum status symbol_module_renew_names(struct symbol_module *module, struct error *error)
{
    symbol_index_close(&module->names);
    return use_names(module, false) ? STATUS_OK : no_memory(module, error);
}
