/* Projects that keep their data for another time than the server does, or in less room.
 *
 * A file of a day has all projects. It is removed when the last of them needs it no more; before that, the rows of
 * projects whose time is over are deleted, and the file is made smaller.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <stdlib.h>
#include <string.h>

enum { LIMITED_PROJECTS_MAX = 4096 };

uint64_t limits_longest_age(const struct project_limits *limits, uint64_t age_ns)
{
    bool is_forever = age_ns == 0;
    for (size_t i = 0; i < limits->count; i++) {
        is_forever |= limits->items[i].age_ns == STORE_FOREVER;
        if (limits->items[i].age_ns > age_ns) age_ns = limits->items[i].age_ns;
    }
    return is_forever ? 0 : age_ns;
}

enum status limits_read(struct store *store, struct project_limits *ret_limits, struct error *error)
{
    *ret_limits = (struct project_limits){.items = calloc(LIMITED_PROJECTS_MAX, sizeof(*ret_limits->items))};
    if (!ret_limits->items) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    sqlite3_stmt *row = control_begin(store, "SELECT id,keep_ns,disk_bytes FROM project ORDER BY id LIMIT ?");
    int code;
    (void)sqlite3_bind_int(row, 1, LIMITED_PROJECTS_MAX);
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        int64_t age_ns = sqlite3_column_int64(row, 1);
        ret_limits->items[ret_limits->count++] =
            (struct project_limit){.project = sql_u64(row, 0),
                                   .age_ns = age_ns < 0 ? STORE_FOREVER : (uint64_t)age_ns,
                                   .bytes_max = sql_u64(row, 2)};
    }
    return control_end(store, row, code, "cannot read the projects", error);
}

enum status store_limit_project(struct store *store, uint64_t project, uint64_t age_ns, uint64_t bytes_max,
                                struct error *error)
{
    sqlite3_stmt *set = control_begin(store, "UPDATE project SET keep_ns=?,disk_bytes=? WHERE id=?");
    (void)sqlite3_bind_int64(set, 1, age_ns == STORE_FOREVER ? -1 : (int64_t)age_ns);
    sql_bind_u64(set, 2, bytes_max);
    sql_bind_u64(set, 3, project);
    int code = sqlite3_step(set);
    bool is_found = sqlite3_changes(store->control) > 0;
    enum status status = control_end(store, set, code, "cannot limit the project", error);
    return status == STATUS_OK && !is_found ? error_set(error, STATUS_NOT_FOUND, 0, "there is no such project")
                                            : status;
}

uint64_t store_age_of_project(struct store *store, uint64_t project, uint64_t age_ns)
{
    sqlite3_stmt *row = control_begin(store, "SELECT keep_ns FROM project WHERE id=?");
    sql_bind_u64(row, 1, project);
    int code = sqlite3_step(row);
    int64_t own_ns = code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    (void)control_end(store, row, code, "cannot read the project", NULL);
    if (own_ns < 0) return 0;
    return own_ns > 0 ? (uint64_t)own_ns : age_ns;
}

/* The number in the first row of SQL for PROJECT; 0 if there is none. */
static uint64_t number_of(struct day *day, const char *sql, uint64_t project)
{
    sqlite3_stmt *row = NULL;
    uint64_t number = 0;
    if (sqlite3_prepare_v2(day->db, sql, -1, &row, NULL) == SQLITE_OK) {
        sql_bind_u64(row, 1, project);
        if (sqlite3_step(row) == SQLITE_ROW) number = sql_u64(row, 0);
    }
    (void)sqlite3_finalize(row);
    return number;
}

static uint64_t bytes_of_project(struct store *store, const char *name, uint64_t project)
{
    struct day day;
    struct error ignored;
    if (day_open(&day, store->folder, name, false, &ignored) != STATUS_OK) return 0;
    uint64_t bytes = number_of(
        &day, "SELECT sum(length(payload)) FROM chunk CROSS JOIN chunk_raw USING(id) WHERE project=?", project);
    day_close(&day);
    return bytes;
}

/* Queries report the damage of a file that cannot be read. */
static enum status remove_project(struct store *store, const char *name, uint64_t project, uint64_t *removed,
                                  struct error *error)
{
    const struct store_query query = {.project = project};
    uint64_t chunks = 0;
    enum status status = delete_in_day(store, name, &query, &chunks, error);
    *removed += status == STATUS_OK && chunks > 0;
    return status == STATUS_MALFORMED ? STATUS_OK : status;
}

enum status limits_apply(struct store *store, const struct project_limits *limits, uint64_t now_ns, uint64_t age_ns,
                         uint64_t *removed, struct error *error)
{
    char(*names)[DAY_NAME_SIZE], oldest[DAY_NAME_SIZE];
    size_t count;
    enum status status = list_days(store->folder, &names, &count, error);
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < limits->count && status == STATUS_OK; i++) {
        const struct project_limit *limit = &limits->items[i];
        uint64_t keep_ns = limit->age_ns ? limit->age_ns : age_ns, bytes = 0;
        bool has_age = keep_ns && keep_ns != STORE_FOREVER;
        day_name(now_ns > keep_ns ? now_ns - keep_ns : 0, oldest);
        for (size_t k = count; k-- > 0 && status == STATUS_OK;) { /* the latest first */
            if (limit->bytes_max) bytes += bytes_of_project(store, names[k], limit->project);
            bool is_over = limit->bytes_max && bytes > limit->bytes_max && k + 1 < count;
            if (is_over || (has_age && day_is_before(names[k], oldest)))
                status = remove_project(store, names[k], limit->project, removed, error);
        }
    }
    free(names);
    return status;
}
