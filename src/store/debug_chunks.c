/* Chunks of debug files that wait until they are joined: debug/waiting/SCOPE/SHA1. They are not synced: after a power
 * cut a chunk may be damaged, which its checksum shows, and its client sends it again.  SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "store/store_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAITING_MAX = 16384, JOIN_BYTES = 1 << 20 };

/* Writes the path of the chunk NAME; of the folder, if NAME is "". */
static void path_of(const struct store *store, uint64_t scope, const char *name, char ret_path[STORE_DEBUG_PATH_SIZE])
{
    (void)snprintf(ret_path, STORE_DEBUG_PATH_SIZE, "%s/debug/waiting/%llu/%s", store->folder,
                   (unsigned long long)scope, name);
}

/* A name that no other file has: a chunk is written there, and a file is joined. */
static void new_name(char *ret_name, size_t size)
{
    static atomic_uint count;
    (void)snprintf(ret_name, size, "part-%d-%u", (int)getpid(), atomic_fetch_add(&count, 1));
}

/* --- Removing ----------------------------------------------------------------------------------------------------- */

struct waiting_chunks {
    uint64_t count, bytes;
    char oldest[NAME_MAX + 1];
    struct timespec oldest_time;
};

/* Counts the chunks in FOLDER, finds the oldest one, and removes those that were written before BEFORE. */
static void scan_chunks(DIR *folder, time_t before, struct waiting_chunks *ret_chunks)
{
    *ret_chunks = (struct waiting_chunks){0};
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat info;
        if (entry->d_name[0] == '.' || fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (info.st_mtime < before) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
            continue;
        }
        struct timespec time = info.st_mtim, oldest = ret_chunks->oldest_time;
        bool is_earlier = time.tv_sec != oldest.tv_sec ? time.tv_sec < oldest.tv_sec : time.tv_nsec < oldest.tv_nsec;
        if (ret_chunks->count == 0 || is_earlier) {
            (void)snprintf(ret_chunks->oldest, sizeof(ret_chunks->oldest), "%s", entry->d_name);
            ret_chunks->oldest_time = time;
        }
        ret_chunks->count++;
        ret_chunks->bytes += (uint64_t)info.st_size;
    }
}

static void make_room(const struct store *store, uint64_t scope)
{
    char path[STORE_DEBUG_PATH_SIZE];
    struct waiting_chunks chunks;
    path_of(store, scope, "", path);
    DIR *folder = opendir(path);
    if (!folder) return;
    scan_chunks(folder, 0, &chunks);
    while (chunks.count >= WAITING_MAX || chunks.bytes > STORE_DEBUG_WAITING_BYTES_MAX) {
        if (unlinkat(dirfd(folder), chunks.oldest, 0) != 0) break;
        rewinddir(folder);
        scan_chunks(folder, 0, &chunks);
    }
    (void)closedir(folder);
}

/* Removes chunks that were written before BEFORE, and unfinished files if REMOVES_PARTS, in the folder of each scope.
 */
static void clean_scopes(const struct store *store, time_t before, bool removes_parts)
{
    char path[STORE_DEBUG_PATH_SIZE];
    (void)snprintf(path, sizeof(path), "%s/debug/waiting", store->folder);
    DIR *scopes = opendir(path);
    for (struct dirent *entry; scopes && (entry = readdir(scopes));) {
        struct waiting_chunks chunks;
        char *end;
        unsigned long long scope = strtoull(entry->d_name, &end, 10);
        if (*end || end == entry->d_name) continue;
        path_of(store, scope, "", path);
        DIR *folder = opendir(path);
        if (!folder) continue;
        scan_chunks(folder, before, &chunks);
        rewinddir(folder);
        for (struct dirent *file; removes_parts && (file = readdir(folder));) {
            if (strncmp(file->d_name, "part-", 5) == 0) (void)unlinkat(dirfd(folder), file->d_name, 0);
        }
        (void)closedir(folder);
    }
    if (scopes) (void)closedir(scopes);
}

void debug_expire_chunks(struct store *store, uint64_t now_ns)
{
    clean_scopes(store, (time_t)((now_ns > DAY_NS ? now_ns - DAY_NS : 0) / SECOND_NS), false);
}

/* Removes files that a killed server was writing. Chunks stay: their client need not send them again. */
void debug_sweep_chunks(struct store *store)
{
    clean_scopes(store, 0, true);
}

void debug_remove_chunks(struct store *store, const struct store_debug_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        char path[STORE_DEBUG_PATH_SIZE];
        path_of(store, parts->scope, parts->checksums[i], path);
        (void)unlink(path);
    }
}

/* --- Adding ------------------------------------------------------------------------------------------------------- */

static bool write_all(int descriptor, struct slice bytes)
{
    for (size_t done = 0; done < bytes.size;) {
        ssize_t size = write(descriptor, bytes.data + done, bytes.size - done);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return false;
        done += (size_t)size;
    }
    return true;
}

enum status store_debug_add_chunk(struct store *store, uint64_t scope, const char checksum[SHA1_TEXT_SIZE],
                                  struct slice bytes, struct error *error)
{
    char path[STORE_DEBUG_PATH_SIZE], part[STORE_DEBUG_PATH_SIZE], name[64];
    make_room(store, scope);
    new_name(name, sizeof(name));
    path_of(store, scope, name, part);
    file_make_folders_above(part, strlen(store->folder) + 1);
    path_of(store, scope, checksum, path);
    int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return error_set_errno(error, "cannot store a chunk of a debug file");
    bool is_stored = write_all(file, bytes);
    is_stored = close(file) == 0 && is_stored && rename(part, path) == 0;
    if (is_stored) return STATUS_OK;
    (void)error_set_errno(error, "cannot store a chunk of a debug file");
    (void)unlink(part);
    return STATUS_IO;
}

bool store_debug_has_chunk(struct store *store, uint64_t scope, const char checksum[SHA1_TEXT_SIZE])
{
    char path[STORE_DEBUG_PATH_SIZE];
    path_of(store, scope, checksum, path);
    return access(path, F_OK) == 0;
}

/* --- Joining ------------------------------------------------------------------------------------------------------ */

/* Adds the chunk at PATH to the file. STATUS_NOT_FOUND if its name is not the SHA-1 of its bytes. */
static enum status join_chunk(const char *path, const char *checksum, int into, struct sha1 *whole, uint64_t *size,
                              struct error *error)
{
    struct sha1 sha1;
    char found[SHA1_TEXT_SIZE];
    enum status status = STATUS_OK;
    int chunk = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    uint8_t *bytes = malloc(JOIN_BYTES);
    if (chunk < 0) status = error_set(error, STATUS_NOT_FOUND, 0, "a chunk is missing");
    if (!bytes) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    sha1_init(&sha1);
    while (status == STATUS_OK) {
        ssize_t got = read(chunk, bytes, JOIN_BYTES);
        if (got == 0) break;
        if (got < 0) status = error_set_errno(error, "cannot read a chunk");
        struct slice part = slice_of(bytes, got > 0 ? (size_t)got : 0);
        if (status == STATUS_OK && !write_all(into, part)) status = error_set_errno(error, "cannot join a debug file");
        sha1_add(&sha1, part);
        sha1_add(whole, part);
        *size += part.size;
    }
    sha1_finish(&sha1, found);
    free(bytes);
    if (chunk >= 0) (void)close(chunk);
    if (status != STATUS_OK || strcmp(found, checksum) == 0) return status;
    (void)unlink(path);
    return error_set(error, STATUS_NOT_FOUND, 0, "a chunk is damaged");
}

void store_debug_drop(struct store_debug_joined *joined)
{
    if (joined->path[0]) (void)unlink(joined->path);
    if (joined->descriptor >= 0) (void)close(joined->descriptor);
    *joined = (struct store_debug_joined){.descriptor = -1};
}

enum status store_debug_join(struct store *store, const struct store_debug_parts *parts,
                             const char checksum[SHA1_TEXT_SIZE], struct store_debug_joined *ret_joined,
                             struct error *error)
{
    char name[64], found[SHA1_TEXT_SIZE];
    struct store_debug_joined joined = {.descriptor = -1};
    struct sha1 whole;
    enum status status = STATUS_OK;
    new_name(name, sizeof(name));
    path_of(store, parts->scope, name, joined.path);
    file_make_folders_above(joined.path, strlen(store->folder) + 1);
    joined.descriptor = open(joined.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (joined.descriptor < 0) return error_set_errno(error, "cannot join a debug file");
    sha1_init(&whole);
    for (size_t i = 0; i < parts->count && status == STATUS_OK; i++) {
        char path[STORE_DEBUG_PATH_SIZE];
        path_of(store, parts->scope, parts->checksums[i], path);
        status = join_chunk(path, parts->checksums[i], joined.descriptor, &whole, &joined.size, error);
        if (status == STATUS_OK && joined.size > parts->bytes_max)
            status = error_set(error, STATUS_TOO_LARGE, 0, "the file is larger than %llu MB",
                               (unsigned long long)(parts->bytes_max >> 20));
    }
    sha1_finish(&whole, found);
    if (status == STATUS_OK && strcmp(found, checksum) != 0)
        status =
            error_set(error, STATUS_MALFORMED, 0, "the chunks do not add up to the file: its checksum is %s", found);
    if (status == STATUS_OK)
        *ret_joined = joined;
    else
        store_debug_drop(&joined);
    return status;
}
