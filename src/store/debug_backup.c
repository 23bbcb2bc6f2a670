/* Copies of debug files.  SPDX-License-Identifier: MIT */
#include "store/debug_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 20, DEPTH = 2 /* debug/PROJECT/IMAGE */ };

static bool copy_bytes(int from, int to)
{
    char *bytes = malloc(COPY_BYTES);
    ssize_t size = -1;
    while (bytes && (size = read(from, bytes, COPY_BYTES)) != 0) {
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) break;
        for (ssize_t done = 0, written; done < size; done += written) {
            written = write(to, bytes + done, (size_t)(size - done));
            if (written < 0 && errno != EINTR) {
                free(bytes);
                return false;
            }
            if (written < 0) written = 0;
        }
    }
    free(bytes);
    return size == 0 && fsync(to) == 0;
}

/* Retention may remove a file meanwhile. */
static enum status copy_file(int folder, int target, const char *name, struct error *error)
{
    int from = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0 && errno == ENOENT) return STATUS_OK;
    int to = from < 0 ? -1 : openat(target, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_copied = to >= 0 && copy_bytes(from, to);
    enum status status = is_copied ? STATUS_OK : error_set_errno(error, "cannot copy a debug file");
    if (from >= 0) (void)close(from);
    if (to >= 0) (void)close(to);
    return status;
}

static bool is_debug_file(const char *name)
{
    size_t size = strlen(name);
    return size > 6 && strcmp(name + size - 6, ".debug") == 0;
}

static enum status copy_folder(int above, int target_above, const char *name, int depth, struct error *error)
{
    int folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0) return errno == ENOENT || errno == ENOTDIR ? STATUS_OK : error_set_errno(error, "%s", name);
    DIR *entries = fdopendir(folder);
    bool is_made = entries && mkdirat(target_above, name, 0700) == 0;
    int target = is_made ? openat(target_above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    enum status status = target >= 0 ? STATUS_OK : error_set_errno(error, "cannot copy debug files");
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(entries));) {
        bool is_chunks = strcmp(entry->d_name, "waiting") == 0;
        if (entry->d_name[0] == '.' || is_chunks) continue;
        if (depth < DEPTH)
            status = copy_folder(folder, target, entry->d_name, depth + 1, error);
        else if (is_debug_file(entry->d_name))
            status = copy_file(folder, target, entry->d_name, error);
    }
    if (status == STATUS_OK && fsync(target) != 0) status = error_set_errno(error, "cannot copy debug files");
    if (target >= 0) (void)close(target);
    if (entries)
        (void)closedir(entries);
    else
        (void)close(folder);
    return status;
}

enum status debug_back_up(const char *folder, const char *target, struct error *error)
{
    int from = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), to = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status status = from >= 0 && to >= 0 ? copy_folder(from, to, "debug", 0, error)
                                              : error_set_errno(error, "cannot copy debug files");
    if (from >= 0) (void)close(from);
    if (to >= 0) (void)close(to);
    return status;
}
