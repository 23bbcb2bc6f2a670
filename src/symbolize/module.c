/* A chain of sources for each address: DWARF, else a symbol, else the bounds of the function.
 *
 * libdw reads files that are not mapped (ELF_C_READ), for the reason told in elf_file.h.
 * SPDX-License-Identifier: MIT */
#include "symbolize/module.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

enum { NAME_WITH_OFFSET_SIZE = NAME_MAX + 32 };

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

static enum module_state open_binary(struct module *module, const char *build_id)
{
    bool is_vdso = strcmp(module->path, "[vdso]") == 0;
    enum status status = is_vdso ? open_vdso(&module->binary) : elf_file_open(&module->binary, module->path, NULL);
    if (status != STATUS_OK) return MODULE_MISSING;
    bool is_same = strcmp(module->binary.build_id, build_id) == 0;
    if (is_same || (build_id[0] == '\0' && !is_vdso)) {
        module->has_binary = true;
        return MODULE_OPEN;
    }
    elf_file_close(&module->binary);
    return MODULE_CHANGED;
}

static bool has_dwarf(const struct elf_file *file)
{
    const struct elf_section *section = elf_file_section(file, ".debug_info");
    if (!section) section = elf_file_section(file, ".zdebug_info");
    return section && section->has_bytes;
}

static void open_debug_file(struct module *module, const char *build_id, const struct debug_directories *directories)
{
    if (module->has_binary && has_dwarf(&module->binary)) return;
    if (build_id[0] == '\0' && module->has_binary) build_id = module->binary.build_id;
    module->has_debug = debug_file_open_by_build_id(&module->debug, build_id, directories);
    if (module->has_debug || !module->has_binary) return;
    module->has_debug = debug_file_open_by_link(&module->debug, &module->binary, module->path, directories);
}

/* libdw looks for the ends of texts without looking for the end of their section, so there must be one in each. The
 * bytes are libelf's own copy. */
static void end_texts(Elf *elf)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0) return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        const Elf64_Shdr *header = elf64_getshdr(section);
        const char *name = header ? elf_strptr(elf, names, header->sh_name) : NULL;
        bool has_texts = name && (strstr(name, "debug_str") || strstr(name, "debug_line_str"));
        Elf_Data *data = has_texts ? elf_rawdata(section, NULL) : NULL;
        if (data && data->d_buf && data->d_size > 0) ((char *)data->d_buf)[data->d_size - 1] = '\0';
    }
}

static void dwarf_start(struct module_dwarf *dwarf, const struct elf_file *file)
{
    elf_version(EV_CURRENT);
    dwarf->elf = file->descriptor >= 0 ? elf_begin(file->descriptor, ELF_C_READ, NULL) : NULL;
    if (dwarf->elf) dwarf->dwarf = dwarf_begin_elf(dwarf->elf, DWARF_C_READ, NULL);
    if (dwarf->dwarf) end_texts(dwarf->elf); /* after libdw has inflated them */
}

static void dwarf_stop(struct module_dwarf *dwarf)
{
    if (dwarf->dwarf) dwarf_end(dwarf->dwarf);
    if (dwarf->elf) elf_end(dwarf->elf);
    *dwarf = (struct module_dwarf){0};
}

/* dwz: the debug information names a second file, by its build id, that holds what several of its kind share. */
static void open_alternate(struct module *module, const struct debug_directories *directories)
{
    const char *name;
    const void *id;
    ssize_t size = dwelf_dwarf_gnu_debugaltlink(module->dwarf.dwarf, &name, &id);
    if (size <= 0 || size > ELF_BUILD_ID_BYTES_MAX) return;
    char build_id[ELF_BUILD_ID_TEXT_SIZE];
    for (ssize_t i = 0; i < size; i++) sprintf(build_id + 2 * i, "%02x", ((const uint8_t *)id)[i]);
    const struct elf_file *debug = module->has_debug ? &module->debug : &module->binary;
    module->has_alternate = debug_file_open_alternate(&module->alternate, debug, name, build_id, directories);
    if (!module->has_alternate) return;
    dwarf_start(&module->alternate_dwarf, &module->alternate);
    if (module->alternate_dwarf.dwarf) dwarf_setalt(module->dwarf.dwarf, module->alternate_dwarf.dwarf);
}

static bool read_symbols(struct module *module)
{
    bool ok = true;
    if (module->has_binary)
        ok = elf_symbols_add(&module->symbols, &module->binary) &&
             elf_symbols_add_plt(&module->symbols, &module->binary);
    if (module->has_debug) ok = ok && elf_symbols_add(&module->symbols, &module->debug);
    elf_symbols_finish(&module->symbols);
    return ok;
}

enum status module_open(struct module *module, const char *path, const char *build_id,
                        const struct debug_directories *directories, enum module_state *ret_state, struct error *error)
{
    *module = (struct module){.path = path};
    elf_symbols_init(&module->symbols);
    *ret_state = open_binary(module, build_id);
    open_debug_file(module, build_id, directories);
    if (!module->has_binary && !module->has_debug) return STATUS_OK;
    *ret_state = MODULE_OPEN;
    dwarf_start(&module->dwarf, module->has_debug ? &module->debug : &module->binary);
    if (module->dwarf.dwarf) open_alternate(module, directories);
    if (!read_symbols(module)) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the symbols of %s", path);
    return STATUS_OK;
}

void module_close(struct module *module)
{
    dwarf_stop(&module->dwarf);
    dwarf_stop(&module->alternate_dwarf);
    demangler_fini(&module->demangler);
    elf_symbols_fini(&module->symbols);
    function_bounds_fini(&module->bounds);
    if (module->has_binary) elf_file_close(&module->binary);
    if (module->has_debug) elf_file_close(&module->debug);
    if (module->has_alternate) elf_file_close(&module->alternate);
    *module = (struct module){0};
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/* One address on its way to an answer. */
struct question {
    struct module *module;
    uint64_t address;
    char name_with_offset[NAME_WITH_OFFSET_SIZE];
    struct module_frame frames[MODULE_FRAMES_MAX];
    uint32_t frame_count;
};

static void set_linker_name(struct module *module, struct module_frame *frame, const char *linker_name)
{
    frame->name = demangle(&module->demangler, linker_name);
    frame->system_name = frame->name != linker_name ? linker_name : "";
}

static bool is_mangled(struct module *module, const char *name)
{
    return demangle(&module->demangler, name) != name;
}

/* A function in C goes by many names (__libc_malloc, malloc); the symbol table's choice is the one that other profilers
 * show. Local functions of C++ (lambdas) have a full name only there. What compilers add to the names of copies and
 * parts of a C function (".part.0") is left to them. */
static const char *exported_name(struct module *module, const struct dwarf_scope *scope)
{
    if (scope->caller != 0 || scope->entry == 0) return NULL;
    const struct elf_symbol *symbol = elf_symbols_find(&module->symbols, scope->entry);
    if (!symbol || symbol->address != scope->entry) return NULL;
    const char *name = elf_symbol_name(&module->symbols, symbol);
    return !strchr(name, '.') || is_mangled(module, name) ? name : NULL;
}

/* False if SCOPE has no name at all. */
static bool name_scope(struct module *module, struct module_frame *frame, const struct dwarf_scope *scope)
{
    if (scope->linkage_name && is_mangled(module, scope->linkage_name)) {
        set_linker_name(module, frame, scope->linkage_name);
        return true;
    }
    const char *name = exported_name(module, scope);
    if (!name) name = scope->name ? scope->name : scope->linkage_name;
    if (!name) return false;
    set_linker_name(module, frame, name);
    return true;
}

static void place_frame(struct module_frame *frame, const struct dwarf_place *place,
                        const struct dwarf_place *declaration)
{
    const struct dwarf_place *named = place->file ? place : declaration;
    frame->file_name = named->file ? named->file : "";
    frame->directory = named->directory ? named->directory : "";
    frame->line = place->line;
    frame->column = place->column;
    bool is_declared_here = declaration->file && strcmp(frame->file_name, declaration->file) == 0;
    frame->start_line = is_declared_here ? declaration->line : 0;
}

static void answer_by_dwarf(struct question *question, const struct dwarf_names *names,
                            const struct dwarf_address *address)
{
    struct dwarf_place place = address->place;
    for (uint32_t index = address->scope; index != 0 && question->frame_count < MODULE_FRAMES_MAX;) {
        const struct dwarf_scope *scope = &names->scopes[index - 1];
        struct module_frame *frame = &question->frames[question->frame_count];
        place_frame(frame, &place, &scope->declaration);
        question->frame_count += name_scope(question->module, frame, scope);
        place = scope->call;
        index = scope->caller;
    }
}

static const struct function_bound *bound_of(struct module *module, uint64_t address)
{
    if (!module->has_bounds && module->has_binary) (void)function_bounds_read(&module->bounds, &module->binary);
    module->has_bounds = true;
    return function_bounds_find(&module->bounds, address);
}

static void answer_by_symbol(struct question *question, const struct dwarf_place *place)
{
    struct module *module = question->module;
    const struct elf_symbol *symbol = elf_symbols_find(&module->symbols, question->address);
    if (!symbol) return;
    if (!symbol->is_sized) { /* it may be the last one that a stripped file exports before many others */
        const struct function_bound *bound = bound_of(module, question->address);
        if (bound && bound->start > symbol->address) return;
    }
    struct module_frame *frame = &question->frames[question->frame_count++];
    place_frame(frame, place, &(struct dwarf_place){0});
    set_linker_name(module, frame, elf_symbol_name(&module->symbols, symbol));
}

static void answer_by_bound(struct question *question, const struct dwarf_place *place)
{
    const struct function_bound *bound = bound_of(question->module, question->address);
    if (!bound) return;
    const char *slash = strrchr(question->module->path, '/');
    const char *base_name = slash ? slash + 1 : question->module->path;
    snprintf(question->name_with_offset, sizeof(question->name_with_offset), "%.*s+0x%llx", NAME_MAX, base_name,
             (unsigned long long)bound->start);
    struct module_frame *frame = &question->frames[question->frame_count++];
    place_frame(frame, place, &(struct dwarf_place){0});
    frame->name = question->name_with_offset;
    frame->system_name = "";
}

static enum module_source answer_question(struct question *question, const struct dwarf_names *names,
                                          const struct dwarf_address *address)
{
    question->frame_count = 0;
    answer_by_dwarf(question, names, address);
    if (question->frame_count > 0) return MODULE_BY_DWARF;
    answer_by_symbol(question, &address->place);
    if (question->frame_count > 0) return MODULE_BY_SYMBOL;
    answer_by_bound(question, &address->place);
    return question->frame_count > 0 ? MODULE_BY_BOUNDARY : MODULE_UNNAMED;
}

enum status module_find(struct module *module, const uint64_t *addresses, size_t count, module_answer answer,
                        void *context, struct error *error)
{
    static const struct dwarf_address nothing = {0};
    struct dwarf_names names = {0};
    struct question *question = malloc(sizeof(*question));
    bool ok = question && (!module->dwarf.dwarf || dwarf_names_find(&names, module->dwarf.dwarf, addresses, count));
    for (size_t i = 0; ok && i < count; i++) {
        question->module = module;
        question->address = addresses[i];
        enum module_source source = answer_question(question, &names, names.addresses ? &names.addresses[i] : &nothing);
        answer(context, i, question->frames, question->frame_count, source);
    }
    free(question);
    dwarf_names_fini(&names);
    return ok ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "no memory for the names in %s", module->path);
}
