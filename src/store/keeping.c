/* What is removed, and what is checked.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const ENDINGS[] = {"", "-wal", "-shm"};

static uint64_t bytes_of_day(const char *folder, const char *name)
{
    char path[STORE_PATH_SIZE + 32];
    struct stat info;
    uint64_t bytes = 0;
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s%s", folder, name, ENDINGS[i]);
        if (stat(path, &info) == 0) bytes += (uint64_t)info.st_blocks * 512;
    }
    return bytes;
}

static void remove_day(struct store *store, const char *name)
{
    char path[STORE_PATH_SIZE + 32];
    if (strcmp(store->today.name, name) == 0) day_close(&store->today);
    if (strcmp(store->yesterday.name, name) == 0) day_close(&store->yesterday);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s%s", store->folder, name, ENDINGS[i]);
        (void)unlink(path);
    }
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

static bool is_over(uint64_t bytes, uint64_t bytes_max)
{
    return bytes_max && bytes > bytes_max;
}

enum status store_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                         uint64_t *ret_removed, struct error *error)
{
    char(*names)[DAY_NAME_SIZE], oldest[DAY_NAME_SIZE];
    size_t count;
    uint64_t bytes = 0, removed = 0;
    (void)pthread_mutex_lock(&store->writer_lock);
    enum status status = list_days(store->folder, &names, &count, error);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < count; i++) bytes += bytes_of_day(store->folder, names[i]);
        day_name(now_ns > age_ns ? now_ns - age_ns : 0, oldest);
        for (size_t i = 0; i < count; i++) {
            bool is_expired = age_ns && strcmp(names[i], oldest) < 0;
            if (is_expired || (is_over(bytes, bytes_max) && i + 1 < count)) {
                bytes -= bytes_of_day(store->folder, names[i]);
                remove_day(store, names[i]);
                removed++;
            } else if (i + 2 >= count) {
                remove_rejected(store, names[i], now_ns > DAY_NS ? now_ns - DAY_NS : 0);
            }
        }
        free(names);
    }
    (void)pthread_mutex_unlock(&store->writer_lock);
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
        for (size_t i = 0; i < count; i++) ret_usage->bytes += bytes_of_day(store->folder, names[i]);
        free(names);
    }
    (void)pthread_mutex_lock(&store->queue_lock);
    ret_usage->commits = store->commits;
    ret_usage->batches = store->batches;
    ret_usage->waiting = store->waiting_count;
    (void)pthread_mutex_unlock(&store->queue_lock);
}

/* --- Checking -------------------------------------------------------------------------------------------------------
 */

struct check {
    const char *folder;
    store_report *report;
    void *context;
    uint64_t chunks, damaged_chunks;
    struct day *copy; /* NULL: nothing is copied */
};

/* Decompresses each payload; copies what is whole. */
static void check_chunks(struct check *check, struct day *day)
{
    static const char sql[] = "SELECT " CHUNK_COLUMNS ",payload FROM chunk JOIN chunk_raw USING(id)";
    sqlite3_stmt *row = NULL;
    struct buffer payload;
    struct error error;
    buffer_init(&payload, STORE_PAYLOAD_BYTES_MAX);
    if (sqlite3_prepare_v2(day->db, sql, -1, &row, NULL) == SQLITE_OK) {
        while (sqlite3_step(row) == SQLITE_ROW) {
            buffer_clear(&payload);
            struct slice packed = sql_text(row, 14);
            check->chunks++;
            if (payload_unpack(packed, sql_u64(row, 13), &payload, &error) != STATUS_OK) {
                check->damaged_chunks++;
                continue;
            }
            if (!check->copy) continue;
            struct store_chunk chunk = chunk_of_row(row);
            chunk.payload = buffer_slice(&payload);
            bool is_new;
            (void)day_add_chunk(check->copy, &chunk, packed, &is_new, &error);
        }
    }
    (void)sqlite3_finalize(row);
    buffer_fini(&payload);
}

/* Copies what can be read of NAME to a new file of that name, and moves the old one aside. */
static void repair(struct check *check, struct day *day, const char *name)
{
    struct day copy;
    struct error error = {0};
    char folder[STORE_PATH_SIZE + 16], from[STORE_PATH_SIZE + 64], to[STORE_PATH_SIZE + 32];
    (void)snprintf(folder, sizeof(folder), "%s/repair", check->folder);
    (void)mkdir(folder, 0700);
    if (day_open(&copy, folder, name, true, &error) != STATUS_OK) {
        store_print(check->report, check->context, "%s", error.message);
        return;
    }
    uint64_t before = check->chunks;
    check->copy = &copy;
    (void)sqlite3_exec(copy.db, "BEGIN", NULL, NULL, NULL);
    if (day->db) check_chunks(check, day);
    (void)sqlite3_exec(copy.db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    check->copy = NULL;
    day_close(&copy);
    day_close(day);
    move_aside(check->folder, name, check->report, check->context);
    (void)snprintf(from, sizeof(from), "%s/%s", folder, name);
    (void)snprintf(to, sizeof(to), "%s/%s", check->folder, name);
    (void)rename(from, to);
    (void)rmdir(folder);
    store_print(check->report, check->context, "%s: %llu chunks were copied to a new file", name,
                (unsigned long long)(check->chunks - before - check->damaged_chunks));
    check->chunks = before;
}

static bool check_day(struct check *check, const char *name, bool repairs)
{
    struct day day;
    struct error error = {0};
    char problem[200] = "";
    check->chunks = check->damaged_chunks = 0;
    enum status status = day_open(&day, check->folder, name, false, &error);
    if (status == STATUS_NOT_FOUND) return true;
    bool is_whole = status == STATUS_OK && day_is_whole(&day, problem, sizeof(problem));
    if (status == STATUS_OK) check_chunks(check, &day);
    bool is_fine = is_whole && check->damaged_chunks == 0;
    if (is_fine)
        store_print(check->report, check->context, "%s: %llu chunks, no damage", name,
                    (unsigned long long)check->chunks);
    else
        store_print(check->report, check->context, "%s is damaged: %s; %llu chunks, %llu of them damaged", name,
                    status != STATUS_OK ? error.message : problem, (unsigned long long)check->chunks,
                    (unsigned long long)check->damaged_chunks);
    check->damaged_chunks = 0;
    if (!is_fine && repairs) repair(check, &day, name);
    day_close(&day);
    return is_fine;
}

enum status store_check(const char *path, bool repairs, store_report *report, void *context, uint64_t *ret_damaged,
                        struct error *error)
{
    struct check check = {.folder = path, .report = report, .context = context};
    char(*names)[DAY_NAME_SIZE];
    size_t count;
    int lock;
    uint64_t damaged = 0;
    enum status status = lock_folder(path, &lock, error);
    if (status != STATUS_OK) return status;
    status = list_days(path, &names, &count, error);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < count; i++) damaged += !check_day(&check, names[i], repairs);
        free(names);
        *ret_damaged = damaged;
    }
    (void)close(lock);
    return status;
}
