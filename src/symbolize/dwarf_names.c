/* Units are read by several threads, each with its own handle of libdw over the same image of the file, since a
 * handle is not for several threads. libdw keeps what it read of a unit until its handle is closed, so handles are
 * closed and opened again now and then.
 *
 * Entries of -gsplit-dwarf are in other files, which libdw finds by the place of the file itself; such a file is read
 * as it is and by one thread.
 * SPDX-License-Identifier: MIT */
#include "symbolize/dwarf_names.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbolize/debug_image.h"
#include "symbolize/dwarf_unit.h"
#include "symbolize/parallel.h"

enum { ROWS_KEPT_MAX = 128 << 10 }; /* rows of line tables that libdw keeps in one thread */

/* One handle, and what it is on. */
struct handle {
    Elf *elf;
    Dwarf *dwarf; /* NULL = there is none */
};

struct unit {
    Dwarf_Off entry; /* offset in .debug_info */
    uint8_t type;
};

struct source {
    const struct elf_file *file;
    struct debug_image image; /* empty: libdw is to read the file itself */
};

struct worker {
    struct handle own, alternate;
    struct dwarf_reader reader;
};

struct reading {
    struct source own, alternate; /* the latter may have no file */
    ARRAY_OF(struct unit) units;
    struct worker workers[PARALLEL_THREADS_MAX];
    unsigned worker_count;
    bool is_split, failed;
};

/* --- Handles ------------------------------------------------------------------------------------------------------ */

/* Ends sections of texts with a NUL, as debug_image.c does for an image; these bytes are libelf's own copy. */
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

static void open_handle(struct handle *handle, const struct source *source)
{
    bool has_image = source->image.bytes != NULL;
    if (has_image)
        handle->elf = elf_memory((char *)source->image.bytes, source->image.size);
    else if (source->file && source->file->descriptor >= 0)
        handle->elf = elf_begin(source->file->descriptor, ELF_C_READ, NULL);
    if (handle->elf) handle->dwarf = dwarf_begin_elf(handle->elf, DWARF_C_READ, NULL);
    if (handle->dwarf && !has_image) end_texts(handle->elf); /* after libdw has inflated them */
}

static void close_handle(struct handle *handle)
{
    if (handle->dwarf) dwarf_end(handle->dwarf);
    if (handle->elf) elf_end(handle->elf);
    *handle = (struct handle){0};
}

static void worker_open(struct worker *worker, const struct reading *reading)
{
    open_handle(&worker->own, &reading->own);
    open_handle(&worker->alternate, &reading->alternate);
    if (worker->own.dwarf && worker->alternate.dwarf) dwarf_setalt(worker->own.dwarf, worker->alternate.dwarf);
    worker->reader.section_count = 0;
    dwarf_reader_note_sections(&worker->reader, worker->own.dwarf);
    dwarf_reader_note_sections(&worker->reader, worker->alternate.dwarf);
}

static void worker_close(struct worker *worker)
{
    close_handle(&worker->own);
    close_handle(&worker->alternate);
    worker->reader.line_count = 0;
}

/* --- Units -------------------------------------------------------------------------------------------------------- */

static void list_units(struct reading *reading, Dwarf *dwarf)
{
    Dwarf_CU *handle = NULL;
    Dwarf_Die entry;
    uint8_t type;
    reading->units.count = 0;
    while (dwarf_get_units(dwarf, handle, &handle, NULL, &type, &entry, NULL) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
        struct unit unit = {.entry = dwarf_dieoffset(&entry), .type = type};
        if (!ARRAY_PUSH(&reading->units, DWARF_UNITS_MAX, unit)) return;
        reading->is_split |= type == DW_UT_skeleton;
    }
}

static void read_unit(void *context, unsigned thread, size_t item)
{
    struct reading *reading = context;
    struct worker *worker = &reading->workers[thread];
    const struct unit *unit = &reading->units.items[item];
    if (worker->reader.line_count > ROWS_KEPT_MAX && !reading->is_split) worker_close(worker);
    if (!worker->own.dwarf) worker_open(worker, reading);
    Dwarf_Die entry;
    if (worker->own.dwarf && dwarf_offdie(worker->own.dwarf, unit->entry, &entry))
        dwarf_unit_read(&worker->reader, &entry, unit->type, (uint32_t)(reading->units.count - item));
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

/* Sets up the first worker, and knows all units when it returns. */
static bool open_first_worker(struct reading *reading)
{
    struct worker *first = &reading->workers[0];
    bool has_image = debug_image_make(&reading->own.image, reading->own.file);
    if (has_image && reading->alternate.file)
        (void)debug_image_make(&reading->alternate.image, reading->alternate.file);
    worker_open(first, reading);
    if (first->own.dwarf) list_units(reading, first->own.dwarf);
    if (has_image && (reading->is_split || !first->own.dwarf)) {
        worker_close(first);
        debug_image_free(&reading->own.image);
        worker_open(first, reading);
        if (first->own.dwarf) list_units(reading, first->own.dwarf);
    }
    return first->own.dwarf != NULL;
}

static void reading_fini(struct reading *reading)
{
    for (unsigned i = 0; i < reading->worker_count; i++) {
        struct dwarf_reader *reader = &reading->workers[i].reader;
        worker_close(&reading->workers[i]);
        free(reader->origins.items);
        index_table_fini(&reader->origins.index);
        buffer_fini(&reader->scratch);
        reading->failed |= reader->failed;
    }
    free(reading->units.items);
    debug_image_free(&reading->own.image);
    debug_image_free(&reading->alternate.image);
}

bool dwarf_names_read(const struct elf_file *file, const struct elf_file *alternate, const struct dwarf_code *code,
                      const struct elf_symbols *symbols, struct dwarf_names **ret_names, size_t *ret_count,
                      bool *ret_is_split)
{
    *ret_names = NULL;
    *ret_count = 0;
    *ret_is_split = false;
    if (!elf_file_section(file, ".debug_info") && !elf_file_section(file, ".zdebug_info")) return true;
    unsigned threads = parallel_threads();
    struct reading *reading = calloc(1, sizeof(*reading));
    struct dwarf_names *names = calloc(threads, sizeof(*names));
    if (!reading || !names) {
        free(reading);
        free(names);
        return false;
    }
    elf_version(EV_CURRENT);
    reading->own.file = file;
    reading->alternate.file = alternate;
    reading->worker_count = threads;
    for (unsigned i = 0; i < threads; i++) {
        struct dwarf_reader *reader = &reading->workers[i].reader;
        *reader = (struct dwarf_reader){.names = &names[i], .code = code, .symbols = symbols};
        buffer_init(&reader->scratch, 1 << 20);
        if (!text_table_init(&names[i].texts)) reading->failed = true;
    }
    if (!reading->failed && open_first_worker(reading)) {
        /* Broken DWARF can send us over the same entries again and again. */
        size_t image_size = reading->own.image.size;
        size_t steps = reading->own.image.bytes ? image_size * DWARF_STEPS_PER_BYTE : DWARF_STEPS_MAX;
        for (unsigned i = 0; i < threads; i++) reading->workers[i].reader.steps_left = steps;
        parallel_run(reading->is_split || !reading->own.image.bytes ? 1 : threads, reading->units.count, read_unit,
                     reading);
    }
    *ret_is_split = reading->is_split;
    reading_fini(reading);
    bool ok = !reading->failed;
    free(reading);
    *ret_names = names;
    *ret_count = threads;
    return ok;
}

void dwarf_names_clear(struct dwarf_names *names)
{
    text_table_fini(&names->texts);
    address_ranges_fini(&names->scope_ranges);
    address_ranges_fini(&names->line_ranges);
    free(names->functions.items);
    free(names->scopes.items);
    free(names->places.items);
    *names = (struct dwarf_names){0};
}

void dwarf_names_free(struct dwarf_names *names, size_t count)
{
    for (size_t i = 0; names && i < count; i++) dwarf_names_clear(&names[i]);
    free(names);
}
