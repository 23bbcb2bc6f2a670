/* Opens, closes and fills a store.
 *
 * One thread writes. It takes all batches that wait, stores them in one transaction of the day's file, and wakes their
 * threads after the commit: so that one fsync serves many requests (group commit). A chunk is stored under the day of
 * its receipt, because clocks of clients may be years off; a client tries again within minutes, so that a chunk is
 * looked for in the files of the DAYS_BEFORE days that were written before, too. As clocks of servers jump, the control
 * file knows their order.  SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "store/store_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* A file that a killed server left is repaired by SQLite when it is opened. */
static enum status open_all_days(struct store *store, struct error *error)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count;
    enum status status = list_days(store->folder, &names, &count, error);
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct day day;
        struct error problem = {0};
        status = day_open(&day, store->folder, names[i], true, &problem);
        if (status == STATUS_MALFORMED) {
            move_aside(store->folder, names[i], store->report, store->report_context);
            status = STATUS_OK;
        } else if (status != STATUS_OK && error) {
            *error = problem;
        } else {
            day_close(&day);
            status = control_know_day(store, names[i], error);
        }
    }
    free(names);
    return status;
}

/* Makes the folder PATH, which is locked, with what each engine needs. */
static enum status open_folder(struct store *store, const char *path, struct error *error)
{
    (void)snprintf(store->folder, sizeof(store->folder), "%s", path);
    file_make_folders_above(store->folder, 1);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return error_set_errno(error, "%s", path);
    enum status status = lock_folder(path, &store->lock, error);
    if (status == STATUS_OK) status = control_open(store, error);
    if (status == STATUS_OK) status = debug_open(store, error);
    return status;
}

/* Returns a store that is not open. NULL without memory, or if PATH is too long. */
static struct store *store_new(const char *path, store_report *report, void *context, struct error *error)
{
    struct store *store = calloc(1, sizeof(*store));
    if (!store || strlen(path) >= STORE_PATH_SIZE - 64) {
        (void)(store ? error_set(error, STATUS_TOO_LARGE, 0, "the path is too long")
                     : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory"));
        free(store);
        return NULL;
    }
    store->report = report;
    store->report_context = context;
    store->lock = -1;
    store->end = &store->first;
    (void)pthread_mutex_init(&store->control_lock, NULL);
    (void)pthread_mutex_init(&store->debug_lock, NULL);
    (void)pthread_mutex_init(&store->queue_lock, NULL);
    (void)pthread_mutex_init(&store->writer_lock, NULL);
    (void)pthread_cond_init(&store->has_work, NULL);
    (void)pthread_cond_init(&store->has_done, NULL);
    return store;
}

static enum status start_writer(struct store *store, struct error *error)
{
    store->has_writer = pthread_create(&store->writer, NULL, store_write, store) == 0;
    return store->has_writer ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "cannot start a thread");
}

enum status store_open_with(const char *path, const struct store_engine *engine, void *data, store_report *report,
                            void *context, struct store **ret_store, struct error *error)
{
    struct store *store = store_new(path, report, context, error);
    if (!store && data) engine->close(data);
    if (!store) return STATUS_NO_MEMORY;
    store->engine = engine;
    store->engine_data = data ? data : store;
    enum status status = open_folder(store, path, error);
    if (status == STATUS_OK)
        *ret_store = store;
    else
        store_close(store);
    return status;
}

/* A folder of a cluster has keys and no data: it would look like an empty store. */
static enum status check_place(const char *path, struct error *error)
{
    char file[STORE_PATH_SIZE + 16];
    (void)snprintf(file, sizeof(file), "%s/" STORE_ELSEWHERE_FILE, path);
    if (access(file, F_OK) != 0) return STATUS_OK;
    return error_set(
        error, STATUS_UNSUPPORTED, 0,
        "%.120s has the keys of a cluster's server: give serve its --store, or remove the file " STORE_ELSEWHERE_FILE
        " in it",
        path);
}

enum status store_open(const char *path, store_report *report, void *context, struct store **ret_store,
                       struct error *error)
{
    struct store *store;
    enum status status = check_place(path, error);
    if (status != STATUS_OK) return status;
    status = store_open_with(path, &days_engine, NULL, report, context, &store, error);
    if (status != STATUS_OK) return status;
    status = open_all_days(store, error);
    if (status == STATUS_OK) status = start_writer(store, error);
    if (status == STATUS_OK)
        *ret_store = store;
    else
        store_close(store);
    return status;
}

static void close_open_days(struct store *store)
{
    day_close(&store->today);
    for (size_t i = 0; i < FILES_BEFORE_MAX; i++) day_close(&store->before[i]);
}

void days_close(void *data)
{
    struct store *store = data;
    if (store->has_writer) {
        (void)pthread_mutex_lock(&store->queue_lock);
        store->is_closing = true;
        (void)pthread_cond_broadcast(&store->has_work);
        (void)pthread_mutex_unlock(&store->queue_lock);
        (void)pthread_join(store->writer, NULL);
    }
    close_open_days(store);
    known_dictionaries_clear(&store->dictionaries);
}

void store_close(struct store *store)
{
    if (!store) return;
    store->engine->close(store->engine_data);
    if (store->control) (void)sqlite3_close(store->control);
    if (store->lock >= 0) (void)close(store->lock);
    (void)pthread_mutex_destroy(&store->control_lock);
    (void)pthread_mutex_destroy(&store->debug_lock);
    (void)pthread_mutex_destroy(&store->queue_lock);
    (void)pthread_mutex_destroy(&store->writer_lock);
    (void)pthread_cond_destroy(&store->has_work);
    (void)pthread_cond_destroy(&store->has_done);
    free(store);
}

/* --- The writer's thread ------------------------------------------------------------------------------------------ */

/* Opens the files that were written before TODAY. A damaged one is left out: queries report it. */
static enum status open_before(struct store *store, struct error *error)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count, opened = 0;
    enum status status = control_list_days(store, &names, &count, error);
    if (status != STATUS_OK) return status;
    const char *day = store->today.name;
    size_t days = 0;
    for (size_t i = 0; i < count && opened < FILES_BEFORE_MAX && status == STATUS_OK; i++) {
        char path[STORE_PATH_SIZE + DAY_NAME_SIZE + 1];
        (void)snprintf(path, sizeof(path), "%s/%s", store->folder, names[i]);
        if (strcmp(store->today.name, names[i]) == 0 || access(path, F_OK) != 0) continue;
        days += strncmp(day, names[i], DATE_SIZE) != 0;
        if (days > DAYS_BEFORE) break;
        day = names[i];
        status = day_open(&store->before[opened], store->folder, names[i], true, error);
        if (status == STATUS_OK)
            (void)sqlite3_exec(store->before[opened++].db, "PRAGMA cache_size=-512", NULL, NULL, NULL);
        if (status == STATUS_MALFORMED) status = STATUS_OK;
    }
    free(names);
    return status;
}

/* Returns the largest size of a data file. */
static uint64_t file_bytes_max(const struct store *store)
{
    uint64_t bytes = store->disk_bytes_max / DISK_PARTS;
    if (store->disk_bytes_max == 0) return UINT64_MAX;
    return bytes > FILE_BYTES_MIN ? bytes : FILE_BYTES_MIN;
}

/* Bounds the log of TODAY, which is on the disk beside the file. */
static void limit_log(struct store *store)
{
    enum { PAGE_BYTES = 16384, PAGES_MIN = 16, PAGES_MAX = 1000 };
    char sql[64];
    if (store->disk_bytes_max == 0) return;
    uint64_t pages = file_bytes_max(store) / 4 / PAGE_BYTES;
    pages = pages < PAGES_MIN ? PAGES_MIN : pages > PAGES_MAX ? PAGES_MAX : pages;
    (void)sqlite3_wal_autocheckpoint(store->today.db, (int)pages);
    (void)snprintf(sql, sizeof(sql), "PRAGMA journal_size_limit=%llu", (unsigned long long)pages * PAGE_BYTES);
    (void)sqlite3_exec(store->today.db, sql, NULL, NULL, NULL);
}

/* Sets RET_NAME to the file of the day of NOW_NS that is written: its last one, or the next one if that is full. */
static enum status choose_today(struct store *store, uint64_t now_ns, char ret_name[DAY_NAME_SIZE], struct error *error)
{
    char(*names)[DAY_NAME_SIZE], name[DAY_NAME_SIZE], last[DAY_NAME_SIZE] = "";
    size_t count;
    day_name(now_ns, name);
    enum status status = STATUS_OK;
    if (store->today.db && strncmp(store->today.name, name, DATE_SIZE) == 0) {
        (void)memcpy(last, store->today.name, sizeof(last));
    } else {
        status = list_days(store->folder, &names, &count, error);
        for (size_t i = 0; i < count && status == STATUS_OK; i++) {
            if (strncmp(names[i], name, DATE_SIZE) == 0) (void)memcpy(last, names[i], sizeof(last));
        }
        if (status == STATUS_OK) free(names);
    }
    if (last[0] && day_bytes(store->folder, last) >= file_bytes_max(store))
        day_next_name(last, ret_name);
    else
        (void)memcpy(ret_name, last[0] ? last : name, DAY_NAME_SIZE);
    return status;
}

static enum status open_today(struct store *store, uint64_t now_ns, struct error *error)
{
    char name[DAY_NAME_SIZE];
    enum status status = choose_today(store, now_ns, name, error);
    if (status != STATUS_OK) return status;
    if (store->today.db && strcmp(store->today.name, name) == 0) return STATUS_OK;
    close_open_days(store);
    status = control_write_day(store, name, error);
    if (status == STATUS_OK) status = day_open(&store->today, store->folder, name, true, error);
    if (status == STATUS_OK) limit_log(store);
    if (status == STATUS_OK) status = open_before(store, error);
    if (status != STATUS_OK) close_open_days(store);
    return status;
}

static enum status store_chunks(struct store *store, struct waiting *waiting, struct error *error)
{
    const struct store_batch *batch = waiting->batch;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < batch->chunk_count && status == STATUS_OK; i++) {
        const struct store_chunk *chunk = &batch->chunks[i];
        bool is_new = false, is_found = false;
        int64_t row;
        for (size_t k = 0; k < FILES_BEFORE_MAX && !is_found && status == STATUS_OK; k++)
            status = day_find_chunk(&store->before[k], chunk, &is_found, error);
        if (status == STATUS_OK && !is_found)
            status = day_add_chunk(&store->today, chunk, buffer_slice(&waiting->packed[i]), &is_new, &row, error);
        if (status == STATUS_OK && is_new && chunk->rollup)
            status = rollup_store(&store->dictionaries, &store->today, chunk, row, error);
        waiting->duplicates += !is_new;
    }
    return status;
}

static enum status store_one(struct store *store, struct waiting *waiting, struct error *error)
{
    const struct store_batch *batch = waiting->batch;
    waiting->duplicates = 0;
    enum status status = store_chunks(store, waiting, error);
    for (size_t i = 0; i < batch->span_count && status == STATUS_OK; i++)
        status = day_add_span(&store->today, batch->project, &batch->spans[i], error);
    for (size_t i = 0; i < batch->rejected_count && status == STATUS_OK; i++)
        status = day_add_rejected(&store->today, batch->project, &batch->rejected[i],
                                  buffer_slice(&waiting->packed[batch->chunk_count + i]), error);
    for (size_t i = 0; i < batch->outcome_count && status == STATUS_OK; i++)
        status = day_add_outcome(&store->today, batch->project, &batch->outcomes[i], error);
    return status;
}

/* Returns the room that GROUP may need: its payloads in the log and in the file, with their sums. */
static uint64_t bytes_of_group(const struct waiting *group)
{
    uint64_t bytes = 256 << 10;
    for (; group; group = group->next) {
        size_t count = group->batch->chunk_count + group->batch->rejected_count;
        for (size_t i = 0; i < count; i++) bytes += 4 * (uint64_t)group->packed[i].size;
    }
    return bytes;
}

static enum status store_group(struct store *store, struct waiting *group, struct error *error)
{
    make_disk_room(store, bytes_of_group(group));
    enum status status = open_today(store, group->batch->received_ns, error);
    if (status == STATUS_OK && sqlite3_exec(store->today.db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        status = sql_failed(store->today.db, error, "cannot store");
    for (struct waiting *waiting = group; waiting && status == STATUS_OK; waiting = waiting->next)
        status = store_one(store, waiting, error);
    if (status == STATUS_OK && sqlite3_exec(store->today.db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = sql_failed(store->today.db, error, "cannot store");
    if (status != STATUS_OK && store->today.db) (void)sqlite3_exec(store->today.db, "ROLLBACK", NULL, NULL, NULL);
    if (status != STATUS_OK) known_dictionaries_clear(&store->dictionaries);
    return status;
}

/* A damaged file is moved aside, and the group is stored in a new one. */
static enum status store_or_replace(struct store *store, struct waiting *group, struct error *error)
{
    (void)pthread_mutex_lock(&store->writer_lock);
    enum status status = store_group(store, group, error);
    if (status == STATUS_MALFORMED) {
        char name[DAY_NAME_SIZE];
        struct error ignored;
        (void)choose_today(store, group->batch->received_ns, name, &ignored);
        close_open_days(store);
        move_aside(store->folder, name, store->report, store->report_context);
        status = store_group(store, group, error);
    }
    (void)pthread_mutex_unlock(&store->writer_lock);
    return status;
}

void *store_write(void *context)
{
    struct store *store = context;
    (void)pthread_mutex_lock(&store->queue_lock);
    for (;;) {
        while (!store->first && !store->is_closing) (void)pthread_cond_wait(&store->has_work, &store->queue_lock);
        struct waiting *group = store->first;
        if (!group) break;
        store->first = NULL;
        store->end = &store->first;
        (void)pthread_mutex_unlock(&store->queue_lock);
        struct error error = {0};
        enum status status = store_or_replace(store, group, &error);
        (void)pthread_mutex_lock(&store->queue_lock);
        store->commits += status == STATUS_OK;
        store->failed_ns = status == STATUS_IO ? clock_monotonic_ns() : 0;
        for (struct waiting *waiting = group, *next; waiting; waiting = next) {
            next = waiting->next;
            waiting->status = status;
            waiting->error = error;
            waiting->is_done = true;
            store->waiting_count--;
            store->batches += status == STATUS_OK;
        }
        (void)pthread_cond_broadcast(&store->has_done);
    }
    (void)pthread_mutex_unlock(&store->queue_lock);
    return NULL;
}

/* --- Adding ------------------------------------------------------------------------------------------------------- */

static enum status pack_all(struct waiting *waiting, struct error *error)
{
    const struct store_batch *batch = waiting->batch;
    size_t count = batch->chunk_count + batch->rejected_count;
    waiting->packed = calloc(count ? count : 1, sizeof(*waiting->packed));
    if (!waiting->packed) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to store a payload");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        bool is_chunk = i < batch->chunk_count;
        struct slice payload = is_chunk ? batch->chunks[i].payload : batch->rejected[i - batch->chunk_count].payload;
        if (!is_chunk && payload.size > STORE_REJECTED_BYTES_MAX) continue;
        buffer_init(&waiting->packed[i], STORE_PAYLOAD_BYTES_MAX + (STORE_PAYLOAD_BYTES_MAX >> 7));
        status = payload_pack(payload, &waiting->packed[i], error);
    }
    return status;
}

static enum status wait_for_commit(struct store *store, struct waiting *waiting, struct error *error)
{
    (void)pthread_mutex_lock(&store->queue_lock);
    bool is_full = store->waiting_count >= STORE_WAITING_MAX || store->is_closing;
    if (!is_full) {
        *store->end = waiting;
        store->end = &waiting->next;
        store->waiting_count++;
        (void)pthread_cond_signal(&store->has_work);
        while (!waiting->is_done) (void)pthread_cond_wait(&store->has_done, &store->queue_lock);
    }
    (void)pthread_mutex_unlock(&store->queue_lock);
    if (is_full) return error_set(error, STATUS_TOO_LARGE, 0, "too much waits for the disk");
    if (waiting->status != STATUS_OK && error) *error = waiting->error;
    return waiting->status;
}

enum status days_add(struct store *store, const struct store_batch *batch, uint64_t *ret_duplicates,
                     struct error *error)
{
    struct waiting waiting = {.batch = batch};
    enum status status = pack_all(&waiting, error);
    if (status == STATUS_OK) status = wait_for_commit(store, &waiting, error);
    size_t count = batch->chunk_count + batch->rejected_count;
    for (size_t i = 0; i < count && waiting.packed; i++) buffer_fini(&waiting.packed[i]);
    free(waiting.packed);
    if (status == STATUS_OK && ret_duplicates) *ret_duplicates = waiting.duplicates;
    return status;
}
