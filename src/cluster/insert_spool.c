/* SPDX-License-Identifier: MIT */
#include "cluster/insert_spool.h"

#include "base/array.h"
#include "base/clocks.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/hex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SPOOL_PATH_SIZE = 4200,
    SPOOL_FILES_MAX = 1 << 16,
    SPOOL_FLUSH_MS = 1000, /* a file takes records for so long */
    SPOOL_FILES_MANY = 1 << 14,
    SPOOL_MANY_FLUSH_MS = 60000, /* the same while there are many files: the cluster has been away for hours */
    SPOOL_WAITING_MAX = 1024,
    SPOOL_HEADER_BYTES = 8,
};

struct spool_file {
    uint64_t number, bytes;
    uint64_t begun_ns; /* UTC */
    uint64_t taken_ns; /* monotonic time when all shards had it; 0: they have not */
    uint32_t taken_by; /* bits of the shards that have it by PLACEMENT */
    uint64_t placement;
    bool is_finished, ends_at_once;
};

/* A record that waits for the disk; the thread that added it owns the memory. */
struct waiting_record {
    struct slice record;
    struct waiting_record *next;
    uint64_t file;
    bool is_done;
    enum status status;
    struct error error;
};

struct insert_spool {
    char folder[SPOOL_PATH_SIZE];
    uint64_t bytes_max;
    pthread_mutex_t order; /* taken before LOCK, from insert_spool_begin on */
    pthread_mutex_t lock;  /* lock of all below */
    pthread_cond_t changed;
    struct waiting_record *first, **end;
    size_t waiting_count;
    ARRAY_OF(struct spool_file) files;   /* files in the order of their numbers */
    uint64_t left;                       /* number of the last file of an earlier process */
    uint64_t next_number, waiting_bytes; /* bytes of files that the cluster has not */
    int current;                         /* descriptor of the last of FILES; -1: the next record begins one */
    bool is_stopping, has_lost, is_hurried, is_lazy;
    pthread_t writer;
    bool has_writer;
};

static void file_path(const struct insert_spool *spool, uint64_t number, char path[SPOOL_PATH_SIZE + 32])
{
    char digits[17];
    hex_write_u64(digits, number);
    (void)snprintf(path, SPOOL_PATH_SIZE + 32, "%s/%s.rows", spool->folder, digits);
}

/* --- The writer's thread ------------------------------------------------------------------------------------------ */

static struct spool_file *find_file(struct insert_spool *spool, uint64_t number)
{
    for (size_t i = spool->files.count; i-- > 0;) {
        if (spool->files.items[i].number == number) return &spool->files.items[i];
    }
    return NULL;
}

static void finish_current(struct insert_spool *spool)
{
    if (spool->current < 0) return;
    (void)close(spool->current);
    spool->current = -1;
    spool->files.items[spool->files.count - 1].is_finished = true;
    (void)pthread_cond_broadcast(&spool->changed);
}

static enum status begin_file(struct insert_spool *spool, struct error *error)
{
    char path[SPOOL_PATH_SIZE + 32];
    file_path(spool, spool->next_number, path);
    spool->current = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (spool->current < 0) return error_set_errno(error, "cannot write %s", path);
    const struct spool_file file = {.number = spool->next_number++, .begun_ns = clock_utc_ns()};
    int folder = open(spool->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_noted = folder >= 0 && fsync(folder) == 0 && ARRAY_PUSH(&spool->files, SPOOL_FILES_MAX, file);
    if (folder >= 0) (void)close(folder);
    if (is_noted) return STATUS_OK;
    (void)unlink(path);
    (void)close(spool->current);
    spool->current = -1;
    return error_set(error, STATUS_IO, 0, "cannot write %s", path);
}

static bool append_all(struct buffer *bytes, const struct waiting_record *group)
{
    for (; group; group = group->next) {
        uint32_t header[2] = {(uint32_t)group->record.size,
                              libdeflate_crc32(0, group->record.data, group->record.size)};
        buffer_append(bytes, header, SPOOL_HEADER_BYTES);
        buffer_append(bytes, group->record.data, group->record.size);
    }
    return !bytes->failed;
}

/* Writes GROUP without the lock: only this thread writes. */
static enum status write_group(struct insert_spool *spool, const struct waiting_record *group, uint64_t *ret_bytes,
                               struct error *error)
{
    struct buffer bytes = {.maximum = (size_t)SPOOL_RECORD_BYTES_MAX * 2};
    enum status status = STATUS_OK;
    if (!append_all(&bytes, group)) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the spool");
    if (status == STATUS_OK) status = file_write_descriptor(spool->current, buffer_slice(&bytes), error);
    if (status == STATUS_OK && !spool->is_lazy && fdatasync(spool->current) != 0)
        status = error_set_errno(error, "cannot write the spool");
    *ret_bytes = bytes.size;
    buffer_fini(&bytes);
    return status;
}

static void end_group(struct insert_spool *spool, struct waiting_record *group, enum status status,
                      const struct error *error, uint64_t file)
{
    for (struct waiting_record *waiting = group, *next; waiting; waiting = next) {
        next = waiting->next;
        waiting->status = status;
        waiting->error = *error;
        waiting->file = file;
        waiting->is_done = true;
        spool->waiting_count--;
    }
    (void)pthread_cond_broadcast(&spool->changed);
}

static struct waiting_record *take_group(struct insert_spool *spool)
{
    struct waiting_record *group = spool->first;
    spool->first = NULL;
    spool->end = &spool->first;
    return group;
}

/* Returns when FILE, which is written, is to be finished (UTC). */
static uint64_t end_of_file_ns(const struct insert_spool *spool, const struct spool_file *file)
{
    if (file->ends_at_once) return 0;
    uint64_t length_ms = spool->files.count < SPOOL_FILES_MANY ? SPOOL_FLUSH_MS : SPOOL_MANY_FLUSH_MS;
    return file->begun_ns + length_ms * 1000000;
}

/* Waits for records, and finishes a file whose time is over. Under the lock; false at the end. */
static bool wait_for_records(struct insert_spool *spool)
{
    while (!spool->first && !spool->is_stopping) {
        if (spool->current < 0) {
            (void)pthread_cond_wait(&spool->changed, &spool->lock);
            continue;
        }
        uint64_t end_ns = end_of_file_ns(spool, &spool->files.items[spool->files.count - 1]);
        struct timespec until = {(time_t)(end_ns / SECOND_NS), (long)(end_ns % SECOND_NS)};
        (void)pthread_cond_timedwait(&spool->changed, &spool->lock, &until);
        if (clock_utc_ns() >= end_ns) finish_current(spool);
    }
    return spool->first != NULL;
}

/* Writes what waits. If that fails, the records behind it are lost, too: they may depend on it. */
static void write_one_group(struct insert_spool *spool)
{
    struct error error = {0};
    uint64_t bytes = 0, number = 0;
    struct waiting_record *group = take_group(spool);
    enum status status = spool->current >= 0 ? STATUS_OK : begin_file(spool, &error);
    if (status == STATUS_OK) {
        number = spool->files.items[spool->files.count - 1].number;
        (void)pthread_mutex_unlock(&spool->lock);
        status = write_group(spool, group, &bytes, &error);
        (void)pthread_mutex_lock(&spool->lock);
        struct spool_file *file = find_file(spool, number);
        if (file && spool->current >= 0) {
            file->bytes += bytes;
            spool->waiting_bytes += bytes;
            uint64_t now_ns = clock_utc_ns();
            bool is_over = now_ns < file->begun_ns || now_ns > end_of_file_ns(spool, file);
            if (file->bytes >= SPOOL_FILE_BYTES_MAX || is_over || status != STATUS_OK) finish_current(spool);
        }
    }
    end_group(spool, group, status, &error, number);
    if (status == STATUS_OK) return;
    spool->has_lost = true;
    end_group(spool, take_group(spool), status, &error, 0);
}

static void *write_records(void *context)
{
    struct insert_spool *spool = context;
    (void)pthread_mutex_lock(&spool->lock);
    while (wait_for_records(spool)) write_one_group(spool);
    finish_current(spool);
    (void)pthread_mutex_unlock(&spool->lock);
    return NULL;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static int compare_files(const void *a, const void *b)
{
    const struct spool_file *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

/* Takes what an earlier process left: all of it is sent again, which is harmless. */
static enum status find_files(struct insert_spool *spool, struct error *error)
{
    DIR *folder = opendir(spool->folder);
    if (!folder) return error_set_errno(error, "cannot read %s", spool->folder);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        struct slice name = slice_of_text(entry->d_name);
        struct stat facts;
        uint64_t number;
        if (name.size != 21 || !text_ends_with(name, ".rows") || !hex_parse(slice_of(name.data, 16), &number) ||
            fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        const struct spool_file file = {.number = number,
                                        .bytes = (uint64_t)facts.st_size,
                                        .begun_ns = (uint64_t)facts.st_mtim.tv_sec * SECOND_NS,
                                        .is_finished = true};
        if (!ARRAY_PUSH(&spool->files, SPOOL_FILES_MAX, file)) break;
        spool->waiting_bytes += file.bytes;
        if (number >= spool->next_number) spool->next_number = number + 1;
    }
    (void)closedir(folder);
    if (spool->files.count > 0)
        qsort(spool->files.items, spool->files.count, sizeof(*spool->files.items), compare_files);
    return STATUS_OK;
}

enum status insert_spool_open(const char *folder, uint64_t bytes_max, struct insert_spool **ret_spool,
                              struct error *error)
{
    struct insert_spool *spool = calloc(1, sizeof(*spool));
    if (!spool) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    (void)snprintf(spool->folder, sizeof(spool->folder), "%s/inserts", folder);
    spool->bytes_max = bytes_max;
    spool->current = -1;
    spool->next_number = 1;
    spool->end = &spool->first;
    (void)pthread_mutex_init(&spool->order, NULL);
    (void)pthread_mutex_init(&spool->lock, NULL);
    (void)pthread_cond_init(&spool->changed, NULL);
    enum status status = STATUS_OK;
    file_make_folders(spool->folder);
    status = find_files(spool, error);
    spool->left = spool->next_number - 1;
    if (status == STATUS_OK) {
        spool->has_writer = pthread_create(&spool->writer, NULL, write_records, spool) == 0;
        if (!spool->has_writer) status = error_set(error, STATUS_NO_MEMORY, 0, "cannot start a thread");
    }
    if (status == STATUS_OK)
        *ret_spool = spool;
    else
        insert_spool_close(spool);
    return status;
}

void insert_spool_stop(struct insert_spool *spool)
{
    (void)pthread_mutex_lock(&spool->lock);
    spool->is_stopping = true;
    (void)pthread_cond_broadcast(&spool->changed);
    (void)pthread_mutex_unlock(&spool->lock);
    if (!spool->has_writer) return;
    (void)pthread_join(spool->writer, NULL);
    (void)pthread_mutex_lock(&spool->lock);
    spool->has_writer = false;
    (void)pthread_cond_broadcast(&spool->changed);
    (void)pthread_mutex_unlock(&spool->lock);
}

void insert_spool_close(struct insert_spool *spool)
{
    insert_spool_stop(spool);
    free(spool->files.items);
    (void)pthread_mutex_destroy(&spool->order);
    (void)pthread_mutex_destroy(&spool->lock);
    (void)pthread_cond_destroy(&spool->changed);
    free(spool);
}

/* --- Adding ------------------------------------------------------------------------------------------------------- */

void insert_spool_begin(struct insert_spool *spool, bool *ret_lost)
{
    (void)pthread_mutex_lock(&spool->order);
    (void)pthread_mutex_lock(&spool->lock);
    *ret_lost = spool->has_lost;
    spool->has_lost = false;
    (void)pthread_mutex_unlock(&spool->lock);
}

void insert_spool_abandon(struct insert_spool *spool)
{
    (void)pthread_mutex_unlock(&spool->order);
}

/* Returns whether a record of SIZE may be added. Under the lock. */
static enum status check_room(const struct insert_spool *spool, size_t size, struct error *error)
{
    if (spool->is_stopping) return error_set(error, STATUS_IO, 0, "the server is stopping");
    if (spool->has_lost) return error_set(error, STATUS_IO, 0, "the spool cannot be written; send again");
    if (spool->waiting_bytes + size > spool->bytes_max)
        return error_set(error, STATUS_TOO_LARGE, 0,
                         "the cluster takes nothing, and the spool in %s is full; send again later", spool->folder);
    if (spool->waiting_count >= SPOOL_WAITING_MAX || size > SPOOL_RECORD_BYTES_MAX)
        return error_set(error, STATUS_TOO_LARGE, 0, "too much waits for the disk");
    return STATUS_OK;
}

enum status insert_spool_add(struct insert_spool *spool, struct slice record, uint64_t *ret_file, struct error *error)
{
    struct waiting_record waiting = {.record = record};
    (void)pthread_mutex_lock(&spool->lock);
    enum status status = check_room(spool, record.size, error);
    if (status == STATUS_OK) {
        *spool->end = &waiting;
        spool->end = &waiting.next;
        spool->waiting_count++;
        (void)pthread_cond_broadcast(&spool->changed);
    } else {
        spool->has_lost = true;
    }
    (void)pthread_mutex_unlock(&spool->order);
    while (status == STATUS_OK && !waiting.is_done) (void)pthread_cond_wait(&spool->changed, &spool->lock);
    (void)pthread_mutex_unlock(&spool->lock);
    if (status != STATUS_OK) return status;
    if (waiting.status != STATUS_OK && error) *error = waiting.error;
    *ret_file = waiting.file;
    return waiting.status;
}

/* --- Taking ------------------------------------------------------------------------------------------------------- */

uint64_t insert_spool_next(struct insert_spool *spool, uint32_t shard)
{
    uint64_t number = 0;
    (void)pthread_mutex_lock(&spool->lock);
    while (!number) {
        for (size_t i = 0; i < spool->files.count && !number; i++) {
            const struct spool_file *file = &spool->files.items[i];
            if (file->is_finished && !file->taken_ns && !(file->taken_by & shard)) number = file->number;
        }
        if (spool->is_stopping && !spool->has_writer) break;
        if (!number) (void)pthread_cond_wait(&spool->changed, &spool->lock);
    }
    (void)pthread_mutex_unlock(&spool->lock);
    return number;
}

enum status insert_spool_each_record(struct insert_spool *spool, uint64_t file, struct buffer *content,
                                     insert_spool_visit *visit, void *context, struct error *error)
{
    char path[SPOOL_PATH_SIZE + 32];
    struct error problem;
    file_path(spool, file, path);
    buffer_clear(content);
    enum status status = file_read(path, content, &problem);
    if (status != STATUS_OK) return error_set(error, STATUS_IO, 0, "cannot read %.120s: %.90s", path, problem.message);
    struct cursor cursor = cursor_of(buffer_slice(content));
    while (status == STATUS_OK && !cursor_at_end(&cursor)) {
        uint32_t size = cursor_u32(&cursor), check = cursor_u32(&cursor);
        struct slice record = cursor_take(&cursor, size);
        if (cursor.failed || libdeflate_crc32(0, record.data, record.size) != check)
            status = error_set(error, STATUS_MALFORMED, 0, "%.160s has a record that was not written to its end", path);
        else if (!visit(context, record))
            break;
    }
    return status;
}

void insert_spool_mark(struct insert_spool *spool, uint64_t number, uint32_t shard, uint32_t all_shards,
                       uint64_t placement)
{
    (void)pthread_mutex_lock(&spool->lock);
    struct spool_file *file = find_file(spool, number);
    if (file && !file->taken_ns) {
        file->taken_by = shard | (file->placement == placement ? file->taken_by : 0);
        file->placement = placement;
        if ((file->taken_by & all_shards) == all_shards) {
            file->taken_ns = clock_monotonic_ns();
            spool->waiting_bytes -= file->bytes;
        }
        (void)pthread_cond_broadcast(&spool->changed);
    }
    (void)pthread_mutex_unlock(&spool->lock);
}

bool insert_spool_wait(struct insert_spool *spool, uint64_t number, uint64_t timeout_ns)
{
    uint64_t end_ns = clock_utc_ns() + timeout_ns;
    const struct timespec until = {(time_t)(end_ns / SECOND_NS), (long)(end_ns % SECOND_NS)};
    bool is_taken = false, waits = true;
    (void)pthread_mutex_lock(&spool->lock);
    while (waits && !is_taken) {
        const struct spool_file *file = find_file(spool, number);
        is_taken = !file || file->taken_ns;
        if (!is_taken && spool->is_hurried) break;
        if (!is_taken) waits = pthread_cond_timedwait(&spool->changed, &spool->lock, &until) == 0;
    }
    (void)pthread_mutex_unlock(&spool->lock);
    return is_taken;
}

void insert_spool_be_lazy(struct insert_spool *spool)
{
    (void)pthread_mutex_lock(&spool->lock);
    spool->is_lazy = true;
    (void)pthread_mutex_unlock(&spool->lock);
}

void insert_spool_hurry(struct insert_spool *spool)
{
    (void)pthread_mutex_lock(&spool->lock);
    spool->is_hurried = true;
    (void)pthread_cond_broadcast(&spool->changed);
    (void)pthread_mutex_unlock(&spool->lock);
}

uint64_t insert_spool_begun_ns(struct insert_spool *spool, uint64_t number)
{
    (void)pthread_mutex_lock(&spool->lock);
    const struct spool_file *file = find_file(spool, number);
    uint64_t begun_ns = file ? file->begun_ns : 0;
    (void)pthread_mutex_unlock(&spool->lock);
    return begun_ns;
}

uint64_t insert_spool_left(const struct insert_spool *spool)
{
    return spool->left;
}

uint64_t insert_spool_flush(struct insert_spool *spool)
{
    (void)pthread_mutex_lock(&spool->lock);
    struct spool_file *last = spool->files.count > 0 ? &spool->files.items[spool->files.count - 1] : NULL;
    uint64_t number = last ? last->number : 0;
    if (last && spool->current >= 0) last->ends_at_once = true;
    (void)pthread_cond_broadcast(&spool->changed);
    (void)pthread_mutex_unlock(&spool->lock);
    return number;
}

void insert_spool_expire(struct insert_spool *spool, uint64_t age_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    size_t kept = 0;
    (void)pthread_mutex_lock(&spool->lock);
    for (size_t i = 0; i < spool->files.count; i++) {
        const struct spool_file *file = &spool->files.items[i];
        bool is_over = file->taken_ns && now_ns - file->taken_ns >= age_ns;
        if (is_over) {
            char path[SPOOL_PATH_SIZE + 32];
            file_path(spool, file->number, path);
            (void)unlink(path);
        } else {
            spool->files.items[kept++] = *file;
        }
    }
    spool->files.count = kept;
    (void)pthread_mutex_unlock(&spool->lock);
}

void insert_spool_usage(struct insert_spool *spool, struct insert_spool_usage *ret_usage)
{
    *ret_usage = (struct insert_spool_usage){0};
    (void)pthread_mutex_lock(&spool->lock);
    ret_usage->bytes = spool->waiting_bytes;
    for (size_t i = 0; i < spool->files.count; i++) {
        const struct spool_file *file = &spool->files.items[i];
        if (file->taken_ns) continue;
        ret_usage->files++;
        if (!ret_usage->oldest_ns) ret_usage->oldest_ns = file->begun_ns;
    }
    (void)pthread_mutex_unlock(&spool->lock);
}
