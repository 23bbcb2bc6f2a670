/* Finds damage in a store that no server has open, and copies what is readable to a new file.
 * SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct check {
    const char *folder;
    store_report *report;
    void *context;
    uint64_t chunks, damaged_chunks;
};

/* Decompresses each payload. What SQLite cannot read ends the walk: STATUS_MALFORMED. */
static enum status check_chunks(struct check *check, struct day *day, struct error *error)
{
    static const char sql[] = "SELECT size,payload FROM chunk LEFT JOIN chunk_raw USING(id)";
    sqlite3_stmt *row = NULL;
    struct buffer payload;
    struct error ignored;
    buffer_init(&payload, PAYLOAD_ROOM);
    int code = sqlite3_prepare_v2(day->db, sql, -1, &row, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        buffer_clear(&payload);
        check->chunks++;
        if (payload_unpack(sql_text(row, 1), sql_u64(row, 0), &payload, &ignored) != STATUS_OK) check->damaged_chunks++;
        code = SQLITE_OK;
    }
    enum status status = code == SQLITE_DONE ? STATUS_OK : sql_failed(day->db, error, day->name);
    (void)sqlite3_finalize(row);
    buffer_fini(&payload);
    return status;
}

/* Adds the chunks of SQL that are whole to COPY. Damage ends the walk; only COPY's errors are failures. */
static enum status copy_chunks(struct day *day, const char *sql, struct day *copy, uint64_t *copied,
                               struct error *error)
{
    sqlite3_stmt *row = NULL;
    struct buffer payload;
    struct error ignored;
    enum status status = STATUS_OK;
    buffer_init(&payload, PAYLOAD_ROOM);
    if (sqlite3_prepare_v2(day->db, sql, -1, &row, NULL) != SQLITE_OK) return STATUS_OK;
    while (status == STATUS_OK && sqlite3_step(row) == SQLITE_ROW) {
        bool is_new = false;
        int64_t copied_row;
        struct slice packed = sql_text(row, 16);
        buffer_clear(&payload);
        if (payload_unpack(packed, sql_u64(row, 15), &payload, &ignored) != STATUS_OK) continue;
        struct store_chunk chunk = chunk_of_row(row);
        status = day_add_chunk(copy, &chunk, packed, &is_new, &copied_row, error);
        *copied += is_new;
    }
    (void)sqlite3_finalize(row);
    buffer_fini(&payload);
    return status;
}

/* Adds the rows of SELECT to COPY by INSERT, which has a parameter for each column. As above. */
static enum status copy_rows(struct day *day, const char *select, struct day *copy, const char *insert,
                             struct error *error)
{
    sqlite3_stmt *row = NULL, *add = NULL;
    enum status status = STATUS_OK;
    if (sqlite3_prepare_v2(copy->db, insert, -1, &add, NULL) != SQLITE_OK)
        return sql_failed(copy->db, error, copy->name);
    int code = sqlite3_prepare_v2(day->db, select, -1, &row, NULL);
    while (code == SQLITE_OK && status == STATUS_OK && sqlite3_step(row) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(row); i++)
            (void)sqlite3_bind_value(add, i + 1, sqlite3_column_value(row, i));
        if (sqlite3_step(add) != SQLITE_DONE) status = sql_failed(copy->db, error, copy->name);
        (void)sqlite3_reset(add);
    }
    (void)sqlite3_finalize(row);
    (void)sqlite3_finalize(add);
    return status;
}

/* Everything that can be read of DAY. Tables with a row id are read from both ends: what is damaged in between ends
 * each walk. */
static enum status copy_day(struct day *day, struct day *copy, uint64_t *copied, struct error *error)
{
#define CHUNKS "SELECT " CHUNK_COLUMNS ",payload FROM chunk JOIN chunk_raw USING(id) ORDER BY id"
    static const char span[] = "INSERT OR IGNORE INTO span VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
    static const char rejected[] = "INSERT OR IGNORE INTO rejected VALUES(?,?,?,?,?,?,?,?,?,?,?,?)";
    static const struct {
        const char *select, *insert; /* no INSERT: chunks */
    } walks[] = {
        {CHUNKS, NULL},
        {CHUNKS " DESC", NULL},
        {"SELECT * FROM span ORDER BY id", span},
        {"SELECT * FROM span ORDER BY id DESC", span},
        {"SELECT * FROM rejected ORDER BY id", rejected},
        {"SELECT * FROM rejected ORDER BY id DESC", rejected},
        {"SELECT * FROM outcome", "INSERT OR IGNORE INTO outcome VALUES(?,?,?,?,?)"},
    };
#undef CHUNKS
    if (sqlite3_exec(copy->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return sql_failed(copy->db, error, copy->name);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof(walks) / sizeof(walks[0]) && status == STATUS_OK; i++)
        status = walks[i].insert ? copy_rows(day, walks[i].select, copy, walks[i].insert, error)
                                 : copy_chunks(day, walks[i].select, copy, copied, error);
    if (status == STATUS_OK &&
        sqlite3_exec(copy->db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL) != SQLITE_OK)
        status = sql_failed(copy->db, error, copy->name);
    return status;
}

/* A copy that an interrupted repair left is not continued: the damaged file is still complete. */
static void remove_copy(const char *folder, const char *name)
{
    char path[STORE_PATH_SIZE + 64];
    for (size_t i = 0; i < DAY_FILES; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s%s", folder, name, day_file_endings[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

/* Copies what can be read of NAME to a new file of that name, and moves the old one aside; if that fails, the old one
 * stays where it is. */
static enum status repair(struct check *check, struct day *day, const char *name, struct error *error)
{
    struct day copy;
    char folder[STORE_PATH_SIZE + 16], from[STORE_PATH_SIZE + 64], to[STORE_PATH_SIZE + 32];
    uint64_t copied = 0;
    (void)snprintf(folder, sizeof(folder), "%s/repair", check->folder);
    (void)snprintf(from, sizeof(from), "%s/%s", folder, name);
    (void)snprintf(to, sizeof(to), "%s/%s", check->folder, name);
    remove_copy(folder, name);
    if (mkdir(folder, 0700) != 0) return error_set_errno(error, "%s", folder);
    enum status status = day_open(&copy, folder, name, true, error);
    if (status == STATUS_OK) {
        if (day->db) status = copy_day(day, &copy, &copied, error);
        day_close(&copy);
    }
    day_close(day);
    if (status == STATUS_OK && !move_aside(check->folder, name, check->report, check->context))
        status = error_set(error, STATUS_IO, 0, "%s: cannot be moved", name);
    if (status == STATUS_OK && rename(from, to) != 0) return error_set_errno(error, "%s", from);
    remove_copy(folder, name);
    if (status == STATUS_OK)
        store_print(check->report, check->context, "%s: %llu chunks were copied to a new file", name,
                    (unsigned long long)copied);
    return status;
}

/* RET_IS_FINE says whether the file is. A failure is one of repairing. */
static enum status check_day(struct check *check, const char *name, bool repairs, bool *ret_is_fine,
                             struct error *error)
{
    struct day day;
    struct error problem = {0};
    char text[200] = "";
    check->chunks = check->damaged_chunks = 0;
    *ret_is_fine = true;
    enum status status = day_open(&day, check->folder, name, false, &problem);
    if (status == STATUS_NOT_FOUND) return STATUS_OK;
    bool is_of_other_version = status == STATUS_UNSUPPORTED;
    bool is_whole = status == STATUS_OK && day_is_whole(&day, text, sizeof(text));
    if (status == STATUS_OK) status = check_chunks(check, &day, &problem);
    *ret_is_fine = is_whole && status == STATUS_OK && check->damaged_chunks == 0;
    if (is_of_other_version)
        store_print(check->report, check->context, "%s", problem.message);
    else if (*ret_is_fine)
        store_print(check->report, check->context, "%s: %llu chunks, no damage", name,
                    (unsigned long long)check->chunks);
    else
        store_print(check->report, check->context, "%s is damaged: %s; %llu chunks, %llu of them damaged", name,
                    status != STATUS_OK ? problem.message : text, (unsigned long long)check->chunks,
                    (unsigned long long)check->damaged_chunks);
    status = STATUS_OK;
    if (!*ret_is_fine && repairs && !is_of_other_version) status = repair(check, &day, name, error);
    day_close(&day);
    return status;
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
        for (size_t i = 0; i < count && status == STATUS_OK; i++) {
            bool is_fine;
            status = check_day(&check, names[i], repairs, &is_fine, error);
            damaged += !is_fine;
        }
        free(names);
        *ret_damaged = damaged;
    }
    (void)close(lock);
    return status;
}
