/* The control file: projects, keys, tokens, and the order in which days were written.  SPDX-License-Identifier: MIT */
#include "base/uuid.h"
#include "store/debug_files.h"
#include "store/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROL_VERSION = 4 };

/* A negative time is forever. The highest turn is that of the day that the writer changed to last. */
static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS project(id INTEGER PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL UNIQUE,"
    " keep_ns INTEGER NOT NULL DEFAULT 0, disk_bytes INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE IF NOT EXISTS token(id INTEGER PRIMARY KEY, project INTEGER NOT NULL, token TEXT NOT NULL UNIQUE,"
    " role INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE IF NOT EXISTS day_written(turn INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "PRAGMA user_version=4;";

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

enum status store_add_project(struct store *store, const char *name, struct store_project *ret_project,
                              struct error *error)
{
    struct store_project project = {0};
    if (!uuid_new(project.key)) return error_set(error, STATUS_IO, 0, "the system has no random bytes");
    (void)snprintf(project.name, sizeof(project.name), "%s", name);
    sqlite3_stmt *add = control_begin(store, "INSERT INTO project(name,key) VALUES(?,?)");
    sql_bind_slice(add, 1, slice_of_text(project.name));
    sql_bind_slice(add, 2, slice_of_text(project.key));
    int code = sqlite3_step(add);
    project.id = (uint64_t)sqlite3_last_insert_rowid(store->control);
    enum status status = control_end(store, add, code, "cannot add a project", error);
    if (status == STATUS_OK) *ret_project = project;
    return status;
}

enum status store_each_project(struct store *store, store_visit_project *visit, void *context, struct error *error)
{
    sqlite3_stmt *row = control_begin(store, "SELECT id,name,key FROM project ORDER BY id");
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_project project = {.id = sql_u64(row, 0)};
        sql_copy_text(row, 1, project.name, sizeof(project.name));
        sql_copy_text(row, 2, project.key, sizeof(project.key));
        if (!visit(context, &project)) break;
    }
    return control_end(store, row, code, "cannot read the projects", error);
}

enum status store_add_token(struct store *store, uint64_t project, enum store_role role, char ret_token[STORE_KEY_SIZE],
                            struct error *error)
{
    char token[UUID_TEXT_SIZE];
    if (!uuid_new(token)) return error_set(error, STATUS_IO, 0, "the system has no random bytes");
    sqlite3_stmt *add = control_begin(store, "INSERT INTO token(project,token,role) VALUES(?,?,?)");
    sql_bind_u64(add, 1, project);
    sql_bind_slice(add, 2, slice_of_text(token));
    sql_bind_u64(add, 3, role);
    enum status status = control_end(store, add, sqlite3_step(add), "cannot add a token", error);
    if (status == STATUS_OK) (void)memcpy(ret_token, token, STORE_KEY_SIZE);
    return status;
}

enum status store_first_token(struct store *store, enum store_role role, char ret_token[STORE_KEY_SIZE],
                              struct error *error)
{
    sqlite3_stmt *find = control_begin(store, "SELECT token FROM token WHERE project=0 AND role=? ORDER BY id LIMIT 1");
    sql_bind_u64(find, 1, role);
    int code = sqlite3_step(find);
    if (code == SQLITE_ROW) sql_copy_text(find, 0, ret_token, STORE_KEY_SIZE);
    enum status status = control_end(store, find, code, "cannot read the tokens", error);
    return code == SQLITE_DONE ? error_set(error, STATUS_NOT_FOUND, 0, "there is no token for all projects") : status;
}

/* Sets RET_NUMBER to the number in the row of SQL for TEXT; false if there is none. */
static bool find_number(struct store *store, const char *sql, struct slice text, uint64_t *ret_number)
{
    sqlite3_stmt *find = control_begin(store, sql);
    sql_bind_slice(find, 1, text);
    int code = sqlite3_step(find);
    if (code == SQLITE_ROW) *ret_number = sql_u64(find, 0);
    (void)control_end(store, find, code, "", NULL);
    return code == SQLITE_ROW;
}

uint64_t store_project_of_key(struct store *store, struct slice key)
{
    uint64_t project = 0;
    return find_number(store, "SELECT id FROM project WHERE key=?", key, &project) ? project : 0;
}

enum store_access store_may_write(struct store *store, struct slice key, uint64_t project)
{
    uint64_t of_key = store_project_of_key(store, key);
    if (of_key == 0) return STORE_NO_ACCESS;
    return of_key == project ? STORE_ACCESS : STORE_OTHER_PROJECT;
}

bool store_may_upload(struct store *store, struct slice token, uint64_t *ret_project)
{
    return find_number(store, "SELECT project FROM token WHERE token=? AND role=2", token, ret_project);
}

enum store_access store_may_read(struct store *store, struct slice token, enum store_role role, uint64_t project)
{
    uint64_t of_token;
    /* A token that reads everything reads the metrics, too. */
    const char *find = role == STORE_ROLE_METRICS ? "SELECT project FROM token WHERE token=? AND role<2"
                                                  : "SELECT project FROM token WHERE token=? AND role=0";
    if (!find_number(store, find, token, &of_token)) return STORE_NO_ACCESS;
    return of_token == 0 || of_token == project ? STORE_ACCESS : STORE_OTHER_PROJECT;
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
