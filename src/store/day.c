/* One data file: what was received on one day. The table "space" has the stack dictionaries, "segment" their bytes.
 * SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <stdio.h>

static const char SCHEMA[] =
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, project INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " profiler_id TEXT NOT NULL, chunk_id TEXT NOT NULL, service TEXT NOT NULL, environment TEXT NOT NULL,"
    " release TEXT NOT NULL, host TEXT NOT NULL, platform TEXT NOT NULL, kinds TEXT NOT NULL,"
    " series TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL, samples "
    "INTEGER NOT NULL, size INTEGER NOT NULL,"
    " is_summed INTEGER NOT NULL DEFAULT 0);"
    "CREATE UNIQUE INDEX chunk_once ON chunk(project, chunk_id, profiler_id);"
    "CREATE INDEX chunk_session ON chunk(project, profiler_id, start_ns);"
    "CREATE TABLE chunk_raw(id INTEGER PRIMARY KEY, payload BLOB NOT NULL);"
    "CREATE TABLE span(id INTEGER PRIMARY KEY, project INTEGER NOT NULL, trace_id TEXT NOT NULL,"
    " span_id TEXT NOT NULL, name TEXT NOT NULL, op TEXT NOT NULL, service TEXT NOT NULL, environment TEXT NOT NULL,"
    " release TEXT NOT NULL, profiler_id TEXT NOT NULL, profile_id TEXT NOT NULL, thread_id TEXT NOT NULL,"
    " start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, is_transaction INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX span_once ON span(project, trace_id, span_id, start_ns);"
    "CREATE INDEX span_time ON span(project, start_ns);"
    "CREATE TABLE rejected(id INTEGER PRIMARY KEY, project INTEGER NOT NULL, received_ns INTEGER NOT NULL,"
    " type TEXT NOT NULL, reason TEXT NOT NULL, place TEXT NOT NULL, found TEXT NOT NULL, expected TEXT NOT NULL,"
    " sdk TEXT NOT NULL, header TEXT NOT NULL, size INTEGER NOT NULL, payload BLOB);"
    "CREATE INDEX rejected_time ON rejected(project, received_ns);"
    "CREATE TABLE outcome(project INTEGER NOT NULL, outcome TEXT NOT NULL, category TEXT NOT NULL,"
    " reason TEXT NOT NULL, quantity INTEGER NOT NULL, PRIMARY KEY(project, outcome, category, reason))"
    " WITHOUT ROWID;"
    "CREATE INDEX chunk_range ON chunk(project, start_ns, end_ns, is_summed);"
    "CREATE INDEX chunk_kinds ON chunk(project, service, kinds, start_ns, end_ns);"
    "CREATE TABLE space(id INTEGER PRIMARY KEY, project INTEGER NOT NULL, service TEXT NOT NULL,"
    " UNIQUE(project, service));"
    "CREATE TABLE segment(space INTEGER NOT NULL, number INTEGER NOT NULL, size INTEGER NOT NULL, bytes BLOB NOT "
    "NULL,"
    " PRIMARY KEY(space, number)) WITHOUT ROWID;"
    "CREATE TABLE sum_group(id INTEGER PRIMARY KEY, space INTEGER NOT NULL, environment TEXT NOT NULL,"
    " release TEXT NOT NULL, host TEXT NOT NULL, platform TEXT NOT NULL, kinds TEXT NOT NULL, header BLOB NOT NULL,"
    " labels BLOB NOT NULL, UNIQUE(space, environment, release, host, platform, kinds, header, labels));"
    "CREATE TABLE sum(sum_group INTEGER NOT NULL, level INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
    " chunk INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, entries BLOB NOT NULL,"
    " PRIMARY KEY(sum_group, level, start_ns, chunk)) WITHOUT ROWID;"
    "CREATE TABLE stale(level INTEGER NOT NULL, start_ns INTEGER NOT NULL, sum_group INTEGER NOT NULL,"
    " PRIMARY KEY(level, start_ns, sum_group)) WITHOUT ROWID;"
    "PRAGMA user_version=5;";

enum {
    ADD_CHUNK,
    ADD_RAW,
    ADD_SPAN,
    ADD_REJECTED,
    ADD_OUTCOME,
    FIND_CHUNK
}; /* FIND_DICTIONARY … follow: store_private.h has those of rollup.c */

static const char *const STATEMENTS[DAY_STATEMENTS] = {
    [ADD_CHUNK] = "INSERT OR IGNORE INTO chunk(project,kind,profiler_id,chunk_id,service,environment,release,host,"
                  "platform,kinds,series,start_ns,end_ns,received_ns,samples,size) "
                  "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [ADD_RAW] = "INSERT INTO chunk_raw(id,payload) VALUES(?,?)",
    [ADD_SPAN] = "INSERT OR IGNORE INTO span(project,trace_id,span_id,name,op,service,environment,release,profiler_id,"
                 "profile_id,thread_id,start_ns,end_ns,is_transaction) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [ADD_REJECTED] = "INSERT INTO rejected(project,received_ns,type,reason,place,found,expected,sdk,header,size,"
                     "payload) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
    [ADD_OUTCOME] = "INSERT INTO outcome(project,outcome,category,reason,quantity) VALUES(?,?,?,?,?) ON CONFLICT"
                    "(project,outcome,category,reason) DO UPDATE SET quantity=min(quantity+excluded.quantity,1<<60)",
    [FIND_CHUNK] = "SELECT 1 FROM chunk WHERE project=? AND chunk_id=? AND profiler_id=?",
    [FIND_DICTIONARY] = "SELECT id FROM space WHERE project=? AND service=?",
    [ADD_DICTIONARY] = "INSERT INTO space(project,service) VALUES(?,?)",
    [ADD_SEGMENT] = "INSERT INTO segment VALUES(?,?,?,?)",
    [FIND_GROUP] = "SELECT id FROM sum_group WHERE space=? AND environment=? AND release=? AND host=? AND platform=? "
                   "AND kinds=? AND header=? AND labels=?",
    [ADD_GROUP] = "INSERT INTO sum_group(space,environment,release,host,platform,kinds,header,labels) "
                  "VALUES(?,?,?,?,?,?,?,?)",
    [ADD_ROLLUP] = "INSERT OR REPLACE INTO sum VALUES(?,?,?,?,?,?,?)",
    [DROP_ROLLUPS] = "DELETE FROM sum WHERE sum_group=? AND level=? AND start_ns=?",
    [MARK_ROLLED_UP] = "UPDATE chunk SET is_summed=1 WHERE id=?",
    [ADD_STALE] = "INSERT OR IGNORE INTO stale(sum_group,level,start_ns) VALUES(?,?,?)",
};

/* The pages are 16 KiB because payloads of 20 to 40 KiB waste least in them (doc/decisions/sqlite.md). */
static enum status prepare_file(struct day *day, bool is_written, struct error *error)
{
    sqlite3 *db = day->db;
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    if (is_written) {
        (void)sqlite3_exec(db, "PRAGMA page_size=16384", NULL, NULL, NULL);
        if (sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-4096", NULL, NULL,
                         NULL) != SQLITE_OK)
            return sql_failed(db, error, day->name);
    }
    int version = sql_version(db);
    if (version < 0) return sql_failed(db, error, day->name);
    if (version == SCHEMA_VERSION) return STATUS_OK;
    if (version != 0) return sql_wrong_version(day->name, version, SCHEMA_VERSION, error);
    if (!is_written) return error_set(error, STATUS_NOT_FOUND, 0, "%s: is empty", day->name);
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, SCHEMA, NULL, NULL, NULL) != SQLITE_OK || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL))
        return sql_failed(db, error, day->name);
    return STATUS_OK;
}

/* The writer and the thread of the roll-ups can open a new day at the same time. SQLite answers both "locked" while a
 * file changes to WAL, without waiting, and each would create the tables. */
static pthread_mutex_t creation = PTHREAD_MUTEX_INITIALIZER;

static enum status open_file(struct day *day, const char *path, bool is_written, enum checked_file_index index,
                             struct error *error)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | (is_written ? SQLITE_OPEN_CREATE : 0);
    if (checked_file_open(path, &day->db, flags, index) != SQLITE_OK) return sql_failed(day->db, error, day->name);
    return prepare_file(day, is_written, error);
}

enum status day_open(struct day *day, const char *folder, const char *name, bool is_written, struct error *error)
{
    char path[STORE_PATH_SIZE + DAY_NAME_SIZE + 1];
    *day = (struct day){0};
    (void)snprintf(day->name, sizeof(day->name), "%s", name);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (is_written) (void)pthread_mutex_lock(&creation);
    enum status status = open_file(day, path, is_written, INDEX_IN_FILE, error);
    if (status == STATUS_IO && checked_file_needs_memory(day->db)) {
        (void)sqlite3_close(day->db);
        status = open_file(day, path, is_written, INDEX_IN_MEMORY, error);
    }
    if (is_written) (void)pthread_mutex_unlock(&creation);
    for (int i = 0; i < DAY_STATEMENTS && status == STATUS_OK && is_written; i++) {
        if (sqlite3_prepare_v3(day->db, STATEMENTS[i], -1, SQLITE_PREPARE_PERSISTENT, &day->statements[i], NULL) !=
            SQLITE_OK)
            status = sql_failed(day->db, error, name);
    }
    if (status != STATUS_OK) day_close(day);
    return status;
}

void day_close(struct day *day)
{
    for (int i = 0; i < DAY_STATEMENTS; i++) (void)sqlite3_finalize(day->statements[i]);
    if (day->db) (void)sqlite3_close(day->db);
    *day = (struct day){0};
}

bool day_is_whole(struct day *day, char *ret_problem, size_t size)
{
    sqlite3_stmt *statement = NULL;
    bool is_whole = false;
    (void)snprintf(ret_problem, size, "%s", "cannot be read");
    if (sqlite3_prepare_v2(day->db, "PRAGMA quick_check(1)", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        struct slice text = sql_text(statement, 0);
        is_whole = slice_equals_text(text, "ok");
        (void)snprintf(ret_problem, size, "%.*s", SLICE_ARGUMENTS(text));
    }
    (void)sqlite3_finalize(statement);
    return is_whole;
}

/* --- Adding ------------------------------------------------------------------------------------------------------- */

enum status day_run(struct day *day, sqlite3_stmt *statement, struct error *error)
{
    int code = sqlite3_step(statement);
    enum status status = code == SQLITE_DONE ? STATUS_OK : sql_failed(day->db, error, "cannot store");
    (void)sqlite3_reset(statement);
    return status;
}

enum status day_find_chunk(struct day *day, const struct store_chunk *chunk, bool *ret_is_found, struct error *error)
{
    sqlite3_stmt *statement = day->statements[FIND_CHUNK];
    *ret_is_found = false;
    if (!statement) return STATUS_OK;
    sql_bind_u64(statement, 1, chunk->project);
    sql_bind_slice(statement, 2, chunk->chunk_id);
    sql_bind_slice(statement, 3, chunk->profiler_id);
    int code = sqlite3_step(statement);
    *ret_is_found = code == SQLITE_ROW;
    enum status status = code == SQLITE_ROW || code == SQLITE_DONE ? STATUS_OK : sql_failed(day->db, error, day->name);
    (void)sqlite3_reset(statement);
    return status == STATUS_MALFORMED ? STATUS_OK : status;
}

enum status day_add_chunk(struct day *day, const struct store_chunk *chunk, struct slice packed, bool *ret_is_new,
                          int64_t *ret_row, struct error *error)
{
    sqlite3_stmt *add = day->statements[ADD_CHUNK], *raw = day->statements[ADD_RAW];
    sql_bind_u64(add, 1, chunk->project);
    (void)sqlite3_bind_int(add, 2, (int)chunk->kind);
    const struct slice texts[] = {chunk->profiler_id, chunk->chunk_id, chunk->service,
                                  chunk->environment, chunk->release,  chunk->host,
                                  chunk->platform,    chunk->kinds,    chunk->series};
    for (int i = 0; i < 9; i++) sql_bind_slice(add, 3 + i, texts[i]);
    const uint64_t numbers[] = {chunk->start_ns, chunk->end_ns, chunk->received_ns, chunk->sample_count,
                                chunk->payload.size};
    for (int i = 0; i < 5; i++) sql_bind_u64(add, 12 + i, numbers[i]);
    *ret_is_new = false;
    enum status status = day_run(day, add, error);
    if (status != STATUS_OK || sqlite3_changes(day->db) == 0) return status;
    *ret_is_new = true;
    *ret_row = sqlite3_last_insert_rowid(day->db);
    (void)sqlite3_bind_int64(raw, 1, *ret_row);
    (void)sqlite3_bind_blob64(raw, 2, packed.data, packed.size, SQLITE_STATIC);
    return day_run(day, raw, error);
}

enum status day_add_span(struct day *day, uint64_t project, const struct store_span *span, struct error *error)
{
    sqlite3_stmt *add = day->statements[ADD_SPAN];
    const struct slice texts[] = {span->trace_id,   span->span_id,     span->name,    span->op,
                                  span->service,    span->environment, span->release, span->profiler_id,
                                  span->profile_id, span->thread_id};
    sql_bind_u64(add, 1, project);
    for (int i = 0; i < 10; i++) sql_bind_slice(add, 2 + i, texts[i]);
    sql_bind_u64(add, 12, span->start_ns);
    sql_bind_u64(add, 13, span->end_ns);
    (void)sqlite3_bind_int(add, 14, span->is_transaction);
    return day_run(day, add, error);
}

enum status day_add_rejected(struct day *day, uint64_t project, const struct store_rejected *rejected,
                             struct slice packed, struct error *error)
{
    sqlite3_stmt *add = day->statements[ADD_REJECTED];
    const struct slice texts[] = {rejected->type,     rejected->reason, rejected->place, rejected->found,
                                  rejected->expected, rejected->sdk,    rejected->header};
    sql_bind_u64(add, 1, project);
    sql_bind_u64(add, 2, rejected->received_ns);
    for (int i = 0; i < 7; i++) sql_bind_slice(add, 3 + i, texts[i]);
    sql_bind_u64(add, 10, rejected->payload.size);
    (void)sqlite3_bind_blob64(add, 11, packed.data, packed.size, SQLITE_STATIC);
    return day_run(day, add, error);
}

enum status day_add_outcome(struct day *day, uint64_t project, const struct store_outcome *outcome, struct error *error)
{
    sqlite3_stmt *add = day->statements[ADD_OUTCOME];
    sql_bind_u64(add, 1, project);
    sql_bind_slice(add, 2, outcome->outcome);
    sql_bind_slice(add, 3, outcome->category);
    sql_bind_slice(add, 4, outcome->reason);
    sql_bind_u64(add, 5, outcome->quantity > (uint64_t)1 << 40 ? (uint64_t)1 << 40 : outcome->quantity);
    return day_run(day, add, error);
}
