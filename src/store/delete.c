/* Deletes what a query selects: a service, a range of time, a project, or some of them.
 *
 * The rollups that have a deleted chunk are dropped and noted as stale, as if a chunk had been added, so that those
 * that are there are right. A file gives its room back to the disk.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <stdlib.h>
#include <string.h>

#define VICTIMS "(SELECT id FROM victim)"
#define ROLLUPS                                                                                                        \
    "(SELECT DISTINCT sum_group,width.level AS level,start_ns-start_ns%ns AS start FROM sum CROSS JOIN "               \
    "(SELECT 1 AS level,600000000000 AS ns UNION SELECT 2,3600000000000 UNION SELECT 3,86400000000000) AS width "      \
    "WHERE sum.level=0 AND sum.chunk IN " VICTIMS ")"

/* The parameters are those of query_bind. */
static const char *const DELETIONS[] = {
    ("CREATE TEMP TABLE victim AS SELECT id FROM chunk" WHERE_CHUNK),
    ("INSERT OR IGNORE INTO stale(level,start_ns,sum_group) SELECT level,start,sum_group FROM " ROLLUPS),
    "DELETE FROM sum WHERE level>0 AND (level,start_ns,sum_group) IN (SELECT level,start_ns,sum_group FROM stale)",
    ("DELETE FROM sum WHERE level=0 AND chunk IN " VICTIMS),
    ("DELETE FROM chunk_raw WHERE id IN " VICTIMS),
    ("DELETE FROM chunk WHERE id IN " VICTIMS),
    "DROP TABLE victim",
    "DELETE FROM sum_group WHERE id NOT IN (SELECT sum_group FROM sum)",
    "DELETE FROM stale WHERE sum_group NOT IN (SELECT id FROM sum_group)",
    "DELETE FROM segment WHERE space NOT IN (SELECT space FROM sum_group)",
    "DELETE FROM space WHERE id NOT IN (SELECT space FROM sum_group)",
};

static enum status run_deletion(struct day *day, const char *sql, const struct store_query *query, uint64_t *count,
                                struct error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(day->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) query_bind(statement, query);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_DONE && count) *count += (uint64_t)sqlite3_changes64(day->db);
    enum status status = code == SQLITE_DONE ? STATUS_OK : sql_failed(day->db, error, day->name);
    (void)sqlite3_finalize(statement);
    return status;
}

/* Returns whether QUERY selects all that its project has, also what is no chunk. */
static bool is_whole_project(const struct store_query *query)
{
    return query->service.size + query->environment.size + query->release.size + query->host.size == 0 &&
           query->from_ns == 0 && query->to_ns == 0;
}

static enum status delete_rows(struct day *day, const struct store_query *query, uint64_t *chunks, struct error *error)
{
    enum status status = STATUS_OK;
    if (sqlite3_exec(day->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return sql_failed(day->db, error, day->name);
    for (size_t i = 0; i < sizeof(DELETIONS) / sizeof(DELETIONS[0]) && status == STATUS_OK; i++) {
        bool counts = DELETIONS[i] == DELETIONS[5];
        status = run_deletion(day, DELETIONS[i], query, counts ? chunks : NULL, error);
    }
    if (status == STATUS_OK && query->host.size == 0)
        status = run_deletion(day, "DELETE FROM span" WHERE_TIME WHERE_NAMES, query, NULL, error);
    if (status == STATUS_OK && is_whole_project(query)) {
        status = run_deletion(day, "DELETE FROM rejected WHERE project=?1", query, NULL, error);
        if (status == STATUS_OK) status = run_deletion(day, "DELETE FROM outcome WHERE project=?1", query, NULL, error);
    }
    if (status == STATUS_OK && sqlite3_exec(day->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = sql_failed(day->db, error, day->name);
    if (status != STATUS_OK) (void)sqlite3_exec(day->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* Returns whether SQL finds a row; true also if it fails, so that the deletion says why. */
static bool has_row(struct day *day, const char *sql, const struct store_query *query)
{
    sqlite3_stmt *row = NULL;
    bool is_found = sqlite3_prepare_v2(day->db, sql, -1, &row, NULL) != SQLITE_OK;
    if (!is_found) query_bind(row, query);
    if (!is_found) is_found = sqlite3_step(row) != SQLITE_DONE;
    (void)sqlite3_finalize(row);
    return is_found;
}

/* Returns whether there is something to delete: else the file need not be written again. */
static bool has_rows(struct day *day, const struct store_query *query)
{
    return has_row(day, "SELECT 1 FROM chunk" WHERE_CHUNK, query) ||
           (query->host.size == 0 && has_row(day, "SELECT 1 FROM span" WHERE_TIME WHERE_NAMES, query)) ||
           (is_whole_project(query) && (has_row(day, "SELECT 1 FROM outcome WHERE project=?1", query) ||
                                        has_row(day, "SELECT 1 FROM rejected WHERE project=?1", query)));
}

/* The room is given back to the disk while others write, but not into this file: they would give up after BUSY_MS. */
enum status delete_in_day(struct store *store, const char *name, const struct store_query *query, uint64_t *chunks,
                          struct error *error)
{
    struct day day;
    struct error problem = {0};
    enum status status = day_open(&day, store->folder, name, true, &problem);
    if (status == STATUS_OK && has_rows(&day, query)) {
        (void)pthread_mutex_lock(&store->writer_lock);
        status = delete_rows(&day, query, chunks, &problem);
        known_dictionaries_clear(&store->dictionaries);
        bool is_written = strcmp(store->today.name, name) == 0;
        if (!is_written) (void)pthread_mutex_unlock(&store->writer_lock);
        if (status == STATUS_OK &&
            sqlite3_exec(day.db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL) != SQLITE_OK)
            status = sql_failed(day.db, &problem, name);
        if (is_written) (void)pthread_mutex_unlock(&store->writer_lock);
    }
    day_close(&day);
    if (status != STATUS_OK && error) *error = problem;
    return status;
}

enum status days_delete(struct store *store, const struct store_query *query, uint64_t *ret_chunks, struct error *error)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count;
    enum status status = list_days(store->folder, &names, &count, error);
    *ret_chunks = 0;
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = delete_in_day(store, names[i], query, ret_chunks, error);
    free(names);
    return status;
}
