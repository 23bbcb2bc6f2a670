/* The room and the samples of each service, added up over the data files.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

/* A database in memory adds up: there may be many services in many files. */
static const char SCHEMA[] = "CREATE TABLE usage(project INTEGER, service TEXT, chunks INTEGER, samples INTEGER, bytes "
                             "INTEGER, first_ns INTEGER, last_ns INTEGER, PRIMARY KEY(project,service))";
static const char READ[] = "SELECT project,service,count(*),sum(samples),sum(length(payload)),min(start_ns),"
                           "max(end_ns) FROM chunk JOIN chunk_raw USING(id) WHERE project=?1 OR ?1=0 GROUP BY 1,2";
static const char ADD[] =
    "INSERT INTO usage VALUES(?1,?2,?3,?4,?5,?6,?7) ON CONFLICT DO UPDATE SET chunks=chunks+?3,samples=samples+?4,"
    "bytes=bytes+?5,first_ns=min(first_ns,?6),last_ns=max(last_ns,?7)";

enum { COLUMNS = 7 };

struct usage_sum {
    sqlite3 *db;
    sqlite3_stmt *add;
    uint64_t project;
};

static enum status add_day(void *context, struct store *store, struct day *day, bool *continues, struct error *error)
{
    struct usage_sum *sum = context;
    sqlite3_stmt *row = NULL;
    (void)store;
    (void)continues;
    int code = sqlite3_prepare_v2(day->db, READ, -1, &row, NULL);
    if (code == SQLITE_OK) sql_bind_u64(row, 1, sum->project);
    while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        for (int i = 0; i < COLUMNS; i++) (void)sqlite3_bind_value(sum->add, i + 1, sqlite3_column_value(row, i));
        code = sqlite3_step(sum->add);
        (void)sqlite3_reset(sum->add);
        code = code == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
    }
    enum status status = code == SQLITE_DONE ? STATUS_OK : sql_failed(day->db, error, day->name);
    (void)sqlite3_finalize(row);
    return status;
}

static enum status visit_sums(const struct usage_sum *sum, store_visit_usage *visit, void *context, struct error *error)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(sum->db, "SELECT * FROM usage ORDER BY project,service LIMIT ?", -1, &row, NULL);
    if (code == SQLITE_OK) (void)sqlite3_bind_int(row, 1, STORE_VALUES_MAX);
    while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_service_usage usage = {.project = sql_u64(row, 0),
                                            .chunk_count = sql_u64(row, 2),
                                            .sample_count = sql_u64(row, 3),
                                            .bytes = sql_u64(row, 4),
                                            .first_ns = sql_u64(row, 5),
                                            .last_ns = sql_u64(row, 6)};
        sql_copy_text(row, 1, usage.service, sizeof(usage.service));
        code = visit(context, &usage) ? SQLITE_OK : SQLITE_DONE;
    }
    enum status status = code == SQLITE_DONE ? STATUS_OK : sql_failed(sum->db, error, "cannot add up the usage");
    (void)sqlite3_finalize(row);
    return status;
}

enum status days_each_usage(struct store *store, uint64_t project, store_visit_usage *visit, void *context,
                            struct error *error)
{
    struct usage_sum sum = {.project = project};
    const struct store_query all = {.project = project};
    bool is_open = sqlite3_open(":memory:", &sum.db) == SQLITE_OK &&
                   sqlite3_exec(sum.db, SCHEMA, NULL, NULL, NULL) == SQLITE_OK &&
                   sqlite3_prepare_v2(sum.db, ADD, -1, &sum.add, NULL) == SQLITE_OK;
    enum status status = is_open ? query_each_day(store, &all, add_day, &sum, error)
                                 : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    if (status == STATUS_OK) status = visit_sums(&sum, visit, context, error);
    (void)sqlite3_finalize(sum.add);
    (void)sqlite3_close(sum.db);
    return status;
}
