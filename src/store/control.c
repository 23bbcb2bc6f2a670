/* The control file: projects and keys (keys.c), and the order in which days were written.  SPDX-License-Identifier:
 * MIT */
#include "store/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROL_VERSION = 5 };

/* A negative time is forever. The highest turn is that of the day that the writer changed to last. Numbers of removed
 * projects and keys are not used again. */
static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS project(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL,"
    " keep_ns INTEGER NOT NULL DEFAULT 0, disk_bytes INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE IF NOT EXISTS key(id INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, role INTEGER NOT "
    "NULL, name TEXT NOT NULL, secret TEXT NOT NULL UNIQUE, created_ns INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS day_written(turn INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "PRAGMA user_version=5;";

static enum status open_control(struct store *store, const char *path, enum checked_file_index index,
                                struct error *error)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int opened = checked_file_open(path, &store->control, flags, index);
    if (opened == SQLITE_OK) {
        (void)sqlite3_busy_timeout(store->control, BUSY_MS);
        opened = sqlite3_exec(store->control, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", NULL, NULL, NULL);
    }
    int version = opened == SQLITE_OK ? sql_version(store->control) : -1;
    if (version == 0) opened = sqlite3_exec(store->control, SCHEMA, NULL, NULL, NULL);
    if (version > 0 && version != CONTROL_VERSION) return sql_wrong_version(path, version, CONTROL_VERSION, error);
    return opened == SQLITE_OK && version >= 0 ? STATUS_OK : sql_failed(store->control, error, path);
}

enum status control_open(struct store *store, struct error *error)
{
    char path[STORE_PATH_SIZE + 16];
    (void)snprintf(path, sizeof(path), "%s/control.db", store->folder);
    enum status status = open_control(store, path, INDEX_IN_FILE, error);
    if (status != STATUS_IO || !checked_file_needs_memory(store->control)) return status;
    (void)sqlite3_close(store->control);
    return open_control(store, path, INDEX_IN_MEMORY, error);
}

sqlite3_stmt *control_begin(struct store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    (void)pthread_mutex_lock(&store->control_lock);
    (void)sqlite3_prepare_v2(store->control, sql, -1, &statement, NULL);
    return statement;
}

enum status control_end(struct store *store, sqlite3_stmt *statement, int code, const char *what, struct error *error)
{
    bool is_fine = code == SQLITE_DONE || code == SQLITE_ROW;
    enum status status = is_fine ? STATUS_OK : sql_failed(store->control, error, what);
    (void)sqlite3_finalize(statement);
    (void)pthread_mutex_unlock(&store->control_lock);
    return status;
}

/* --- Days --------------------------------------------------------------------------------------------------------- */

static enum status run_with_name(struct store *store, const char *sql, const char *name, struct error *error)
{
    sqlite3_stmt *statement = control_begin(store, sql);
    sql_bind_slice(statement, 1, slice_of_text(name));
    return control_end(store, statement, sqlite3_step(statement), "cannot note a day", error);
}

enum status control_know_day(struct store *store, const char *name, struct error *error)
{
    return run_with_name(store, "INSERT OR IGNORE INTO day_written(name) VALUES(?)", name, error);
}

enum status control_write_day(struct store *store, const char *name, struct error *error)
{
    return run_with_name(store, "INSERT OR REPLACE INTO day_written(name) VALUES(?)", name, error);
}

void control_forget_day(struct store *store, const char *name)
{
    (void)run_with_name(store, "DELETE FROM day_written WHERE name=?", name, NULL);
}

enum status control_list_days(struct store *store, char (**ret_names)[DAY_NAME_SIZE], size_t *ret_count,
                              struct error *error)
{
    char(*names)[DAY_NAME_SIZE] = malloc(STORE_DAYS_MAX * sizeof(*names));
    if (!names) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    sqlite3_stmt *row = control_begin(store, "SELECT name FROM day_written ORDER BY turn DESC");
    int code = SQLITE_DONE;
    size_t count = 0;
    while (count < STORE_DAYS_MAX && (code = sqlite3_step(row)) == SQLITE_ROW)
        sql_copy_text(row, 0, names[count++], sizeof(*names));
    enum status status = control_end(store, row, code, "cannot read the days", error);
    if (status == STATUS_OK) {
        *ret_names = names;
        *ret_count = count;
    } else {
        free(names);
    }
    return status;
}
