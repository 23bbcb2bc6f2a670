/* SPDX-License-Identifier: MIT */
#include "symbolize/source_file.h"

#include "base/array.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Paths -------------------------------------------------------------------------------------------------------- */

/* The next part of a list separated by ":"; false at its end. */
static bool next_part(const char **list, struct slice *ret_part)
{
    while (*list && **list == ':') (*list)++;
    if (!*list || **list == '\0') return false;
    size_t size = strcspn(*list, ":");
    *ret_part = slice_of(*list, size);
    *list += size;
    return true;
}

/* Returns the part of PATH after the folder PREFIX; NULL if PATH is not in it. */
static const char *without_prefix(const char *path, struct slice prefix)
{
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == '/') prefix.size--;
    bool is_in_it = strncmp(path, (const char *)prefix.data, prefix.size) == 0 && path[prefix.size] == '/';
    return is_in_it ? path + prefix.size + 1 : NULL;
}

/* Returns the part of PATH after "/NAME/", where NAME is the last part of FOLDER: /build/project/a.c is a.c in
 * ~/project. */
static const char *after_name_of(const char *path, struct slice folder)
{
    char wanted[NAME_MAX + 3];
    while (folder.size > 1 && folder.data[folder.size - 1] == '/') folder.size--;
    const uint8_t *slash = memrchr(folder.data, '/', folder.size);
    struct slice name = folder;
    if (slash) name = slice_of(slash + 1, folder.size - (size_t)(slash + 1 - folder.data));
    if (name.size == 0 || name.size > NAME_MAX) return NULL;
    int size = snprintf(wanted, sizeof(wanted), "/%.*s/", (int)name.size, (const char *)name.data);
    const char *found = strstr(path, wanted);
    return found ? found + size : NULL;
}

/* Returns PATH without the prefix to trim. Without --trim-path, pprof guesses where a checkout begins. */
static const char *trimmed_for(const struct source_search *search, const char *folders, const char *path)
{
    struct slice folder;
    bool has_trim = search->trimmed && search->trimmed[0] != '\0';
    while (!has_trim && next_part(&folders, &folder)) {
        const char *rest = after_name_of(path, folder);
        if (rest) return rest;
    }
    const char *lists[] = {search->trimmed, "/proc/self/cwd/.:/proc/self/cwd"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        while (next_part(&lists[i], &folder)) {
            const char *rest = without_prefix(path, folder);
            if (rest) return rest;
        }
    }
    return path;
}

const char *source_path_trimmed(const struct source_search *search, const char *path)
{
    return trimmed_for(search, search->folders, path);
}

/* --- Finding ------------------------------------------------------------------------------------------------------ */

/* A pipe or a device is not waited for. */
static int open_regular(const char *path, struct error *error)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        error_set_errno(error, "cannot read %s", path);
        return -1;
    }
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return descriptor;
    error_set(error, STATUS_UNSUPPORTED, 0, "%s is not a regular file", path);
    (void)close(descriptor);
    return -1;
}

/* Returns whether PATH, without links, is below FOLDER, whose links are followed. */
static bool is_below(const char *path, const char *folder, bool may_be_root)
{
    char real[PATH_MAX];
    if (!realpath(folder, real)) return false;
    if (strcmp(real, "/") == 0) return may_be_root;
    return without_prefix(path, slice_of_text(real)) != NULL;
}

/* Returns whether PATH, without links, is below one of the folders that the user works in or has named. */
static bool is_below_folders(const struct source_search *search, const char *path)
{
    struct slice part;
    for (const char *list = search->folders; next_part(&list, &part);) {
        char folder[PATH_MAX];
        int size = snprintf(folder, sizeof(folder), "%.*s", SLICE_ARGUMENTS(part));
        if (size > 0 && size < (int)sizeof(folder) && is_below(path, folder, true)) return true;
    }
    return is_below(path, ".", false);
}

/* Opens PATH if SEARCH allows it. NAME is the name that debug information has. */
static int open_allowed(const struct source_search *search, const char *path, const char *name, struct error *error)
{
    char real[PATH_MAX];
    if (!realpath(path, real)) {
        error_set_errno(error, "cannot read %s", path);
        return -1;
    }
    if (is_below_folders(search, real)) return open_regular(real, error);
    bool is_proven = strcmp(path, name) == 0 && search->is_proven && search->is_proven(search->context, name);
    if (is_proven) return open_regular(real, error);
    error_set(error, STATUS_UNSUPPORTED, 0, "%s is not below the current folder", path);
    return -1;
}

/* Opens PATH in FOLDER. */
static int open_in(const struct source_search *search, struct slice folder, const char *path, struct error *error)
{
    char full[PATH_MAX];
    int size = snprintf(full, sizeof(full), "%.*s/%s", SLICE_ARGUMENTS(folder), path);
    if (size < 0 || size >= (int)sizeof(full)) return -1;
    return open_allowed(search, full, "", error);
}

/* The longest end of PATH that is there. */
static int open_by_end(const struct source_search *search, struct slice folder, const char *path, struct error *error)
{
    for (const char *end = path; end; end = strchr(end, '/')) {
        end += strspn(end, "/");
        int descriptor = *end != '\0' ? open_in(search, folder, end, error) : -1;
        if (descriptor >= 0) return descriptor;
    }
    return -1;
}

static int open_in_folders(const struct source_search *search, const char *folders, const char *path,
                           const char *trimmed, struct error *error)
{
    struct slice folder;
    bool is_given = search->folders && search->folders[0] != '\0';
    int descriptor = -1;
    for (const char *list = folders; trimmed[0] != '/' && descriptor < 0 && next_part(&list, &folder);)
        descriptor = open_in(search, folder, trimmed, error);
    if (!is_given || search->is_pprof) return descriptor;
    for (const char *list = folders; descriptor < 0 && next_part(&list, &folder);)
        descriptor = open_by_end(search, folder, path, error);
    return descriptor;
}

static int open_source(const struct source_search *search, const char *path, struct error *error)
{
    char working_folder[PATH_MAX];
    const char *folders = search->folders;
    struct error reason = {0};
    if ((!folders || folders[0] == '\0') && !(folders = getcwd(working_folder, sizeof(working_folder)))) folders = "/";
    const char *trimmed = trimmed_for(search, folders, path);
    int descriptor = trimmed[0] == '/' ? open_allowed(search, trimmed, path, error) : -1;
    if (descriptor < 0) descriptor = open_in_folders(search, folders, path, trimmed, &reason);
    if (descriptor < 0 && !search->is_pprof && trimmed != path && path[0] == '/')
        descriptor = open_allowed(search, path, path, error);
    if (descriptor < 0 && error->status == STATUS_OK && reason.status == STATUS_UNSUPPORTED) *error = reason;
    if (descriptor < 0 && error->status == STATUS_OK)
        error_set(error, STATUS_NOT_FOUND, 0, "could not find file %s on path %s", trimmed, folders);
    return descriptor;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static enum status read_bytes(struct source_file *file, int descriptor, size_t bytes_left)
{
    enum { CHUNK = 64 << 10 };
    buffer_init(&file->bytes, bytes_left < SOURCE_BYTES_MAX ? bytes_left : SOURCE_BYTES_MAX);
    for (;;) {
        uint8_t chunk[CHUNK];
        ssize_t size = read(descriptor, chunk, CHUNK);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return error_set_errno(&file->error, "cannot read %s", file->path);
        if (size == 0) break;
        buffer_append(&file->bytes, chunk, (size_t)size);
    }
    if (file->bytes.is_full)
        return error_set(&file->error, STATUS_TOO_LARGE, 0, "%s is too large for a source file", file->path);
    if (file->bytes.failed) return error_set(&file->error, STATUS_NO_MEMORY, 0, "not enough memory for %s", file->path);
    if (file->bytes.size > 0 && memchr(file->bytes.data, '\0', file->bytes.size))
        return error_set(&file->error, STATUS_UNSUPPORTED, 0, "%s is not a text file", file->path);
    return STATUS_OK;
}

static enum status find_lines(struct source_file *file)
{
    const uint8_t *data = file->bytes.data;
    for (size_t place = 0; place < file->bytes.size;) {
        if (!ARRAY_PUSH(&file->line_starts, SOURCE_LINES_MAX, (uint32_t)place))
            return error_set(&file->error, STATUS_TOO_LARGE, 0, "%s has too many lines", file->path);
        const uint8_t *end = memchr(data + place, '\n', file->bytes.size - place);
        place = end ? (size_t)(end - data) + 1 : file->bytes.size;
    }
    return STATUS_OK;
}

static void forget_source(struct source_file *file)
{
    buffer_fini(&file->bytes);
    free(file->line_starts.items);
    file->line_starts.items = NULL;
    file->line_starts.count = file->line_starts.capacity = 0;
}

static void read_source(struct source_files *files, struct source_file *file)
{
    int descriptor = open_source(&files->search, file->path, &file->error);
    file->status = file->error.status;
    if (descriptor < 0) return;
    file->error = (struct error){0};
    file->status = read_bytes(file, descriptor, SOURCES_BYTES_MAX - files->bytes_read);
    (void)close(descriptor);
    if (file->status == STATUS_OK) file->status = find_lines(file);
    if (file->status != STATUS_OK) forget_source(file);
    files->bytes_read += file->bytes.size;
}

static bool is_path(const void *context, uint32_t index, const void *key)
{
    const struct source_files *files = context;
    return strcmp(files->items[index]->path, key) == 0;
}

static struct source_file *add_source(struct source_files *files, const char *path, uint64_t hash)
{
    struct source_file *file = calloc(1, sizeof(*file));
    if (file) file->path = strdup(path);
    if (file && file->path && INDEXED_ARRAY_PUSH(files, SOURCES_MAX, hash, file)) return file;
    if (file) free(file->path);
    free(file);
    return NULL;
}

const struct source_file *source_files_find(struct source_files *files, const char *path)
{
    uint64_t hash = hash_bytes(path, strlen(path));
    uint32_t known = index_table_find(&files->index, hash, is_path, files, path);
    if (known != INDEX_NONE) return files->items[known];
    struct source_file *file = add_source(files, path, hash);
    if (file) read_source(files, file);
    return file;
}

void source_files_fini(struct source_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        forget_source(files->items[i]);
        free(files->items[i]->path);
        free(files->items[i]);
    }
    free(files->items);
    index_table_fini(&files->index);
    *files = (struct source_files){.search = files->search};
}

bool source_line(const struct source_file *file, int64_t number, struct slice *ret_line)
{
    if (file->status != STATUS_OK || number < 1 || (uint64_t)number > file->line_starts.count) return false;
    size_t first = file->line_starts.items[number - 1];
    size_t end = (uint64_t)number < file->line_starts.count ? file->line_starts.items[number] : file->bytes.size;
    while (end > first && (file->bytes.data[end - 1] == '\n' || file->bytes.data[end - 1] == '\r')) end--;
    *ret_line = slice_of(file->bytes.data + first, end - first);
    return true;
}
