/* SPDX-License-Identifier: MIT */
#include "cli/perf_file.h"

#include "base/array.h"
#include "cli/recorded_files.h"
#include "format/perf/perf_data.h"
#include "profile/profile_extent.h"
#include "symbolize/call_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CODE_FILES_MAX = 1 << 16 };

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static bool read_at(int descriptor, uint64_t offset, void *bytes, size_t size)
{
    uint8_t *place = bytes;
    while (size > 0) {
        ssize_t got = pread(descriptor, place, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        place += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

static bool read_file(void *context, uint64_t offset, void *bytes, size_t size)
{
    return read_at(*(const int *)context, offset, bytes, size);
}

static bool read_buffer(void *context, uint64_t offset, void *bytes, size_t size)
{
    const struct buffer *buffer = context;
    if (offset > buffer->size || size > buffer->size - offset) return false;
    if (size > 0) memcpy(bytes, buffer->data + offset, size);
    return true;
}

/* Negative if PATH is no regular file that can be read. */
static int open_regular(const char *path, uint64_t *ret_size)
{
    struct stat facts;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0) return descriptor;
    if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode)) {
        *ret_size = (uint64_t)facts.st_size;
        return descriptor;
    }
    (void)close(descriptor);
    return -1;
}

static bool detect(const char *path, uint64_t *ret_size)
{
    uint8_t magic[8];
    int descriptor = open_regular(path, ret_size);
    if (descriptor < 0) return false;
    bool is_read = read_at(descriptor, 0, magic, sizeof(magic));
    (void)close(descriptor);
    return is_read && perf_data_detect(slice_of(magic, sizeof(magic)));
}

/* --- Folders ------------------------------------------------------------------------------------------------------ */

/* `perf record --threads` makes a folder: "data" has the headers, "data.0" and so on the records of each processor. */
struct recording {
    struct perf_source *sources;
    int *descriptors;
    size_t count, source_capacity, descriptor_capacity;
};

/* The file in FOLDER of source NUMBER. False if the path is too long. */
static bool source_path(const char *folder, size_t number, char path[PATH_MAX])
{
    int length = number == 0 ? snprintf(path, PATH_MAX, "%s/data", folder)
                             : snprintf(path, PATH_MAX, "%s/data.%zu", folder, number - 1);
    return length > 0 && length < PATH_MAX;
}

static bool add_source(struct recording *recording, const char *path)
{
    size_t count = recording->count;
    struct perf_source source = {.read = read_file};
    if (!array_reserve(&recording->sources, &recording->source_capacity, count + 1, sizeof(source), PERF_SOURCES_MAX) ||
        !array_reserve(&recording->descriptors, &recording->descriptor_capacity, count + 1, sizeof(int),
                       PERF_SOURCES_MAX))
        return false;
    int descriptor = open_regular(path, &source.size);
    if (descriptor < 0) return false;
    recording->descriptors[count] = descriptor;
    recording->sources[count] = source;
    recording->count++;
    return true;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* The file at PATH or, where it is a folder, the files in it. */
static enum status open_recording(struct recording *recording, const char *path, struct error *error)
{
    char name[PATH_MAX];
    bool is_one = !is_folder(path);
    if (is_one && !add_source(recording, path)) return error_set_errno(error, "cannot open");
    while (!is_one && source_path(path, recording->count, name) && add_source(recording, name)) {
    }
    if (recording->count == 0) return error_set_errno(error, "cannot open the file \"data\" in it");
    if (!is_one && source_path(path, recording->count, name) && access(name, F_OK) == 0)
        return error_set(error, STATUS_IO, 0, "cannot open all files in it, up to %d", PERF_SOURCES_MAX);
    for (size_t i = 0; i < recording->count; i++) recording->sources[i].context = &recording->descriptors[i];
    return STATUS_OK;
}

bool perf_file_detect(const char *path, uint64_t *ret_size)
{
    char name[PATH_MAX];
    struct stat facts;
    if (!is_folder(path)) return detect(path, ret_size);
    if (!source_path(path, 0, name) || !detect(name, ret_size)) return false;
    for (size_t i = 1; i < PERF_SOURCES_MAX && source_path(path, i, name) && stat(name, &facts) == 0; i++)
        *ret_size += (uint64_t)facts.st_size;
    return true;
}

/* --- Code --------------------------------------------------------------------------------------------------------- */

struct code_file {
    char *path, *build_id;
    bool is_open;
    struct call_frames frames;
    struct perf_code_file shown;
    struct perf_code_segment *segments;
};

/* Found by walking over them: a file is asked for once in each process. */
struct code_files {
    struct code_file **items;
    size_t count, capacity;
    struct kernel_symbols *kernel;
    struct recorded_files recorded;
};

static void show_segments(struct code_file *file)
{
    const struct elf_file *binary = &file->frames.module.binary;
    file->segments = calloc(binary->segment_count, sizeof(*file->segments));
    for (size_t i = 0; file->segments && i < binary->segment_count; i++) {
        const struct elf_segment *segment = &binary->segments[i];
        if (!segment->is_executable) continue;
        file->segments[file->shown.segment_count++] = (struct perf_code_segment){
            .file_offset = segment->file_offset, .size = segment->file_size, .address = segment->address};
    }
    file->shown.elf_machine = binary->machine;
    file->shown.segments = file->segments;
    file->shown.table = &file->frames.table;
    file->shown.base = file->frames.base;
    file->shown.binary = binary;
}

static void free_file(struct code_file *file)
{
    if (file && file->is_open) call_frames_close(&file->frames);
    if (file) free(file->segments);
    if (file) free(file->path);
    if (file) free(file->build_id);
    free(file);
}

static struct code_file *open_file(const char *path, const char *build_id)
{
    struct code_file *file = calloc(1, sizeof(*file));
    if (!file) return NULL;
    file->path = strdup(path);
    file->build_id = strdup(build_id);
    if (!file->path || !file->build_id) {
        free_file(file);
        return NULL;
    }
    file->is_open = call_frames_open(&file->frames, file->path, file->build_id);
    if (file->is_open) show_segments(file);
    return file;
}

static const struct perf_code_file *find_code(void *context, const char *path, const char *build_id)
{
    struct code_files *files = context;
    struct code_file *file = NULL;
    for (size_t i = 0; i < files->count && !file; i++) {
        bool is_it = strcmp(files->items[i]->path, path) == 0 && strcmp(files->items[i]->build_id, build_id) == 0;
        if (is_it) file = files->items[i];
    }
    if (!file &&
        array_reserve(&files->items, &files->capacity, files->count + 1, sizeof(struct code_file *), CODE_FILES_MAX)) {
        file = open_file(path, build_id);
        if (file) files->items[files->count++] = file;
    }
    return file && file->is_open ? &file->shown : NULL;
}

static bool read_code(const void *binary, uint64_t file_offset, void *bytes, size_t size)
{
    return elf_file_read(binary, file_offset, bytes, size);
}

static void begin_kernel(void *context, const char *build_id)
{
    ((struct code_files *)context)->kernel = kernel_symbols_begin(build_id);
}

static const char *identify(void *context, const char *path, uint64_t inode, uint64_t generation)
{
    return recorded_files_identify(&((struct code_files *)context)->recorded, path, inode, generation);
}

enum status perf_file_decode(const char *path, struct buffer *bytes, struct profile *profile,
                             struct kernel_symbols **ret_kernel, struct error *error)
{
    struct code_files files = {0};
    struct perf_code code = {.find = find_code,
                             .read = read_code,
                             .note_kernel = ret_kernel ? begin_kernel : NULL,
                             .identify = identify,
                             .context = &files};
    struct perf_source in_memory = {.read = read_buffer, .context = bytes, .size = bytes->size};
    struct recording recording = {0};
    uint64_t size = bytes->size;
    enum status status = size == 0 ? open_recording(&recording, path, error) : STATUS_OK;
    for (size_t i = 0; i < recording.count; i++) size += recording.sources[i].size;
    recorded_files_init(&files.recorded, recording.count ? recording.descriptors[0] : -1, profile);
    if (status == STATUS_OK)
        status = perf_data_decode_sources(recording.count ? recording.sources : &in_memory,
                                          recording.count ? recording.count : 1, &code, profile, error);
    if (status == STATUS_OK) recorded_files_give_debug_ids(&files.recorded, profile);
    profile->source_bytes = size;
    if (status == STATUS_OK) status = profile_check_inlined(profile, size, error);
    for (size_t i = 0; i < recording.count; i++) (void)close(recording.descriptors[i]);
    free(recording.descriptors);
    free(recording.sources);
    for (size_t i = 0; i < files.count; i++) free_file(files.items[i]);
    free(files.items);
    recorded_files_fini(&files.recorded);
    if (ret_kernel) *ret_kernel = files.kernel;
    buffer_fini(bytes);
    return status;
}
