/* The loader's list is copied while the loader's own lock is held, which is microseconds; all work happens on the copy.
 * Frame information is copied with self_read_memory, so that a module which is unmapped meanwhile costs an incomplete
 * table and not a crash.  SPDX-License-Identifier: MIT */
#include "sampler/modules.h"

#include "base/sort.h"
#include "sampler/self.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

enum { RETIRED_MAX = 1 << 16, FRAME_INFORMATION_MAX = 256 << 20 };

struct retired {
    void *memory;
    size_t size;
};

static pthread_mutex_t loader_mutex = PTHREAD_MUTEX_INITIALIZER;

void modules_before_fork(void)
{
    (void)pthread_mutex_lock(&loader_mutex);
}

void modules_after_fork(void)
{
    (void)pthread_mutex_unlock(&loader_mutex);
}

struct listing {
    struct pages_array found; /* of struct module */
    uint64_t changes;
};

static void read_build_id(struct module *module, const uint8_t *notes, size_t size)
{
    struct cursor cursor = cursor_of(slice_of(notes, size));
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

static void describe_image(struct module *image, const struct dl_phdr_info *information)
{
    uint64_t low = UINT64_MAX, high = 0;
    image->load_bias = information->dlpi_addr;
    for (unsigned i = 0; i < information->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &information->dlpi_phdr[i];
        if (header->p_type == PT_LOAD) {
            if (header->p_vaddr < low) low = header->p_vaddr;
            if (header->p_vaddr + header->p_memsz > high) high = header->p_vaddr + header->p_memsz;
        } else if (header->p_type == PT_GNU_EH_FRAME) {
            image->header_start = information->dlpi_addr + header->p_vaddr;
            image->header_size = header->p_memsz;
        } else if (header->p_type == PT_NOTE && image->build_id_size == 0) {
            read_build_id(image, (const uint8_t *)(information->dlpi_addr + header->p_vaddr), header->p_memsz);
        }
    }
    image->image_start = information->dlpi_addr + low;
    image->image_size = high > low ? high - low : 0;
    image->image_vmaddr = low;
    for (unsigned i = 0; i < information->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &information->dlpi_phdr[i];
        uint64_t start = information->dlpi_addr + header->p_vaddr;
        if (header->p_type != PT_LOAD || image->header_size == 0) continue;
        if (image->header_start >= start && image->header_start < start + header->p_filesz) {
            image->header_segment_end = start + header->p_filesz;
        }
    }
}

static void name_image(struct module *image, const char *name)
{
    if (strncmp(name, "linux-vdso", 10) == 0) name = "[vdso]";
    (void)strncpy(image->path, name, sizeof(image->path) - 1);
    if (name[0] == '\0' && readlink("/proc/self/exe", image->path, sizeof(image->path) - 1) < 0) image->path[0] = '\0';
}

/* Under the loader's lock: copies and goes. */
static int copy_entry(struct dl_phdr_info *information, size_t size, void *context)
{
    struct listing *listing = context;
    struct module image = {0};
    describe_image(&image, information);
    name_image(&image, information->dlpi_name);
    for (unsigned i = 0; i < information->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &information->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        struct module *module = pages_array_add(&listing->found, sizeof(*module), MODULES_MAX);
        if (!module) return 1;
        *module = image;
        module->start = information->dlpi_addr + header->p_vaddr;
        module->end = module->start + header->p_memsz;
        module->file_offset = header->p_offset;
    }
    return 0;
}

static int read_changes(struct dl_phdr_info *information, size_t size, void *context)
{
    uint64_t *changes = context;
    *changes = information->dlpi_adds + information->dlpi_subs;
    return 1;
}

static uint64_t loader_changes(void)
{
    uint64_t changes = 0;
    (void)pthread_mutex_lock(&loader_mutex);
    (void)dl_iterate_phdr(read_changes, &changes);
    (void)pthread_mutex_unlock(&loader_mutex);
    return changes;
}

static void list_modules(struct listing *listing)
{
    (void)pthread_mutex_lock(&loader_mutex);
    (void)dl_iterate_phdr(copy_entry, listing);
    (void)pthread_mutex_unlock(&loader_mutex);
}

static int compare_modules(const void *a, const void *b)
{
    const struct module *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static bool is_same_module(const struct module *a, const struct module *b)
{
    return a->start == b->start && a->end == b->end && a->load_bias == b->load_bias &&
           a->build_id_size == b->build_id_size && memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
           strcmp(a->path, b->path) == 0;
}

static void retire(struct modules *modules, void *memory, size_t size)
{
    struct retired *retired = memory ? pages_array_add(&modules->retired, sizeof(*retired), RETIRED_MAX) : NULL;
    if (retired) *retired = (struct retired){.memory = memory, .size = size};
    /* Else it is never freed: better than a handler that walks with it. */
}

void modules_release_retired(struct modules *modules)
{
    const struct retired *retired = modules->retired.items;
    for (size_t i = 0; i < modules->retired.count; i++) pages_free(retired[i].memory, retired[i].size);
    modules->retired.count = 0;
}

/* .eh_frame_hdr says where .eh_frame begins; how long it is, only the end of its segment tells. */
static bool build_table(struct module *module, struct frame_table *ret_table)
{
    if (module->header_size < 8 || module->header_segment_end <= module->header_start) return false;
    struct cfi_section header = {.address = module->header_start, .data_address = module->header_start};
    uint64_t low = module->header_start, high = module->header_segment_end;
    uint8_t first[16];
    if (self_read_memory(module->header_start, first, sizeof(first)) != sizeof(first)) return false;
    header.bytes = slice_of(first, sizeof(first));
    struct cursor cursor = cursor_of(header.bytes);
    cursor_skip(&cursor, 4);
    uint64_t eh_frame = cfi_encoded_pointer(&cursor, &header, first[1]);
    if (cursor.failed || eh_frame < module->image_start || eh_frame >= high) return false;
    if (eh_frame < low) low = eh_frame;
    if (high - low > FRAME_INFORMATION_MAX) return false;

    uint8_t *copy = pages_allocate(high - low);
    if (!copy) return false;
    size_t got = self_read_memory(low, copy, high - low);
    bool built = false;
    if (got > eh_frame - low && got >= module->header_start - low + module->header_size) {
        struct frame_table_source source = {
            .eh_frame = {.bytes = slice_of(copy + (eh_frame - low), got - (eh_frame - low)),
                         .address = eh_frame,
                         .data_address = module->header_start},
            .header = slice_of(copy + (module->header_start - low), module->header_size),
            .header_address = module->header_start,
            .base = module->load_bias,
        };
        built = frame_table_build(&source, ret_table);
    }
    pages_free(copy, high - low);
    return built;
}

static void write_module(const struct module *module, struct recording_writer *writer)
{
    recording_begin(writer, RECORDING_MODULE, 2 * RECORDING_TEXT_MAX);
    recording_number(writer, module->number);
    recording_number(writer, module->start);
    recording_number(writer, module->end);
    recording_number(writer, module->file_offset);
    recording_number(writer, module->image_start);
    recording_number(writer, module->image_size);
    recording_number(writer, module->image_vmaddr);
    recording_text(writer, module->build_id, module->build_id_size);
    recording_text(writer, module->path, strlen(module->path));
}

/* What is known already keeps its number and table; the rest of OLD is gone. */
static void take_over(struct modules *modules, struct pages_array *found, struct recording_writer *writer)
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
        fresh[i].is_tried = old[at].is_tried;
        fresh[i].is_seen = old[at].is_seen = true;
    }
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].is_seen) continue;
        recording_begin(writer, RECORDING_MODULE_GONE, 16);
        recording_number(writer, old[i].number);
        retire(modules, old[i].table.memory, old[i].table.memory_size);
    }
    for (size_t i = 0; i < found->count; i++) {
        if (fresh[i].is_seen) continue;
        fresh[i].number = modules->next_number++;
        write_module(&fresh[i], writer);
    }
}

static void publish(struct modules *modules)
{
    const struct module *items = modules->items.items;
    size_t count = modules->items.count;
    size_t size = sizeof(struct unwind_modules) + count * sizeof(struct unwind_module);
    /* Tables lie beside the items, and items move: a snapshot has copies of both. */
    size += count * sizeof(struct frame_table);
    uint8_t *memory = pages_allocate(size);
    if (!memory) return;
    struct unwind_modules *snapshot = (struct unwind_modules *)(void *)memory;
    struct unwind_module *entries = (struct unwind_module *)(void *)(memory + sizeof(*snapshot));
    struct frame_table *tables = (struct frame_table *)(void *)(entries + count);
    for (size_t i = 0; i < count; i++) {
        tables[i] = items[i].table;
        entries[i] = (struct unwind_module){
            .start = items[i].start,
            .end = items[i].end,
            .base = items[i].load_bias,
            .table = items[i].table.row_count > 0 ? &tables[i] : NULL,
            .is_pending = !items[i].is_tried,
        };
    }
    *snapshot = (struct unwind_modules){.items = entries, .count = count};
    retire(modules, modules->current, modules->current_size);
    modules->current = snapshot;
    modules->current_size = size;
}

void modules_build(struct modules *modules, uint64_t address)
{
    struct module *items = modules->items.items;
    for (size_t i = 0; i < modules->items.count; i++) {
        if (address < items[i].start || address >= items[i].end || items[i].is_tried) continue;
        uint64_t before = self_monotonic_ns();
        if (build_table(&items[i], &items[i].table))
            modules->table_bytes += items[i].table.memory_size;
        else
            modules->without_table++;
        items[i].is_tried = true;
        modules->table_ns += self_monotonic_ns() - before;
        publish(modules);
    }
}

void modules_refresh(struct modules *modules, struct recording_writer *writer)
{
    uint64_t changes = loader_changes();
    if (modules->current && changes == modules->changes) return;
    modules->changes = changes;
    struct listing listing = {0};
    list_modules(&listing);
    sort_in_place(listing.found.items, listing.found.count, sizeof(struct module), compare_modules);
    take_over(modules, &listing.found, writer);
    pages_array_fini(&modules->items);
    modules->items = listing.found;
    publish(modules);
}
