/* Modules are found in /proc/self/maps and in the headers that are in memory, never through the loader's list, which
 * only the loader's lock makes safe to read. Changes are noticed through _dl_find_object, which takes no lock and is
 * signal-safe (glibc 2.35): it is called for each module in use at every tick, and for each address that is in no known
 * module. It does not show that a module was unloaded and another one loaded at the same addresses, so dlclose is
 * counted (interpose/notices.c), and a module is the same only with the same build id and the same file. Frame
 * information is copied with process_read_memory, so that a module which is unmapped meanwhile costs an incomplete
 * table and not a crash.  SPDX-License-Identifier: MIT */
#include "sampler/modules/modules.h"

#include "base/hex.h"
#include "base/kernel.h"
#include "base/maps.h"
#include "base/plain_text.h"
#include "base/sort.h"
#include "sampler/modules/image_file.h"
#include "sampler/modules/image_headers.h"
#include "sampler/kernel/cpu_clock.h"
#include "sampler/kernel/own_descriptors.h"
#include "sampler/kernel/vdso_clock.h"
#include "unwind/frame_table_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdatomic.h>

enum {
    IMAGE_PATH_SIZE = 3200, /* bytes of the path of a copied file */
    RETIRED_MAX = 1 << 16,
    NOTES_BYTES_MAX = 4096,
    MAPS_BUFFER = 64 << 10,
    STEPS_A_CLOCK = 4, /* steps of a job between two readings of the clock */
};

struct retired {
    void *memory;
    size_t size;
};

/* A function of glibc 2.35. Without it, changes are noticed once a second. */
extern __attribute__((weak)) int _dl_find_object(void *, struct dl_find_object *);

static bool loader_knows(uint64_t address, struct dl_find_object *ret_object)
{
    return _dl_find_object && _dl_find_object((void *)(uintptr_t)address, ret_object) == 0;
}

/* Returns true if the loader has loaded something at ADDRESS, which is in no module of the snapshot. Signal-safe. */
static bool is_new_code(uint64_t address)
{
    struct dl_find_object object;
    return loader_knows(address, &object);
}

/* --- One module, from its headers in memory ----------------------------------------------------------------------- */

static void read_build_id(struct module *module, const struct image_headers *headers, uint64_t address, uint64_t size)
{
    uint8_t notes[NOTES_BYTES_MAX];
    size_t read = image_headers_copy(headers, address, notes, size < sizeof(notes) ? size : sizeof(notes));
    struct cursor cursor = cursor_of(slice_of(notes, read));
    while (!cursor_at_end(&cursor)) {
        uint32_t name_size = cursor_u32(&cursor);
        uint32_t value_size = cursor_u32(&cursor);
        uint32_t type = cursor_u32(&cursor);
        struct slice name = cursor_take(&cursor, ((uint64_t)name_size + 3) & ~(uint64_t)3);
        struct slice value = cursor_take(&cursor, ((uint64_t)value_size + 3) & ~(uint64_t)3);
        if (cursor.failed) return;
        if (type != NT_GNU_BUILD_ID || name_size != 4 || memcmp(name.data, "GNU", 4) != 0) continue;
        if (value_size > sizeof(module->build_id)) return;
        memcpy(module->build_id, value.data, value_size);
        module->build_id_size = value_size;
        return;
    }
}

/* Describes MODULE, the start of whose image is known. */
static void describe_module(struct module *module, const struct image_headers *headers)
{
    struct mapped_image *image = &module->image;
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < headers->count; i++) {
        const Elf64_Phdr *header = &headers->items[i];
        if (header->p_type != PT_LOAD) continue;
        if (header->p_vaddr < low) low = header->p_vaddr;
        if (header->p_vaddr + header->p_memsz > high) high = header->p_vaddr + header->p_memsz;
    }
    image->vmaddr = low;
    image->size = high > low ? high - low : 0;
    image->load_bias = image->start - low;
    for (size_t i = 0; i < headers->count; i++) {
        const Elf64_Phdr *header = &headers->items[i];
        uint64_t start = image->load_bias + header->p_vaddr;
        if (header->p_type == PT_GNU_EH_FRAME) {
            image->header_start = start;
            image->header_size = header->p_memsz;
        } else if (header->p_type == PT_NOTE && module->build_id_size == 0) {
            read_build_id(module, headers, start, header->p_memsz);
        }
    }
}

/* --- The list ----------------------------------------------------------------------------------------------------- */

/* The file of the latest mappings. */
struct maps_file {
    bool has_start, is_added;
    bool is_read, has_headers;
    struct image_headers headers;
    struct module module; /* facts from the mappings and, once they are read, from the headers */
};

static bool read_headers(struct maps_file *file)
{
    if (file->is_read) return file->has_headers;
    file->is_read = true;
    file->has_headers = image_headers_read(file->module.image.start, &file->headers);
    if (file->has_headers) describe_module(&file->module, &file->headers);
    return file->has_headers;
}

/* Returns true if the headers of FILE have a segment with FLAGS (PF_X, or 0: any) at ADDRESS, where a mapping begins:
 * at the page in which the segment begins, or later. */
static bool has_segment_at(struct maps_file *file, uint64_t address, uint32_t flags)
{
    uint64_t page = pages_size();
    if (!file->has_start || !read_headers(file)) return false;
    for (size_t i = 0; i < file->headers.count; i++) {
        const Elf64_Phdr *header = &file->headers.items[i];
        uint64_t start = file->module.image.load_bias + header->p_vaddr, end = start + header->p_memsz;
        bool is_it = header->p_type == PT_LOAD && (header->p_flags & flags) == flags;
        if (is_it && address >= start - start % page && address < end) return true;
    }
    return false;
}

/* Adds a module for each executable segment of FILE. */
static void add_file(struct pages_array *found, struct maps_file *file)
{
    struct dl_find_object object = {0};
    if (file->is_added) return;
    file->is_added = true;
    if (!read_headers(file)) return;
    for (size_t i = 0; i < file->headers.count; i++) {
        const Elf64_Phdr *header = &file->headers.items[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        struct module *module = pages_array_add(found, sizeof(*module), MODULES_MAX);
        if (!module) return;
        *module = file->module;
        module->start = file->module.image.load_bias + header->p_vaddr;
        module->end = module->start + header->p_memsz;
        module->file_offset = header->p_offset;
        if (loader_knows(module->start, &object)) module->loader_object = object.dlfo_link_map;
    }
}

static void begin_file(struct maps_file *file, const struct maps_entry *entry)
{
    struct module *module = &file->module;
    memset(module, 0, sizeof(*module));
    (void)plain_text(module->path, module->path + sizeof(module->path), entry->path);
    module->image = (struct mapped_image){
        .start = entry->start, .first_mapping_end = entry->end, .device = entry->device, .inode = entry->inode};
    file->has_start = entry->file_offset == 0;
    file->is_added = file->is_read = false;
}

static void add_mapping(struct pages_array *found, struct maps_file *file, const struct maps_entry *entry)
{
    static struct maps_file vdso; /* the sampler thread's alone */
    if (strcmp(entry->path, "[vdso]") == 0) {
        begin_file(&vdso, entry);
        add_file(found, &vdso);
        return;
    }
    /* Programs move their own code to anonymous memory, for the sake of large pages. */
    bool is_moved_code = entry->is_executable && !file->is_added && has_segment_at(file, entry->start, PF_X);
    if (is_moved_code) add_file(found, file);
    if (entry->path[0] != '/' || is_moved_code || strlen(entry->path) >= sizeof(file->module.path)) return;
    /* The first page of a file is the start of a module, or a further segment of FILE: LLVM's linker does not begin
     * segments at pages of the file, so that a small program has all segments mapped from its first page. */
    bool is_of_file = strcmp(file->module.path, entry->path) == 0 &&
                      (entry->file_offset != 0 || has_segment_at(file, entry->start, 0));
    if (!is_of_file) begin_file(file, entry);
    if (entry->is_executable && file->has_start) add_file(found, file);
}

static bool list_modules(struct pages_array *found)
{
    static char buffer[MAPS_BUFFER]; /* the sampler thread's alone */
    static struct maps_file file;
    struct maps_reader reader = {.descriptor = process_open_maps(), .buffer = buffer, .size = sizeof(buffer)};
    struct maps_entry entry;
    if (reader.descriptor < 0) return false;
    memset(&file, 0, sizeof(file));
    while (maps_next(&reader, &entry)) add_mapping(found, &file, &entry);
    process_release_maps(reader.descriptor);
    return true;
}

static int compare_modules(const void *a, const void *b)
{
    const struct module *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static bool is_same_module(const struct module *a, const struct module *b)
{
    return a->start == b->start && a->end == b->end && a->image.load_bias == b->image.load_bias &&
           a->build_id_size == b->build_id_size && memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
           a->image.device == b->image.device && a->image.inode == b->image.inode &&
           a->loader_object == b->loader_object && strcmp(a->path, b->path) == 0;
}

static void retire(struct modules *modules, void *memory, size_t size)
{
    struct retired *retired = memory ? pages_array_add(&modules->retired, sizeof(*retired), RETIRED_MAX) : NULL;
    if (retired) *retired = (struct retired){.memory = memory, .size = size};
    /* Without memory for the entry it is never freed, because a handler could walk with it. */
}

/* Ends the job of MODULE, whose copies handlers may still read. */
static enum table_outcome end_job(struct modules *modules, struct module *module)
{
    void *copies = NULL;
    size_t copies_size = 0;
    enum table_outcome outcome = table_job_end(module->job, &module->table, &copies, &copies_size);
    retire(modules, copies, copies_size);
    module->job = NULL;
    return outcome;
}

/* Keeps a copy of MODULE's file if it is deleted or replaced: names are found when the program has ended. */
static void keep_deleted(const struct modules *modules, const struct module *module)
{
    char path[IMAGE_PATH_SIZE], digits[2 * RECORDING_BUILD_ID_MAX + 1];
    const char *end = path + sizeof(path);
    struct stat status = {0};
    if (!modules->image_directory || module->path[0] != '/' || module->build_id_size == 0) return;
    long result = kernel_stat(module->path, &status);
    if (result == 0 ? status.st_ino == module->image.inode : result != -ENOENT) return;
    (void)hex_write(digits, slice_of(module->build_id, module->build_id_size));
    char *at = plain_text(plain_text(path, end, modules->image_directory), end, "/");
    (void)plain_text(plain_text(at, end, digits), end, ".image");
    const struct image_file file = {.path = module->path,
                                    .start = module->image.start,
                                    .device = module->image.device,
                                    .inode = module->image.inode};
    image_file_keep(&file, module->image.first_mapping_end, path);
}

void modules_keep_deleted(const struct modules *modules)
{
    const struct module *items = modules->items.items;
    for (size_t i = 0; i < modules->items.count; i++) keep_deleted(modules, &items[i]);
}

static void write_module(const struct module *module, struct recording_writer *writer)
{
    struct recording_module record = {
        .number = module->number,
        .start = module->start,
        .end = module->end,
        .file_offset = module->file_offset,
        .image_start = module->image.start,
        .image_size = module->image.size,
        .image_vmaddr = module->image.vmaddr,
        .build_id = module->build_id,
        .build_id_size = module->build_id_size,
        .path = module->path,
    };
    recording_module(writer, &record);
}

/* Takes over the modules in FOUND. Known ones keep their number and table; the other known ones are gone. */
static void take_over_modules(struct modules *modules, struct pages_array *found, struct recording_writer *writer)
{
    struct module *fresh = found->items;
    struct module *old = modules->items.items;
    size_t old_count = modules->items.count, at = 0;
    for (size_t i = 0; i < old_count; i++) old[i].is_seen = false;
    for (size_t i = 0; i < found->count; i++) {
        while (at < old_count && old[at].start < fresh[i].start) at++;
        if (at == old_count || !is_same_module(&old[at], &fresh[i])) continue;
        fresh[i].number = old[at].number;
        fresh[i].table = old[at].table;
        fresh[i].job = old[at].job;
        fresh[i].is_tried = old[at].is_tried;
        fresh[i].is_seen = old[at].is_seen = true;
    }
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].is_seen) continue;
        recording_module_gone(writer, old[i].number);
        if (old[i].job) (void)end_job(modules, &old[i]);
        retire(modules, old[i].table.memory, old[i].table.memory_size);
    }
    for (size_t i = 0; i < found->count; i++) {
        if (fresh[i].is_seen) continue;
        fresh[i].number = modules->next_number++;
        keep_deleted(modules, &fresh[i]);
        write_module(&fresh[i], writer);
    }
}

static uint64_t latest_generation; /* goes on at the next start of the sampler: walks remember generations */

/* Returns zeroed memory for a snapshot, the spare one if it fits: unmapping interrupts every processor on which the
 * program runs, and tables come one after the other. */
static void *snapshot_memory(struct modules *modules, size_t size)
{
    void *memory = modules->spare.memory;
    if (memory && modules->spare.size == size) {
        modules->spare.memory = NULL;
        return memset(memory, 0, size);
    }
    pages_free(memory, modules->spare.size);
    modules->spare.memory = NULL;
    memory = pages_allocate(size);
    if (memory) pages_populate(memory, size); /* signal handlers would do it page by page */
    return memory;
}

static void publish(struct modules *modules)
{
    const struct module *items = modules->items.items;
    size_t count = modules->items.count;
    size_t size = sizeof(struct unwind_modules) + sizeof(struct rule_cache) + count * sizeof(struct unwind_module);
    /* Items move, so a snapshot has copies of their tables. */
    size += count * (sizeof(struct frame_table) + sizeof(struct frame_lookup));
    struct unwind_modules *snapshot = snapshot_memory(modules, size);
    modules->is_outdated = !snapshot;
    if (!snapshot) return;
    struct unwind_module *entries = (struct unwind_module *)(void *)(snapshot + 1);
    struct frame_table *tables = (struct frame_table *)(void *)(entries + count);
    struct frame_lookup *lookups = (struct frame_lookup *)(void *)(tables + count);
    struct rule_cache *cache =
        (struct rule_cache *)(void *)(lookups + count); /* the largest last: the others share pages */
    for (size_t i = 0; i < count; i++) {
        bool has_lookup = items[i].job && table_job_lookup(items[i].job, &lookups[i]);
        tables[i] = items[i].table;
        entries[i] = (struct unwind_module){
            .start = items[i].start,
            .end = items[i].end,
            .base = items[i].image.start, /* programs are linked at any address, and offsets have 30 bits */
            .table = items[i].table.row_count > 0 ? &tables[i] : NULL,
            .lookup = has_lookup ? &lookups[i] : NULL,
            .is_pending = !items[i].is_tried && !has_lookup,
        };
    }
    *snapshot = (struct unwind_modules){.items = entries,
                                        .count = count,
                                        .generation = ++latest_generation,
                                        .cache = cache,
                                        .is_new_code = is_new_code};
    retire(modules, modules->current, modules->current_size);
    modules->current = snapshot;
    modules->current_size = size;
}

bool modules_have_retired(struct modules *modules)
{
    /* An outdated snapshot refers to retired memory. */
    if (modules->is_outdated) publish(modules);
    return !modules->is_outdated && modules->retired.count > 0;
}

void modules_release_retired(struct modules *modules)
{
    const struct retired *retired = modules->retired.items;
    for (size_t i = 0; i < modules->retired.count; i++) {
        if (retired[i].size == modules->current_size && !modules->spare.memory) {
            modules->spare.memory = retired[i].memory;
            modules->spare.size = retired[i].size;
        } else {
            pages_free(retired[i].memory, retired[i].size);
        }
    }
    modules->retired.count = 0;
}

/* Makes a key of what distinguishes the file of a module without build id from every other file, and from its earlier
 * contents. Returns false if the file is not the one that was mapped. */
static bool identify_file(const struct module *module, struct table_source *source)
{
    struct stat status = {0};
    if (module->path[0] != '/') return false;
    if (kernel_call4(SYS_newfstatat, AT_FDCWD, kernel_address(module->path), kernel_address(&status), 0) != 0)
        return false;
    if (status.st_dev != module->image.device || status.st_ino != module->image.inode) return false;
    const uint64_t identity[] = {status.st_dev,
                                 status.st_ino,
                                 (uint64_t)status.st_size,
                                 (uint64_t)status.st_mtim.tv_sec,
                                 (uint64_t)status.st_mtim.tv_nsec,
                                 (uint64_t)status.st_ctim.tv_sec};
    _Static_assert(sizeof(identity) <= sizeof(source->key), "fits");
    memcpy(source->key, identity, sizeof(identity));
    source->key_size = sizeof(identity);
    return true;
}

/* Names the stored table DIRECTORY/KEY.frames. The key is the build id; without one, the device, inode, size and times
 * of the file. The stored table holds the key, too. */
static void name_kept_table(const struct modules *modules, const struct module *module, struct table_source *source)
{
    char digits[2 * FRAME_TABLE_KEY_MAX + 1];
    const char *end = source->kept_path + sizeof(source->kept_path);
    if (!modules->cache_directory) return;
    bool has_key = true;
    if (module->build_id_size > 0) {
        memcpy(source->key, module->build_id, module->build_id_size);
        source->key_size = module->build_id_size;
    } else {
        has_key = identify_file(module, source);
    }
    if (!has_key) return;
    char *at = plain_text(plain_text(source->kept_path, end, modules->cache_directory), end, "/");
    if (module->build_id_size == 0) at = plain_text(at, end, "file-");
    (void)hex_write(digits, slice_of(source->key, source->key_size));
    at = plain_text(plain_text(at, end, digits), end, ".frames");
    if (at + 1 >= end) source->kept_path[0] = '\0';
}

static void begin_job(const struct modules *modules, struct module *module)
{
    struct table_source source = {.image = module->image};
    name_kept_table(modules, module, &source);
    module->job = table_job_begin(&source, module->path);
}

static _Atomic uint32_t unloads;

void modules_note_unload(void)
{
    atomic_fetch_add(&unloads, 1);
}

static void relist(struct modules *modules, struct recording_writer *writer)
{
    struct pages_array found = {0};
    modules->has_loaded_since = modules->current != NULL;
    modules->unloads_seen = atomic_load(&unloads);
    bool is_listed = list_modules(&found);
    if (!is_listed && modules->current) return; /* a jail without /proc: the known modules stay */
    sort_in_place(found.items, found.count, sizeof(struct module), compare_modules);
    take_over_modules(modules, &found, writer);
    pages_array_fini(&modules->items);
    modules->items = found;
    publish(modules);
}

/* Returns true if a module that stacks went through has changed; the others do no harm. */
static bool is_stale(const struct modules *modules)
{
    const struct module *items = modules->items.items;
    struct dl_find_object object;
    if (modules->unloads_seen != atomic_load(&unloads)) return true;
    for (size_t i = 0; i < modules->items.count; i++) {
        if (!items[i].is_tried || !items[i].loader_object) continue;
        if (!loader_knows(items[i].start, &object) || object.dlfo_link_map != items[i].loader_object) return true;
        if ((uint64_t)(uintptr_t)object.dlfo_eh_frame != items[i].image.header_start) return true;
    }
    return false;
}

void modules_refresh(struct modules *modules, bool is_time, struct recording_writer *writer)
{
    bool is_due = is_time && (!_dl_find_object || modules->has_loaded_since);
    if (!modules->current || is_due || is_stale(modules)) relist(modules, writer);
}

void modules_write_again(struct modules *modules, struct recording_writer *writer)
{
    struct module *items = modules->items.items;
    for (size_t i = 0; i < modules->items.count; i++) {
        items[i].number = (uint32_t)i;
        write_module(&items[i], writer);
    }
    modules->next_number = (uint32_t)modules->items.count;
}

static struct module *find_untried(const struct modules *modules, uint64_t address)
{
    struct module *items = modules->items.items;
    for (size_t i = 0; i < modules->items.count; i++) {
        if (address >= items[i].start && address < items[i].end) return items[i].is_tried ? NULL : &items[i];
    }
    return NULL;
}

struct modules_budget modules_budget_of(uint64_t work_ns, uint64_t wait_ns)
{
    enum { WAITS = 3 };
    uint64_t waits_ns = wait_ns > WAITS * work_ns ? wait_ns : WAITS * work_ns;
    return (struct modules_budget){.cpu_until_ns = thread_own_cpu_ns() + work_ns,
                                   .until_ns = monotonic_ns() + work_ns + waits_ns};
}

static bool is_used_up(struct modules_budget budget)
{
    return monotonic_ns() >= budget.until_ns || thread_own_cpu_ns() >= budget.cpu_until_ns;
}

static bool has_lookup(const struct module *module)
{
    struct frame_lookup lookup;
    return module->job && table_job_lookup(module->job, &lookup);
}

enum work_goal { WORK_UNTIL_LOOKUP, WORK_UNTIL_TABLE };

/* Works on the table of MODULE until GOAL is reached or BUDGET is used up. Returns true if a new snapshot would know
 * more. */
static bool work_on(struct modules *modules, struct module *module, enum work_goal goal, struct modules_budget budget)
{
    uint64_t before_ns = monotonic_ns();
    if (!module->job) begin_job(modules, module);
    bool had_lookup = has_lookup(module), continues = module->job != NULL;
    bool is_enough = goal == WORK_UNTIL_LOOKUP && had_lookup;
    while (continues && !is_enough && !is_used_up(budget)) {
        for (unsigned i = 0; continues && !is_enough && i < STEPS_A_CLOCK; i++) {
            continues = table_job_step(module->job);
            is_enough = goal == WORK_UNTIL_LOOKUP && has_lookup(module);
        }
    }
    modules->tables.spent_ns += monotonic_ns() - before_ns;
    if (continues) return !had_lookup && has_lookup(module);
    enum table_outcome outcome = module->job ? end_job(modules, module) : TABLE_NO_MEMORY;
    module->is_tried = true;
    if (outcome == TABLE_BUILT)
        modules->tables.bytes += module->table.memory_size;
    else
        modules->tables.missing++;
    return true;
}

/* Returns true if a walk can continue in MODULE: it has a table or a lookup, or never will have. */
static bool is_ready(const struct module *module)
{
    return module->is_tried || has_lookup(module);
}

enum modules_result modules_build(struct modules *modules, uint64_t address, struct modules_budget budget,
                                  struct recording_writer *writer)
{
    /* Another thread may have reached the module first, in the same tick. */
    const struct unwind_module *known = unwind_find_module(modules->current, address);
    if (known && (known->table || known->lookup)) return MODULES_READY;
    struct module *module = find_untried(modules, address);
    if (!module) {
        relist(modules, writer);
        module = find_untried(modules, address);
    }
    if (!module) return MODULES_NOTHING;
    if (work_on(modules, module, WORK_UNTIL_LOOKUP, budget)) publish(modules);
    return is_ready(module) ? MODULES_READY : MODULES_LATER;
}

void modules_work(struct modules *modules, size_t largest, struct modules_budget budget)
{
    struct module *items = modules->items.items;
    bool has_news = false;
    for (size_t i = 0; i < modules->items.count; i++) {
        if (!items[i].job) continue; /* true for nearly all modules; is_used_up is a system call */
        if (has_lookup(&items[i]) && table_job_size(items[i].job) > largest) continue;
        if (is_used_up(budget)) break;
        has_news |= work_on(modules, &items[i], WORK_UNTIL_TABLE, budget);
    }
    if (has_news) publish(modules);
}

bool modules_have_any(const struct modules *modules)
{
    const struct module *items = modules->items.items;
    for (size_t i = 0; i < modules->items.count; i++) {
        if (is_ready(&items[i])) return true;
    }
    return false;
}

void modules_build_more(struct modules *modules, size_t count, struct modules_budget budget)
{
    struct module *items = modules->items.items;
    size_t built = 0;
    for (size_t i = 0; i < modules->items.count && built < count && !is_used_up(budget); i++) {
        if (is_ready(&items[i])) continue;
        (void)work_on(modules, &items[i], WORK_UNTIL_LOOKUP, budget);
        built++;
    }
    if (built > 0) publish(modules);
}

void modules_after_fork(struct modules *modules)
{
    /* The parent's thread may have been in the middle of a step: the memory is not used again. */
    if (atomic_load(&modules->is_changing)) {
        memset(modules, 0, sizeof(*modules));
        return;
    }
    struct module *items = modules->items.items;
    for (size_t i = 0; i < modules->items.count; i++) items[i].job = NULL;
}
