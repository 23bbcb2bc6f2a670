/* Removes old data, and measures the room that data have.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

uint64_t day_bytes(const char *folder, const char *name)
{
    char path[STORE_PATH_SIZE + 32];
    struct stat info;
    uint64_t bytes = 0;
    for (size_t i = 0; i < DAY_FILES; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s%s", folder, name, day_file_endings[i]);
        if (stat(path, &info) == 0) bytes += (uint64_t)info.st_blocks * 512;
    }
    return bytes;
}

static void unlink_day(const char *folder, const char *name)
{
    char path[STORE_PATH_SIZE + 32];
    for (size_t i = 0; i < DAY_FILES; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s%s", folder, name, day_file_endings[i]);
        (void)unlink(path);
    }
}

enum status store_trim(const char *path, uint64_t bytes_max, uint64_t *ret_removed, struct error *error)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count;
    int lock;
    uint64_t bytes = 0;
    *ret_removed = 0;
    if (bytes_max == 0 || access(path, F_OK) != 0) return STATUS_OK;
    enum status status = lock_folder(path, &lock, error);
    if (status != STATUS_OK) return status;
    status = list_days(path, &names, &count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) bytes += day_bytes(path, names[i]);
    for (size_t i = 0; i + 1 < count && status == STATUS_OK && bytes > bytes_max; i++) {
        bytes -= day_bytes(path, names[i]);
        unlink_day(path, names[i]);
        ++*ret_removed;
    }
    if (status == STATUS_OK) free(names);
    (void)close(lock);
    return status;
}

static void remove_day(struct store *store, const char *name)
{
    if (strcmp(store->today.name, name) == 0) day_close(&store->today);
    for (size_t i = 0; i < FILES_BEFORE_MAX; i++) {
        if (strcmp(store->before[i].name, name) == 0) day_close(&store->before[i]);
    }
    unlink_day(store->folder, name);
    control_forget_day(store, name);
}

void store_limit_disk(struct store *store, uint64_t bytes_max)
{
    (void)pthread_mutex_lock(&store->writer_lock);
    store->disk_bytes_max = bytes_max;
    (void)pthread_mutex_unlock(&store->writer_lock);
}

void make_disk_room(struct store *store, uint64_t needed)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count;
    uint64_t bytes = needed;
    if (store->disk_bytes_max == 0 || list_days(store->folder, &names, &count, NULL) != STATUS_OK) return;
    for (size_t i = 0; i < count; i++) bytes += day_bytes(store->folder, names[i]);
    for (size_t i = 0; i + 1 < count && bytes > store->disk_bytes_max; i++) {
        bytes -= day_bytes(store->folder, names[i]);
        remove_day(store, names[i]);
    }
    free(names);
}

static void remove_rejected(struct store *store, const char *name, uint64_t before_ns)
{
    struct day day;
    struct error ignored;
    sqlite3_stmt *statement = NULL;
    if (day_open(&day, store->folder, name, false, &ignored) != STATUS_OK) return;
    if (sqlite3_prepare_v2(day.db, "DELETE FROM rejected WHERE received_ns<?", -1, &statement, NULL) == SQLITE_OK) {
        sql_bind_u64(statement, 1, before_ns);
        (void)sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement);
    day_close(&day);
}

enum status days_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                        uint64_t *ret_removed, struct error *error)
{
    char(*names)[DAY_NAME_SIZE], oldest[DAY_NAME_SIZE];
    size_t count;
    uint64_t bytes = 0, removed = 0;
    struct project_limits limits;
    enum status status = limits_read(store, &limits, error);
    if (status != STATUS_OK) {
        free(limits.items);
        return status;
    }
    uint64_t longest_ns = limits_longest_age(&limits, age_ns);
    (void)pthread_mutex_lock(&store->writer_lock);
    status = list_days(store->folder, &names, &count, error);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < count; i++) bytes += day_bytes(store->folder, names[i]);
        day_name(now_ns > longest_ns ? now_ns - longest_ns : 0, oldest);
        for (size_t i = 0; i < count; i++) {
            bool is_expired = longest_ns && day_is_before(names[i], oldest);
            if (is_expired || (bytes_max && bytes > bytes_max && i + 1 < count)) {
                bytes -= day_bytes(store->folder, names[i]);
                remove_day(store, names[i]);
                removed++;
            } else if (i + 2 >= count) {
                remove_rejected(store, names[i], now_ns > DAY_NS ? now_ns - DAY_NS : 0);
            }
        }
        free(names);
    }
    (void)pthread_mutex_unlock(&store->writer_lock);
    if (status == STATUS_OK) status = limits_apply(store, &limits, now_ns, age_ns, &removed, error);
    free(limits.items);
    if (ret_removed) *ret_removed = removed;
    return status;
}

void store_usage(struct store *store, struct store_usage *ret_usage)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count;
    *ret_usage = (struct store_usage){0};
    if (list_days(store->folder, &names, &count, NULL) == STATUS_OK) {
        ret_usage->days = count;
        for (size_t i = 0; i < count; i++) ret_usage->bytes += day_bytes(store->folder, names[i]);
        free(names);
    }
    struct statvfs disk;
    if (statvfs(store->folder, &disk) == 0) ret_usage->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    (void)pthread_mutex_lock(&store->queue_lock);
    ret_usage->commits = store->commits;
    ret_usage->batches = store->batches;
    ret_usage->waiting = store->waiting_count;
    (void)pthread_mutex_unlock(&store->queue_lock);
    if (store->engine->add_usage) store->engine->add_usage(store, ret_usage);
}

bool store_has_room(struct store *store)
{
    enum { ROOM_BYTES = 256 << 10, PROBE_BYTES = 64 << 10, FAILURE_SECONDS = 10 };
    char path[STORE_PATH_SIZE + 32];
    struct statvfs disk;
    (void)pthread_mutex_lock(&store->queue_lock);
    uint64_t failed_ns = store->failed_ns;
    (void)pthread_mutex_unlock(&store->queue_lock);
    if (statvfs(store->folder, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < ROOM_BYTES) return false;
    if (!failed_ns) return true;
    if (clock_monotonic_ns() - failed_ns < FAILURE_SECONDS * SECOND_NS) return false;
    /* Nothing was sent since, and a quota or a limit of files may be the cause. */
    (void)snprintf(path, sizeof(path), "%s/room", store->folder);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool has_room = file >= 0 && posix_fallocate(file, 0, PROBE_BYTES) == 0;
    if (file >= 0) (void)close(file);
    (void)unlink(path);
    return has_room;
}
