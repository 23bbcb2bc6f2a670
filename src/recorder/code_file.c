/* SPDX-License-Identifier: MIT */
#include "recorder/code_file.h"

#include "base/clocks.h"
#include "base/hash.h"
#include "base/hex.h"
#include "binary/go_functions.h"
#include "recorder/remote_memory.h"
#include "unwind/frame_table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    VDSO_BYTES_MAX = 1 << 20,
    FUNCTIONS_WORTH_KEEPING = 256, /* a smaller table is built as fast as it is read */
    STEPS_A_CLOCK = 4,             /* steps of a table between two readings of the clock */
};

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static bool is_vdso(const struct maps_entry *entry)
{
    return strcmp(entry->path, "[vdso]") == 0;
}

/* Opens the regular file at PATH if it has the number INODE; 0: any number will do. Returns a negative number if not,
 * with errno. */
static int open_regular(const char *path, uint64_t inode)
{
    struct stat facts;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0) return -1;
    bool is_it = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && (inode == 0 || facts.st_ino == inode);
    if (is_it) return descriptor;
    (void)close(descriptor);
    errno = EACCES;
    return -1;
}

/* The number of the file decides, not its device: an overlay shows another one in maps than stat does. *RET_ERROR is
 * the error of the link to the mapping, which says whether it is still there. */
static int open_mapped(pid_t pid, const struct maps_entry *entry, int *ret_error)
{
    char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)entry->start,
                   (unsigned long long)entry->end);
    int descriptor = open_regular(path, 0);
    if (descriptor >= 0) return descriptor;
    *ret_error = errno;
    (void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, entry->path);
    descriptor = open_regular(path, entry->inode);
    if (descriptor >= 0) return descriptor;
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid); /* the program itself may be deleted */
    return open_regular(path, entry->inode);
}

static bool open_vdso(struct code_file *file, pid_t pid, const struct maps_entry *entry)
{
    size_t size = (size_t)(entry->end - entry->start);
    if (size > VDSO_BYTES_MAX) return false;
    file->memory = malloc(size);
    return file->memory && remote_read(pid, entry->start, file->memory, size) == size &&
           elf_file_open_memory(&file->elf, slice_of(file->memory, size), NULL) == STATUS_OK;
}

static enum code_file_sight open_file(struct code_file *file, pid_t pid, const struct maps_entry *entry)
{
    if (is_vdso(entry)) return open_vdso(file, pid, entry) ? CODE_FILE_SEEN : CODE_FILE_UNSEEN;
    int error = 0, descriptor = open_mapped(pid, entry, &error);
    if (descriptor < 0) return error == EACCES || error == EPERM ? CODE_FILE_OTHER : CODE_FILE_UNSEEN;
    bool is_elf = elf_file_open_descriptor(&file->elf, descriptor, NULL) == STATUS_OK;
    if (is_elf && file->elf.segment_count > 0) return CODE_FILE_SEEN;
    if (is_elf) elf_file_close(&file->elf);
    return CODE_FILE_OTHER;
}

/* Finds where stacks of Go end: goroutines, threads of the runtime, and the scheduler, which has left its goroutine.
 * What systemstack and asmcgocall call is on another stack than their caller. */
static void find_landmarks(struct code_file *file)
{
    struct go_function functions[] = {{.name = "runtime.goexit"},      {.name = "runtime.mstart"},
                                      {.name = "runtime.rt0_go"},      {.name = "runtime.mcall"},
                                      {.name = "runtime.systemstack"}, {.name = "runtime.asmcgocall"}};
    enum { COUNT = sizeof(functions) / sizeof(functions[0]), ROOTS = 4 };
    if (!go_functions_find(&file->elf, functions, COUNT)) return;
    for (size_t i = 0; i < COUNT; i++) {
        if (functions[i].end <= functions[i].start || functions[i].start < file->image_vmaddr) continue;
        const struct code_landmark added = {.start = functions[i].start - file->image_vmaddr,
                                            .end = functions[i].end - file->image_vmaddr,
                                            .is_root = i < ROOTS};
        size_t at = file->landmark_count++;
        for (; at > 0 && file->landmarks[at - 1].start > added.start; at--)
            file->landmarks[at] = file->landmarks[at - 1];
        file->landmarks[at] = added;
    }
}

static void describe(struct code_file *file)
{
    const struct elf_file *elf = &file->elf;
    size_t digits = strlen(elf->build_id);
    for (size_t i = 0; i + 1 < digits && file->build_id_size < CODE_BUILD_ID_MAX; i += 2)
        file->build_id[file->build_id_size++] = (uint8_t)hex_byte((const uint8_t *)elf->build_id + i);
    const struct elf_segment *first = &elf->segments[0], *last = &elf->segments[elf->segment_count - 1];
    file->keeps_frame_pointers = go_is_program(elf);
    file->image_vmaddr = first->address;
    file->image_size = last->address + last->memory_size - first->address;
    if (file->keeps_frame_pointers) find_landmarks(file);
}

static void free_file(struct code_file *file)
{
    if (file->link) (void)unlink(file->link); /* its descriptor's number may become another file's */
    free(file->link);
    frame_build_free(file->build);
    frame_sections_free(&file->sections);
    if (file->state == CODE_FILE_HAS_TABLE) frame_table_fini(&file->table);
    if (file->elf.segments) elf_file_close(&file->elf);
    free(file->memory);
    free(file);
}

/* Returns NULL with *RET_SIGHT if the file could not be read, which may be different for another process. */
static struct code_file *new_file(pid_t pid, const struct maps_entry *entry, enum code_file_sight *ret_sight)
{
    struct code_file *file = calloc(1, sizeof(*file));
    *ret_sight = file ? open_file(file, pid, entry) : CODE_FILE_UNSEEN;
    if (*ret_sight == CODE_FILE_UNSEEN) {
        if (file) free_file(file);
        return NULL;
    }
    file->device = is_vdso(entry) ? 0 : entry->device;
    file->inode = is_vdso(entry) ? 0 : entry->inode;
    if (*ret_sight == CODE_FILE_SEEN)
        describe(file);
    else
        file->state = CODE_FILE_WITHOUT_TABLE;
    return file;
}

static bool is_same(const void *context, uint32_t index, const void *key)
{
    const struct code_file *known = ((const struct code_files *)context)->items.items[index], *wanted = key;
    return known->device == wanted->device && known->inode == wanted->inode;
}

static uint64_t hash_of(const struct code_file *file)
{
    return hash_mix(file->device, file->inode);
}

/* Returns the lowest free number, with room for its file; INDEX_NONE: there is none. */
static uint32_t take_number(struct code_files *files)
{
    size_t number = 0;
    bool has_hole = files->open_count < files->items.count;
    while (has_hole && files->items.items[number]) number++;
    if (has_hole) return (uint32_t)number;
    return ARRAY_PUSH(&files->items, CODE_FILES_MAX, NULL) ? (uint32_t)files->items.count - 1 : INDEX_NONE;
}

/* A file that is no ELF file or may not be read is remembered, too: it is not tried again for each process. */
static struct code_file *add_file(struct code_files *files, pid_t pid, const struct maps_entry *entry)
{
    enum code_file_sight sight;
    uint32_t number = take_number(files);
    struct code_file *file = number != INDEX_NONE ? new_file(pid, entry, &sight) : NULL;
    if (!file) return NULL;
    file->number = number;
    if (!index_table_add(&files->by_identity, hash_of(file), number)) {
        free_file(file);
        return NULL;
    }
    files->items.items[number] = file;
    files->open_count++;
    return file;
}

struct code_file *code_files_add_generated(struct code_files *files)
{
    uint32_t number = take_number(files);
    struct code_file *file = number != INDEX_NONE ? calloc(1, sizeof(*file)) : NULL;
    if (!file) return NULL;
    file->number = number;
    file->state = CODE_FILE_WITHOUT_TABLE;
    file->device = UINT64_MAX; /* a number that no file has */
    file->inode = number;
    file->used_ns = clock_monotonic_ns();
    files->items.items[number] = file;
    files->open_count++;
    return file;
}

struct code_file *code_files_find(struct code_files *files, pid_t pid, const struct maps_entry *entry,
                                  enum code_file_sight *ret_sight)
{
    const struct code_file key = {.device = is_vdso(entry) ? 0 : entry->device,
                                  .inode = is_vdso(entry) ? 0 : entry->inode};
    uint32_t known = index_table_find(&files->by_identity, hash_of(&key), is_same, files, &key);
    struct code_file *file = known == INDEX_NONE ? add_file(files, pid, entry) : files->items.items[known];
    bool is_seen = file && file->elf.segment_count > 0;
    *ret_sight = is_seen ? CODE_FILE_SEEN : file ? CODE_FILE_OTHER : CODE_FILE_UNSEEN;
    files->unseen += !file;
    if (file) file->used_ns = clock_monotonic_ns();
    return is_seen ? file : NULL;
}

void code_file_link(struct code_file *file, const char *directory)
{
    char link[PATH_MAX + 2 * CODE_BUILD_ID_MAX], target[64];
    (void)snprintf(link, sizeof(link), "%s/.build-id", directory);
    (void)mkdir(link, 0700);
    (void)snprintf(link, sizeof(link), "%s/.build-id/%.2s", directory, file->elf.build_id);
    (void)mkdir(link, 0700);
    (void)snprintf(link, sizeof(link), "%s/.build-id/%.2s/%s.debug", directory, file->elf.build_id,
                   file->elf.build_id + 2);
    (void)snprintf(target, sizeof(target), "/proc/%d/fd/%d", (int)getpid(), file->elf.descriptor);
    if (file->link || symlink(target, link) != 0) return; /* another file with this build id has the link */
    file->link = strdup(link);
    if (!file->link) (void)unlink(link);
}

void code_files_fini(struct code_files *files)
{
    for (size_t i = 0; i < files->items.count; i++) {
        if (files->items.items[i]) free_file(files->items.items[i]);
    }
    free(files->items.items);
    index_table_fini(&files->by_identity);
    *files = (struct code_files){0};
}

/* --- Eviction ----------------------------------------------------------------------------------------------------- */

static int compare_use(const void *left, const void *right)
{
    const struct code_file *a = *(struct code_file *const *)left, *b = *(struct code_file *const *)right;
    return (a->used_ns > b->used_ns) - (a->used_ns < b->used_ns);
}

static void index_again(struct code_files *files)
{
    index_table_fini(&files->by_identity);
    for (size_t i = 0; i < files->items.count; i++) {
        const struct code_file *file = files->items.items[i];
        /* Without memory the file is opened a second time. */
        if (file) (void)index_table_add(&files->by_identity, hash_of(file), file->number);
    }
}

size_t code_files_evict(struct code_files *files, size_t count, uint64_t unused_since_ns, bool keeps_links,
                        code_file_function closing, void *context)
{
    ARRAY_OF(struct code_file *) unused = {0};
    for (size_t i = 0; i < files->items.count; i++) {
        struct code_file *file = files->items.items[i];
        bool is_unused = file && file->used_ns < unused_since_ns && !(keeps_links && file->link);
        if (is_unused && !ARRAY_PUSH(&unused, CODE_FILES_MAX, file)) break;
    }
    if (unused.count > 1) qsort(unused.items, unused.count, sizeof(*unused.items), compare_use);
    size_t closed = 0;
    for (; closed < count && closed < unused.count; closed++) {
        struct code_file *file = unused.items[closed];
        closing(context, file);
        files->items.items[file->number] = NULL;
        files->building -= file->build != NULL;
        free_file(file);
    }
    files->open_count -= closed;
    files->evicted += closed;
    free(unused.items);
    if (closed > 0) index_again(files);
    return closed;
}

/* --- Tables ------------------------------------------------------------------------------------------------------- */

/* Returns true if only root or this user can have written FILE. Anyone can give a file the build id of another one. */
static bool is_trusted(const struct code_file *file)
{
    struct stat status;
    return fstat(file->elf.descriptor, &status) == 0 && (status.st_uid == 0 || status.st_uid == geteuid()) &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Names the stored table as the sampler does, which shares it. Returns false if FILE has no build id that can be
 * trusted. */
static bool name_kept_table(const struct code_files *files, const struct code_file *file, char path[PATH_MAX])
{
    if (!files->cache_directory || file->build_id_size == 0 || !is_trusted(file)) return false;
    int length = snprintf(path, PATH_MAX, "%s/%s.frames", files->cache_directory, file->elf.build_id);
    return length > 0 && length < PATH_MAX;
}

static bool load_kept_table(const struct code_files *files, struct code_file *file)
{
    char path[PATH_MAX];
    if (!name_kept_table(files, file, path)) return false;
    return frame_table_load(path, slice_of(file->build_id, file->build_id_size), &file->table);
}

static void keep_table(const struct code_files *files, const struct code_file *file)
{
    char path[PATH_MAX];
    if (file->table.fde_count < FUNCTIONS_WORTH_KEEPING || !name_kept_table(files, file, path)) return;
    (void)frame_table_save(&file->table, path, slice_of(file->build_id, file->build_id_size));
}

static void complete(struct code_files *files, struct code_file *file)
{
    bool is_built = frame_build_take(file->build, &file->table) == FRAME_BUILD_SUCCEEDED;
    frame_build_free(file->build);
    frame_sections_free(&file->sections);
    file->build = NULL;
    file->has_lookup = false;
    file->state = is_built ? CODE_FILE_HAS_TABLE : CODE_FILE_WITHOUT_TABLE;
    files->building--;
    if (is_built) keep_table(files, file);
}

void code_file_prepare(struct code_files *files, struct code_file *file)
{
    if (file->state != CODE_FILE_NEW) return;
    if (load_kept_table(files, file)) {
        file->state = CODE_FILE_HAS_TABLE;
        return;
    }
    file->state = CODE_FILE_WITHOUT_TABLE;
    if (!frame_sections_read(&file->sections, &file->elf, file->image_vmaddr)) return;
    file->has_lookup = frame_lookup_init(&file->sections.source, &file->lookup);
    file->build = frame_build_begin(&file->sections.source);
    if (!file->build) return;
    file->state = CODE_FILE_LOOKED_UP;
    files->building++;
    if (file->has_lookup) return;
    /* The first walk would end here, and that of a thread that stays blocked is the only one. */
    while (frame_build_step(file->build)) {
    }
    complete(files, file);
}

/* Returns the smallest file whose table is being built: the others wait for it only shortly. */
static struct code_file *next_to_build(const struct code_files *files)
{
    struct code_file *next = NULL;
    for (size_t i = 0; i < files->items.count; i++) {
        struct code_file *file = files->items.items[i];
        if (!file) continue;
        bool is_smaller = !next || file->sections.eh_frame.size < next->sections.eh_frame.size;
        if (file->state == CODE_FILE_LOOKED_UP && is_smaller) next = file;
    }
    return next;
}

bool code_files_work(struct code_files *files, uint64_t until_ns)
{
    bool is_completed = false;
    struct code_file *file = NULL;
    while (files->building > 0 && clock_monotonic_ns() < until_ns) {
        if (!file) file = next_to_build(files);
        bool has_more = true;
        for (unsigned i = 0; i < STEPS_A_CLOCK && has_more; i++) has_more = frame_build_step(file->build);
        if (has_more) continue;
        complete(files, file);
        is_completed = true;
        file = NULL;
    }
    return is_completed;
}
