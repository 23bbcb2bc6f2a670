/* Triggers note each change in the table "changed", in the transaction of the change.  SPDX-License-Identifier: MIT */
#include "store/control_rows.h"

#include "store/store_private.h"

#include <stdio.h>

#define NOW "CAST((julianday('now')-2440587.5)*86400000000 AS INTEGER)"
#define NOTE(sort, id)                                                                                                 \
    " BEGIN INSERT INTO changed VALUES('" sort "'," id "," NOW                                                         \
    ",0) ON CONFLICT(sort,id) DO UPDATE SET version=max(version+1,excluded.version),is_sent=0; END;"
#define TRIGGERS(sort)                                                                                                 \
    "CREATE TRIGGER IF NOT EXISTS " sort "_added AFTER INSERT ON " sort NOTE(                                          \
        sort, "NEW.id") "CREATE TRIGGER IF NOT EXISTS " sort "_changed AFTER UPDATE ON " sort                          \
    NOTE(sort, "NEW.id") "CREATE TRIGGER IF NOT EXISTS " sort "_removed AFTER DELETE ON " sort                         \
    NOTE(sort, "OLD.id") "INSERT OR IGNORE INTO changed SELECT '" sort "',id," NOW ",0 FROM " sort ";"

static const char PREPARE[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS changed(sort TEXT NOT NULL, id INTEGER NOT NULL, version INTEGER NOT NULL, is_sent "
    "INTEGER NOT NULL, PRIMARY KEY(sort,id)) WITHOUT ROWID;" TRIGGERS("project") TRIGGERS("key") "COMMIT;";

#define BODIES                                                                                                         \
    "CASE sort WHEN 'project' THEN (SELECT json_array(name,keep_ns,disk_bytes) FROM project WHERE "                    \
    "project.id=changed.id) ELSE (SELECT json_array(project,role,name,secret,created_ns) FROM key WHERE "              \
    "key.id=changed.id) END"

enum status control_rows_begin(struct store *store, struct error *error)
{
    (void)pthread_mutex_lock(&store->control_lock);
    int code = sqlite3_exec(store->control, PREPARE, NULL, NULL, NULL);
    enum status status = code == SQLITE_OK ? STATUS_OK : sql_failed(store->control, error, "control.db");
    if (code != SQLITE_OK) (void)sqlite3_exec(store->control, "ROLLBACK", NULL, NULL, NULL);
    (void)pthread_mutex_unlock(&store->control_lock);
    return status;
}

enum status control_rows_each_change(struct store *store, size_t maximum, control_visit_row *visit, void *context,
                                     struct error *error)
{
    sqlite3_stmt *row =
        control_begin(store, "SELECT sort,id,version," BODIES " FROM changed WHERE is_sent=0 ORDER BY version LIMIT ?");
    int code;
    sql_bind_u64(row, 1, maximum);
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        const struct control_row change = {
            .sort = sql_text(row, 0), .id = sql_u64(row, 1), .version = sql_u64(row, 2), .body = sql_text(row, 3)};
        if (!visit(context, &change)) break;
    }
    return control_end(store, row, code, "cannot read control.db", error);
}

enum status control_rows_mark_sent(struct store *store, const struct control_row *row, struct error *error)
{
    sqlite3_stmt *mark = control_begin(store, "UPDATE changed SET is_sent=1 WHERE sort=? AND id=? AND version=?");
    sql_bind_slice(mark, 1, row->sort);
    sql_bind_u64(mark, 2, row->id);
    sql_bind_u64(mark, 3, row->version);
    return control_end(store, mark, sqlite3_step(mark), "cannot write control.db", error);
}

/* --- Rows of other servers ---------------------------------------------------------------------------------------- */

/* Runs SQL with the sort, number, version and body of ROW as its parameters. Under the lock. */
static bool run(struct store *store, const char *sql, const struct control_row *row, bool *ret_has_row)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->control, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        const struct slice texts[] = {row->sort, row->body};
        for (int i = 0; i < 2; i++) {
            if (sqlite3_bind_parameter_count(statement) > 3 * i) sql_bind_slice(statement, 1 + 3 * i, texts[i]);
        }
        if (sqlite3_bind_parameter_count(statement) > 1) sql_bind_u64(statement, 2, row->id);
        if (sqlite3_bind_parameter_count(statement) > 2) sql_bind_u64(statement, 3, row->version);
        code = sqlite3_step(statement);
    }
    if (ret_has_row) *ret_has_row = code == SQLITE_ROW;
    (void)sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static const char *change_of(const struct control_row *row)
{
    bool is_project = slice_equals_text(row->sort, "project");
    if (row->body.size == 0)
        return is_project ? "DELETE FROM project WHERE ?1='project' AND id=?2"
                          : "DELETE FROM key WHERE ?1='key' AND id=?2";
    return is_project
               ? "INSERT OR REPLACE INTO project(id,name,keep_ns,disk_bytes) SELECT ?2,json_extract(?4,'$[0]'),"
                 "json_extract(?4,'$[1]'),json_extract(?4,'$[2]') WHERE ?1='project' AND ?3>0"
               : "INSERT OR REPLACE INTO key(id,project,role,name,secret,created_ns) SELECT ?2,json_extract(?4,'$[0]'),"
                 "json_extract(?4,'$[1]'),json_extract(?4,'$[2]'),json_extract(?4,'$[3]'),json_extract(?4,'$[4]') "
                 "WHERE "
                 "?1='key' AND ?3>0";
}

enum status control_rows_apply(struct store *store, const struct control_row *row, struct error *error)
{
    bool is_known = true;
    enum status status = STATUS_OK;
    if (!slice_equals_text(row->sort, "project") && !slice_equals_text(row->sort, "key")) return STATUS_OK;
    (void)pthread_mutex_lock(&store->control_lock);
    bool is_fine = run(store, "SELECT 1 FROM changed WHERE sort=?1 AND id=?2 AND version>=?3", row, &is_known);
    if (is_fine && !is_known) {
        is_fine = run(store, "BEGIN IMMEDIATE", row, NULL) && run(store, change_of(row), row, NULL) &&
                  run(store, "INSERT OR REPLACE INTO changed VALUES(?1,?2,?3,1)", row, NULL) &&
                  run(store, "COMMIT", row, NULL);
    }
    if (!is_fine) status = sql_failed(store->control, error, "control.db");
    if (!is_fine) (void)sqlite3_exec(store->control, "ROLLBACK", NULL, NULL, NULL);
    (void)pthread_mutex_unlock(&store->control_lock);
    return status;
}
