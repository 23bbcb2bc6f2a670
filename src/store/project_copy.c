/* Copies projects and keys from one store to another. Projects keep their numbers, which are in DSNs and in the data.
 * SPDX-License-Identifier: MIT */
#include "store/store_private.h"

/* Steps STATEMENT of TARGET, which the columns of ROW are the parameters of. RET_HAS_ROW may be NULL. */
static enum status run_with_row(struct store *target, const char *sql, sqlite3_stmt *row, bool *ret_has_row,
                                struct error *error)
{
    sqlite3_stmt *statement = control_begin(target, sql);
    for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++)
        (void)sqlite3_bind_value(statement, i + 1, sqlite3_column_value(row, i));
    int code = sqlite3_step(statement);
    if (ret_has_row) *ret_has_row = code == SQLITE_ROW;
    return control_end(target, statement, code, "cannot copy the projects", error);
}

/* Fails if TARGET has another project with the number of that in ROW. It is the same one if they share a key. */
static enum status check_project(struct store *target, sqlite3_stmt *row, struct error *error)
{
    static const char is_another[] =
        "SELECT 1 FROM project WHERE id=?1 AND NOT EXISTS(SELECT 1 FROM key WHERE project=?1 AND secret IN (SELECT "
        "value FROM json_each(?5))) AND (name<>?2 OR EXISTS(SELECT 1 FROM key WHERE project=?1) AND ?5<>'[]')";
    bool is_conflict = false;
    enum status status = run_with_row(target, is_another, row, &is_conflict, error);
    if (status == STATUS_OK && is_conflict)
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "the target has another project with the number %llu; nothing was copied",
                         (unsigned long long)sql_u64(row, 0));
    return status;
}

static enum status add_project(struct store *target, sqlite3_stmt *row, struct error *error)
{
    return run_with_row(target, "INSERT OR IGNORE INTO project(id,name,keep_ns,disk_bytes) VALUES(?,?,?,?)", row, NULL,
                        error);
}

static enum status add_key(struct store *target, sqlite3_stmt *row, struct error *error)
{
    return run_with_row(
        target, "INSERT OR IGNORE INTO key(id,project,role,name,secret,created_ns) VALUES(" NEW_ID ",?,?,?,?,?)", row,
        NULL, error);
}

static enum status each_row(struct store *source, const char *sql, struct store *target,
                            enum status (*add)(struct store *, sqlite3_stmt *, struct error *), struct error *error)
{
    sqlite3_stmt *row = control_begin(source, sql);
    enum status status = STATUS_OK;
    int code = SQLITE_ERROR;
    while (status == STATUS_OK && (code = sqlite3_step(row)) == SQLITE_ROW) status = add(target, row, error);
    struct error ignored;
    enum status ended =
        control_end(source, row, code, "cannot read the projects", status == STATUS_OK ? error : &ignored);
    return status == STATUS_OK ? ended : status;
}

enum status store_copy_projects(struct store *source, struct store *target, struct error *error)
{
    static const char projects[] = "SELECT id,name,keep_ns,disk_bytes,(SELECT json_group_array(secret) FROM key WHERE "
                                   "key.project=project.id) FROM project";
    static const char keys[] = "SELECT project,role,name,secret,created_ns FROM key";
    enum status status = each_row(source, projects, target, check_project, error);
    if (status == STATUS_OK) status = each_row(source, projects, target, add_project, error);
    return status == STATUS_OK ? each_row(source, keys, target, add_key, error) : status;
}
