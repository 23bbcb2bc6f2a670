/* A copy of all data while a server writes them.
 *
 * Each file is copied as it is at one moment, by SQLite, without stopping its writer. The files of days are first and
 * the control file is last, so that the copy knows every project that its days have. The folder gets its name when
 * everything is in it and on disk: an interrupted copy is not taken for a whole one.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKUP_PATH_SIZE = STORE_PATH_SIZE + 32 };

/* STATUS_NOT_FOUND if FOLDER has no such file: retention may have removed it. */
static enum status copy_file(const char *folder, const char *target, const char *name, struct error *error)
{
    char from[BACKUP_PATH_SIZE], to[BACKUP_PATH_SIZE];
    sqlite3 *source = NULL, *copy = NULL;
    (void)snprintf(from, sizeof(from), "%s/%s", folder, name);
    (void)snprintf(to, sizeof(to), "%s/%s", target, name);
    if (access(from, F_OK) != 0) return error_set(error, STATUS_NOT_FOUND, 0, "%s: there is no such file", from);
    enum status status = STATUS_OK;
    if (checked_file_open(from, &source, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, INDEX_IN_FILE) != SQLITE_OK)
        status = sql_failed(source, error, from);
    if (status == STATUS_OK &&
        checked_file_open(to, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, INDEX_IN_FILE) !=
            SQLITE_OK)
        status = sql_failed(copy, error, to);
    if (status == STATUS_OK) {
        (void)sqlite3_busy_timeout(source, BUSY_MS);
        sqlite3_backup *backup = sqlite3_backup_init(copy, "main", source, "main");
        int code = SQLITE_BUSY;
        while (backup && (code == SQLITE_BUSY || code == SQLITE_LOCKED)) {
            code = sqlite3_backup_step(backup, -1);
            if (code != SQLITE_DONE) (void)sqlite3_sleep(20);
        }
        bool is_finished = backup && sqlite3_backup_finish(backup) == SQLITE_OK;
        if (!is_finished || code != SQLITE_DONE) status = sql_failed(copy, error, name);
    }
    (void)sqlite3_close(source);
    (void)sqlite3_close(copy);
    return status;
}

/* --- Debug files -------------------------------------------------------------------------------------------------- */

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
static enum status copy_debug_file(int folder, int target, const char *name, struct error *error)
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

static enum status copy_debug_folder(int above, int target_above, const char *name, int depth, struct error *error)
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
        size_t size = strlen(entry->d_name);
        bool is_debug_file = size > 6 && strcmp(entry->d_name + size - 6, ".debug") == 0;
        if (depth < DEPTH)
            status = copy_debug_folder(folder, target, entry->d_name, depth + 1, error);
        else if (is_debug_file)
            status = copy_debug_file(folder, target, entry->d_name, error);
    }
    if (status == STATUS_OK && fsync(target) != 0) status = error_set_errno(error, "cannot copy debug files");
    if (target >= 0) (void)close(target);
    if (entries)
        (void)closedir(entries);
    else
        (void)close(folder);
    return status;
}

static enum status back_up_debug_files(const char *folder, const char *target, struct error *error)
{
    int from = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), to = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status status = from >= 0 && to >= 0 ? copy_debug_folder(from, to, "debug", 0, error)
                                              : error_set_errno(error, "cannot copy debug files");
    if (from >= 0) (void)close(from);
    if (to >= 0) (void)close(to);
    return status;
}

/* --- The backup -----------------------------------------------------------------------------------------------------
 */

static enum status copy_files(const char *folder, const char *target, store_report *report, void *context,
                              struct error *error)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count, copied = 0;
    enum status status = list_days(folder, &names, &count, error);
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = copy_file(folder, target, names[i], error);
        copied += status == STATUS_OK;
        if (status == STATUS_NOT_FOUND) status = STATUS_OK;
    }
    free(names);
    if (status == STATUS_OK) status = copy_file(folder, target, "control.db", error);
    /* After the control file: what it knows, and what was added since, is there. */
    if (status == STATUS_OK) status = back_up_debug_files(folder, target, error);
    if (status == STATUS_OK) store_print(report, context, "%zu days were copied", copied);
    return status;
}

/* Writes the entries of the folder PATH to disk. */
static enum status sync_folder(const char *path, struct error *error)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = folder >= 0 && fsync(folder) == 0;
    enum status status = is_synced ? STATUS_OK : error_set_errno(error, "%s", path);
    if (folder >= 0) (void)close(folder);
    return status;
}

enum status store_backup(const char *path, const char *target, store_report *report, void *context, struct error *error)
{
    char part[STORE_PATH_SIZE], above[STORE_PATH_SIZE + 8], control[BACKUP_PATH_SIZE];
    size_t size = strlen(target);
    while (size > 1 && target[size - 1] == '/') size--;
    if (size + 32 > sizeof(part) || strlen(path) + 32 > STORE_PATH_SIZE)
        return error_set(error, STATUS_TOO_LARGE, 0, "the path is too long");
    (void)snprintf(part, sizeof(part), "%.*s.part", (int)size, target);
    (void)snprintf(above, sizeof(above), "%.*s/..", (int)size, target);
    (void)snprintf(control, sizeof(control), "%s/control.db", path);
    if (access(control, F_OK) != 0) return error_set_errno(error, "%s", control);
    if (rmdir(target) != 0 && errno != ENOENT) return error_set_errno(error, "%s", target);
    if (mkdir(part, 0700) != 0) return error_set_errno(error, "%s", part);
    enum status status = copy_files(path, part, report, context, error);
    if (status == STATUS_OK) status = sync_folder(part, error);
    if (status == STATUS_OK && rename(part, target) != 0) status = error_set_errno(error, "%s", target);
    return status == STATUS_OK ? sync_folder(above, error) : status;
}
