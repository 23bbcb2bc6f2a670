/* SPDX-License-Identifier: MIT */
#include "recorder/process_code.h"

#include "base/clocks.h"
#include "recorder/thread_times.h"
#include "sampler/record/recorded_places.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAPS_BUFFER_BYTES = 64 << 10 };

/* --- Listing ------------------------------------------------------------------------------------------------------ */

/* The list that is being made, and the file of the latest mappings. */
struct listing {
    struct process_code *code;
    struct code_files *files;
    pid_t pid;
    const char *image_directory;
    struct recording_writer *writer;
    ARRAY_OF(struct process_module) found;
    ARRAY_OF(struct generated_code) generated;
    struct maps_entry first; /* first mapping of the latest file; its path is PATH */
    char path[PATH_MAX];
};

static uint64_t page_of(uint64_t address)
{
    return address & -(uint64_t)sysconf(_SC_PAGESIZE);
}

static const struct elf_segment *segment_at_offset(const struct code_file *file, const struct maps_entry *entry)
{
    for (size_t i = 0; i < file->elf.segment_count; i++) {
        const struct elf_segment *segment = &file->elf.segments[i];
        uint64_t start = page_of(segment->file_offset);
        uint64_t end = segment->file_offset + segment->file_size;
        bool is_mapped = entry->file_offset >= start && entry->file_offset < end;
        if (is_mapped && segment->is_executable == entry->is_executable) return segment;
    }
    return NULL;
}

static uint64_t load_bias(const struct elf_segment *segment, const struct maps_entry *entry)
{
    return entry->start - entry->file_offset + segment->file_offset - segment->address;
}

/* Keeps FILE readable where names are looked for, if its path leads to another file or nowhere: it is deleted,
 * replaced, or in another mount namespace. */
static void keep_image(const struct listing *listing, struct code_file *file, const char *path)
{
    struct stat mapped, found;
    if (!listing->image_directory || file->link || file->build_id_size < 2 || file->memory) return;
    if (fstat(file->elf.descriptor, &mapped) != 0) return;
    if (stat(path, &found) == 0 && found.st_ino == mapped.st_ino && found.st_dev == mapped.st_dev) return;
    code_file_link(file, listing->image_directory);
}

static void write_module(struct recording_writer *writer, const struct process_module *module, const char *path)
{
    const struct code_file *file = module->file;
    uint64_t bias = module->base - file->image_vmaddr;
    uint64_t file_offset = 0;
    for (size_t i = 0; i < file->elf.segment_count; i++) {
        if (file->elf.segments[i].address + bias == module->start) file_offset = file->elf.segments[i].file_offset;
    }
    const struct recording_module record = {.number = module->number,
                                            .start = module->start,
                                            .end = module->end,
                                            .file_offset = file_offset,
                                            .image_start = module->base,
                                            .image_size = file->image_size,
                                            .image_vmaddr = file->image_vmaddr,
                                            .build_id = file->build_id,
                                            .build_id_size = file->build_id_size,
                                            .path = path};
    recording_module(writer, &record);
}

static const struct process_module *known_module(const struct process_code *code, uint64_t start)
{
    size_t low = 0, high = code->modules.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code->modules.items[middle].start <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &code->modules.items[low - 1] : NULL;
}

/* Adds the segment of FILE, loaded with BIAS, once: its mapping may be in several parts. */
static void add_module(struct listing *listing, struct code_file *file, const struct elf_segment *segment,
                       uint64_t bias, const char *path)
{
    struct process_module module = {.start = bias + segment->address,
                                    .end = bias + segment->address + segment->memory_size,
                                    .base = bias + file->image_vmaddr,
                                    .file = file,
                                    .is_libc = recorded_path_is_libc(path),
                                    .is_java = text_ends_with(slice_of_text(path), "/libjvm.so")};
    bool overlaps = listing->found.count > 0 && listing->found.items[listing->found.count - 1].end > module.start;
    if (overlaps || module.end <= module.start) return; /* sizes in a file may be anything */
    const struct process_module *known = known_module(listing->code, module.start);
    bool is_known = known && known->start == module.start && known->end == module.end && known->file == file;
    module.number = is_known ? known->number : listing->code->next_number;
    module.seen_ns = is_known ? known->seen_ns : clock_monotonic_ns();
    if (!ARRAY_PUSH(&listing->found, PROCESS_MODULES_MAX, module) || is_known) return;
    listing->code->next_number++;
    keep_image(listing, file, path);
    if (listing->writer) write_module(listing->writer, &module, path);
}

/* Programs move their own code to anonymous memory, for the sake of large pages: it is code of the file around it. */
static void add_moved_code(struct listing *listing, const struct maps_entry *entry)
{
    if (listing->path[0] == '\0') return;
    enum code_file_sight sight;
    struct code_file *file = code_files_find(listing->files, listing->pid, &listing->first, &sight);
    const struct elf_segment *first = file ? segment_at_offset(file, &listing->first) : NULL;
    if (!first) return;
    uint64_t bias = load_bias(first, &listing->first);
    for (size_t i = 0; i < file->elf.segment_count; i++) {
        const struct elf_segment *segment = &file->elf.segments[i];
        uint64_t start = bias + segment->address, page = page_of(start);
        bool is_there = entry->start >= page && entry->start < start + segment->memory_size;
        if (segment->is_executable && is_there) add_module(listing, file, segment, bias, listing->path);
    }
}

static void note_file(struct listing *listing, const struct maps_entry *entry)
{
    if (strcmp(listing->path, entry->path) == 0 && entry->file_offset != 0) return;
    listing->first = *entry;
    (void)snprintf(listing->path, sizeof(listing->path), "%s", entry->path);
    listing->first.path = listing->path;
}

/* Notes code that is in no file that can be read as one. */
static void add_generated(struct listing *listing, const struct maps_entry *entry)
{
    size_t count = listing->generated.count;
    struct generated_code *last = count > 0 ? &listing->generated.items[count - 1] : NULL;
    const struct generated_code added = {.start = entry->start, .end = entry->end};
    if (strcmp(entry->path, "[vsyscall]") == 0 || strcmp(entry->path, "[uprobes]") == 0) return;
    if (last && last->end == entry->start)
        last->end = entry->end;
    else
        (void)ARRAY_PUSH(&listing->generated, PROCESS_GENERATED_MAX, added); /* the rest counts as unknown */
}

static void add_mapping(struct listing *listing, const struct maps_entry *entry)
{
    bool is_vdso = strcmp(entry->path, "[vdso]") == 0;
    bool is_file = entry->path[0] == '/' && entry->inode != 0;
    if (is_file) note_file(listing, entry);
    if (!entry->is_executable) return;
    if (entry->path[0] == '\0') add_moved_code(listing, entry);
    enum code_file_sight sight = CODE_FILE_OTHER;
    struct code_file *file = is_file || is_vdso ? code_files_find(listing->files, listing->pid, entry, &sight) : NULL;
    const struct elf_segment *segment = file ? segment_at_offset(file, entry) : NULL;
    if (sight == CODE_FILE_UNSEEN) return; /* a stack there asks for another listing */
    if (segment)
        add_module(listing, file, segment, load_bias(segment, entry), entry->path);
    else if (listing->found.count == 0 || listing->found.items[listing->found.count - 1].end <= entry->start)
        add_generated(listing, entry);
}

static void write_gone(struct process_code *code, const struct listing *listing)
{
    size_t at = 0;
    for (size_t i = 0; i < code->modules.count; i++) {
        const struct process_module *old = &code->modules.items[i];
        while (at < listing->found.count && listing->found.items[at].start < old->start) at++;
        bool stays = at < listing->found.count && listing->found.items[at].number == old->number;
        bool is_recorded = listing->writer && old->number != PROCESS_MODULE_GENERATED;
        if (!stays && is_recorded) recording_module_gone(listing->writer, old->number);
        code->has_unloaded |= !stays;
    }
}

/* Replaces generated code of the Java virtual machine among the modules, if there is one, by a module with a table. */
static void add_java(struct listing *listing)
{
    struct process_code *code = listing->code;
    const struct process_module *machine = NULL;
    for (size_t i = 0; i < listing->found.count && !machine; i++) {
        if (listing->found.items[i].is_java) machine = &listing->found.items[i];
    }
    if (!machine) return;
    const struct interpreter_image image = {
        .start = machine->base, .size = machine->file->image_size, .bias = machine->base - machine->file->image_vmaddr};
    if (!java_code_read(&code->java, listing->files, listing->pid, &image)) return;
    const struct process_module added = {.start = code->java.start,
                                         .end = code->java.end,
                                         .base = code->java.start,
                                         .file = code->java.file,
                                         .number = PROCESS_MODULE_GENERATED};
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < listing->generated.count; i++) {
        const struct generated_code generated = listing->generated.items[i];
        if (generated.end <= added.start || generated.start >= added.end) listing->generated.items[kept++] = generated;
    }
    listing->generated.count = kept;
    while (at < listing->found.count && listing->found.items[at].start < added.start) at++;
    bool overlaps = (at > 0 && listing->found.items[at - 1].end > added.start) ||
                    (at < listing->found.count && listing->found.items[at].start < added.end);
    if (overlaps || !ARRAY_PUSH(&listing->found, PROCESS_MODULES_MAX, added)) return;
    memmove(&listing->found.items[at + 1], &listing->found.items[at], (listing->found.count - 1 - at) * sizeof(added));
    listing->found.items[at] = added;
}

static void note_gone_generated(struct process_code *code, const struct listing *listing)
{
    size_t at = 0;
    for (size_t i = 0; i < code->generated.count; i++) {
        while (at < listing->generated.count && listing->generated.items[at].end <= code->generated.items[i].start)
            at++;
        bool stays =
            at < listing->generated.count && listing->generated.items[at].start <= code->generated.items[i].start;
        code->has_unloaded |= !stays;
    }
}

const struct process_module *process_code_module(const struct process_code *code, uint64_t address)
{
    const struct process_module *last = known_module(code, address);
    return last && address < last->end ? last : NULL;
}

bool process_code_is_generated(const struct process_code *code, uint64_t address)
{
    for (size_t i = 0; i < code->generated.count; i++) {
        if (address >= code->generated.items[i].start && address < code->generated.items[i].end) return true;
    }
    return false;
}

bool process_code_is_outdated(const struct process_code *code, const struct walked_stack *stack, uint64_t time_ns)
{
    for (size_t i = 0; i < stack->count && code->has_unloaded; i++) {
        uint64_t address = stack->addresses[i] - (i > 0);
        const struct process_module *module = process_code_module(code, address);
        if (module ? module->seen_ns > time_ns
                   : address < RECORDING_PLACES && !process_code_is_generated(code, address))
            return true;
    }
    return false;
}

/* Reads all mappings. Returns false if there is none, with errno. */
static bool read_mappings(struct listing *listing)
{
    char path[64];
    static char buffer[MAPS_BUFFER_BYTES]; /* one recorder lists at a time */
    struct maps_entry entry;
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)listing->pid);
    struct maps_reader reader = {
        .descriptor = open(path, O_RDONLY | O_CLOEXEC), .buffer = buffer, .size = sizeof(buffer)};
    if (reader.descriptor < 0) return false;
    bool has_any = false;
    for (; maps_next(&reader, &entry); has_any = true) add_mapping(listing, &entry);
    (void)close(reader.descriptor);
    if (!has_any) errno = ESRCH;
    return has_any;
}

bool process_code_list(struct process_code *code, struct code_files *files, pid_t pid, const char *image_directory,
                       struct recording_writer *writer)
{
    struct listing listing = {
        .code = code, .files = files, .pid = pid, .image_directory = image_directory, .writer = writer};
    code->listed_ns = clock_monotonic_ns();
    /* A process that calls exec after the file was opened has no mappings there: the second look shows the new ones. */
    if (!read_mappings(&listing) && (errno != ESRCH || !read_mappings(&listing))) return false;
    note_gone_generated(code, &listing); /* before a table takes the place of code that is still there */
    add_java(&listing);
    write_gone(code, &listing);
    free(code->modules.items);
    free(code->generated.items);
    code->modules.items = listing.found.items;
    code->modules.count = listing.found.count;
    code->modules.capacity = listing.found.capacity;
    code->generated.items = listing.generated.items;
    code->generated.count = listing.generated.count;
    code->generated.capacity = listing.generated.capacity;
    process_code_update(code);
    return true;
}

/* --- Walking ------------------------------------------------------------------------------------------------------ */

/* Returns the lookup of FILE at the addresses of a process that has loaded it at BIAS. */
static struct frame_lookup moved_lookup(const struct code_file *file, uint64_t bias)
{
    struct frame_lookup lookup = file->lookup;
    lookup.eh_frame.address += bias;
    lookup.eh_frame.data_address += bias;
    lookup.header_address += bias;
    return lookup;
}

static struct unwind_module walked_module(const struct process_module *module, struct frame_lookup *lookup)
{
    const struct code_file *file = module->file;
    bool has_lookup = file->state == CODE_FILE_LOOKED_UP && file->has_lookup;
    if (has_lookup) *lookup = moved_lookup(file, module->base - file->image_vmaddr);
    return (struct unwind_module){
        .start = module->start,
        .end = module->end,
        .base = module->base,
        .table = file->state == CODE_FILE_HAS_TABLE ? &file->table : NULL,
        .lookup = has_lookup ? lookup : NULL,
        .keeps_frame_pointers = file->keeps_frame_pointers,
        .is_generated = module->number == PROCESS_MODULE_GENERATED,
        .is_pending = file->state == CODE_FILE_NEW || (file->state == CODE_FILE_LOOKED_UP && !has_lookup),
    };
}

void process_code_update(struct process_code *code)
{
    size_t count = code->modules.count;
    struct unwind_module *walked = calloc(count + 1, sizeof(*walked));
    struct frame_lookup *lookups = calloc(count + 1, sizeof(*lookups));
    if (!code->cache) code->cache = calloc(1, sizeof(*code->cache));
    if (!walked || !lookups) { /* the list before may lead to call frame information that is freed */
        free(walked);
        free(lookups);
        code->list.count = 0;
        return;
    }
    for (size_t i = 0; i < count; i++) walked[i] = walked_module(&code->modules.items[i], &lookups[i]);
    free(code->walked);
    free(code->lookups);
    code->walked = walked;
    code->lookups = lookups;
    code->generation++;
    if (code->cache) memset(code->cache, 0, sizeof(*code->cache));
    code->list =
        (struct unwind_modules){.items = walked, .count = count, .generation = code->generation, .cache = code->cache};
}

bool process_code_is_current(const struct process_code *code)
{
    if (code->list.count != code->modules.count) return false;
    for (size_t i = 0; i < code->list.count; i++) {
        struct frame_lookup lookup;
        const struct unwind_module *walked = &code->walked[i], ready = walked_module(&code->modules.items[i], &lookup);
        bool is_same = walked->table == ready.table && !walked->lookup == !ready.lookup;
        if (!is_same || walked->is_pending != ready.is_pending) return false;
    }
    return true;
}

/* Another process may have prepared the file meanwhile. */
bool process_code_prepare(struct process_code *code, struct code_files *files, uint64_t address)
{
    const struct process_module *module = known_module(code, address);
    if (!module || address >= module->end) return false;
    code_file_prepare(files, module->file);
    bool is_ready = module->file->state == CODE_FILE_HAS_TABLE || module->file->has_lookup;
    process_code_update(code);
    return is_ready;
}

void process_code_fini(struct process_code *code)
{
    free(code->modules.items);
    free(code->generated.items);
    free(code->walked);
    free(code->lookups);
    free(code->cache);
    *code = (struct process_code){0};
}
