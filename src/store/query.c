/* Reads a store: each walk opens the data files, the earliest day first, on its own connections, so that readers do
 * not wait for the writer.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void query_bind(sqlite3_stmt *statement, const struct store_query *query)
{
    const struct slice texts[] = {query->service,  query->environment, query->release, query->host,
                                  query->platform, query->profiler_id, query->chunk_id};
    sql_bind_u64(statement, 1, query->project);
    sql_bind_u64(statement, 2, query->from_ns);
    sql_bind_u64(statement, 3, query->to_ns ? query->to_ns : UINT64_MAX);
    for (int i = 0; i < 7; i++) {
        if (texts[i].size) sql_bind_slice(statement, 4 + i, texts[i]); /* an unbound parameter is NULL: any value */
    }
    if (query->kinds.size) sql_bind_slice(statement, 12, query->kinds);
    if (query->after.data) sql_bind_slice(statement, 11, query->after); /* the parameter of VALUES_OF */
}

/* Reports the damage of the file NAME, once: queries serve what is readable. */
static void report_damage(struct store *store, const struct store_query *query, const char *name,
                          const struct error *error)
{
    if (query->is_damaged) *query->is_damaged = true;
    (void)pthread_mutex_lock(&store->queue_lock);
    size_t known = 0;
    while (known < store->reported_count && strcmp(store->reported[known], name) != 0) known++;
    bool is_new = known == store->reported_count && known < REPORTED_MAX;
    if (is_new) (void)memcpy(store->reported[store->reported_count++], name, DAY_NAME_SIZE);
    (void)pthread_mutex_unlock(&store->queue_lock);
    if (is_new)
        store_print(store->report, store->report_context,
                    "answers lack data of %s: %s; offbeat store check says how much", name, error->message);
}

typedef bool visit_row(void *context, sqlite3_stmt *row, struct error *error, enum status *status);

/* Calls VISIT for each row of SQL in DAY. What VISIT returns as malformed is reported and passed over. */
static enum status walk_day(struct store *store, struct day *day, const struct store_query *query, const char *sql,
                            visit_row *visit, void *context, bool *continues, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;
    int code = sqlite3_prepare_v2(day->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) query_bind(statement, query);
    while (code == SQLITE_OK && *continues && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct error problem = {0};
        *continues = visit(context, statement, &problem, &status);
        code = SQLITE_OK;
        if (status == STATUS_MALFORMED) {
            report_damage(store, query, day->name, &problem);
            *continues = true;
            status = STATUS_OK;
        } else if (status != STATUS_OK && error) {
            *error = problem;
        }
    }
    if (status == STATUS_OK && code != SQLITE_OK && code != SQLITE_DONE) status = sql_failed(day->db, error, day->name);
    (void)sqlite3_finalize(statement);
    return status;
}

/* A damaged file is reported, and the others are read. */
enum status query_each_day(struct store *store, const struct store_query *query, query_read_day *read, void *context,
                           struct error *error)
{
    char(*names)[DAY_NAME_SIZE];
    size_t count;
    enum status status = list_days(store->folder, &names, &count, error);
    if (status != STATUS_OK) return status;
    bool continues = true;
    if (query->is_damaged && folder_has_damaged(store->folder)) *query->is_damaged = true;
    for (size_t i = 0; i < count && status == STATUS_OK && continues; i++) {
        struct day day;
        struct error problem = {0};
        status = day_open(&day, store->folder, names[i], false, &problem);
        if (status == STATUS_OK) {
            status = read(context, store, &day, &continues, &problem);
            day_close(&day);
        } else {
            char path[STORE_PATH_SIZE + DAY_NAME_SIZE + 1];
            (void)snprintf(path, sizeof(path), "%s/%s", store->folder, names[i]);
            bool is_gone = access(path, F_OK) != 0; /* a file that was removed after the listing is no damage */
            if (status == STATUS_NOT_FOUND || is_gone) status = STATUS_OK;
        }
        if (status == STATUS_MALFORMED) {
            report_damage(store, query, names[i], &problem);
            status = STATUS_OK;
        }
        if (status != STATUS_OK && error) *error = problem;
    }
    free(names);
    return status;
}

struct walk {
    const struct store_query *query;
    const char *sql;
    visit_row *visit;
    void *context;
};

static enum status read_day(void *context, struct store *store, struct day *day, bool *continues, struct error *error)
{
    const struct walk *walk = context;
    return walk_day(store, day, walk->query, walk->sql, walk->visit, walk->context, continues, error);
}

static enum status walk(struct store *store, const struct store_query *query, const char *sql, visit_row *visit,
                        void *context, struct error *error)
{
    struct walk all = {query, sql, visit, context};
    return query_each_day(store, query, read_day, &all, error);
}

/* --- Chunks ------------------------------------------------------------------------------------------------------- */

struct chunk_walk {
    store_visit_chunk *visit;
    void *context;
    bool with_payload;
    struct buffer payload;
};

struct store_chunk chunk_of_row(sqlite3_stmt *row)
{
    return (struct store_chunk){
        .project = sql_u64(row, 0),
        .kind = (enum store_kind)sqlite3_column_int(row, 1),
        .profiler_id = sql_text(row, 2),
        .chunk_id = sql_text(row, 3),
        .service = sql_text(row, 4),
        .environment = sql_text(row, 5),
        .release = sql_text(row, 6),
        .host = sql_text(row, 7),
        .platform = sql_text(row, 8),
        .kinds = sql_text(row, 9),
        .series = sql_text(row, 10),
        .start_ns = sql_u64(row, 11),
        .end_ns = sql_u64(row, 12),
        .received_ns = sql_u64(row, 13),
        .sample_count = sql_u64(row, 14),
        .payload = {.size = sql_u64(row, 15)},
    };
}

static bool visit_chunk(void *context, sqlite3_stmt *row, struct error *error, enum status *status)
{
    struct chunk_walk *walk = context;
    struct store_chunk chunk = chunk_of_row(row);
    if (walk->with_payload) {
        buffer_clear(&walk->payload);
        *status = payload_unpack(sql_text(row, 16), chunk.payload.size, &walk->payload, error);
        if (*status != STATUS_OK) return false;
        chunk.payload = buffer_slice(&walk->payload);
    }
    return walk->visit(walk->context, &chunk);
}

enum status days_each_chunk(struct store *store, const struct store_query *query, store_visit_chunk *visit,
                            void *context, struct error *error)
{
    struct chunk_walk chunk_walk = {.visit = visit, .context = context, .with_payload = query->with_payload};
    const char *sql = query->with_payload ? "SELECT " CHUNK_COLUMNS
                                            ",payload FROM chunk JOIN chunk_raw USING(id)" WHERE_CHUNK
                                            " ORDER BY start_ns"
                                          : "SELECT " CHUNK_COLUMNS " FROM chunk" WHERE_CHUNK " ORDER BY start_ns";
    buffer_init(&chunk_walk.payload, PAYLOAD_ROOM);
    enum status status = walk(store, query, sql, visit_chunk, &chunk_walk, error);
    buffer_fini(&chunk_walk.payload);
    return status;
}

enum status query_chunks_without_rollup(struct store *store, struct day *day, const struct store_query *query,
                                        const struct store_rollup_visitor *visitor, bool *continues,
                                        struct error *error)
{
    struct chunk_walk chunk_walk = {.visit = visitor->visit, .context = visitor->context, .with_payload = true};
    buffer_init(&chunk_walk.payload, PAYLOAD_ROOM);
    enum status status = walk_day(
        store, day, query,
        visitor->has_increases ? "SELECT " CHUNK_COLUMNS ",payload FROM chunk JOIN chunk_raw USING(id)" WHERE_CHUNK
                                 " AND is_summed=0 AND start_ns>=?2 ORDER BY start_ns"
                               : "SELECT " CHUNK_COLUMNS ",payload FROM chunk JOIN chunk_raw USING(id)" WHERE_CHUNK
                                 " AND (is_summed=0 OR start_ns<?2 OR end_ns>=?3) ORDER BY start_ns",
        visit_chunk, &chunk_walk, continues, error);
    buffer_fini(&chunk_walk.payload);
    return status;
}

/* --- Spans -------------------------------------------------------------------------------------------------------- */

/* The function of the caller for rows of one kind. */
struct row_visitor {
    store_visit_span *span;
    store_visit_rejected *rejected;
    store_visit_outcome *outcome;
    void *context;
};

static bool visit_span(void *context, sqlite3_stmt *row, struct error *error, enum status *status)
{
    const struct row_visitor *visitor = context;
    const struct store_span span = {
        .trace_id = sql_text(row, 0),
        .span_id = sql_text(row, 1),
        .name = sql_text(row, 2),
        .op = sql_text(row, 3),
        .service = sql_text(row, 4),
        .environment = sql_text(row, 5),
        .release = sql_text(row, 6),
        .profiler_id = sql_text(row, 7),
        .profile_id = sql_text(row, 8),
        .thread_id = sql_text(row, 9),
        .start_ns = sql_u64(row, 10),
        .end_ns = sql_u64(row, 11),
        .is_transaction = sqlite3_column_int(row, 12),
    };
    return visitor->span(visitor->context, &span);
}

enum status days_each_span(struct store *store, const struct store_query *query, store_visit_span *visit, void *context,
                           struct error *error)
{
    struct row_visitor visitor = {.span = visit, .context = context};
    return walk(store, query,
                "SELECT trace_id,span_id,name,op,service,environment,release,profiler_id,profile_id,thread_id,start_ns,"
                "end_ns,is_transaction FROM span" WHERE_TIME WHERE_NAMES
                " AND (?9 IS NULL OR profiler_id=?9) ORDER BY start_ns",
                visit_span, &visitor, error);
}

/* --- Rejected items and outcomes ---------------------------------------------------------------------------------- */

static bool visit_rejected(void *context, sqlite3_stmt *row, struct error *error, enum status *status)
{
    const struct row_visitor *visitor = context;
    const struct store_rejected rejected = {
        .received_ns = sql_u64(row, 0),
        .type = sql_text(row, 1),
        .reason = sql_text(row, 2),
        .place = sql_text(row, 3),
        .found = sql_text(row, 4),
        .expected = sql_text(row, 5),
        .sdk = sql_text(row, 6),
        .header = sql_text(row, 7),
        .payload = {.size = sql_u64(row, 8)},
    };
    return visitor->rejected(visitor->context, &rejected);
}

enum status days_each_rejected(struct store *store, const struct store_query *query, store_visit_rejected *visit,
                               void *context, struct error *error)
{
    struct row_visitor visitor = {.rejected = visit, .context = context};
    return walk(
        store, query,
        "SELECT received_ns,type,reason,place,found,expected,sdk,header,size FROM rejected WHERE project=?1 AND "
        "received_ns>=?2 AND received_ns<?3 ORDER BY received_ns",
        visit_rejected, &visitor, error);
}

static bool visit_outcome(void *context, sqlite3_stmt *row, struct error *error, enum status *status)
{
    const struct row_visitor *visitor = context;
    const struct store_outcome outcome = {sql_text(row, 0), sql_text(row, 1), sql_text(row, 2), sql_u64(row, 3)};
    return visitor->outcome(visitor->context, &outcome);
}

enum status days_each_outcome(struct store *store, const struct store_query *query, store_visit_outcome *visit,
                              void *context, struct error *error)
{
    struct row_visitor visitor = {.outcome = visit, .context = context};
    return walk(store, query, "SELECT outcome,category,reason,quantity FROM outcome WHERE project=?1", visit_outcome,
                &visitor, error);
}

/* --- Values of a column ------------------------------------------------------------------------------------------- */

static bool collect_value(void *context, sqlite3_stmt *row, struct error *error, enum status *status)
{
    const struct store_value value = {sql_text(row, 0), sql_u64(row, 1), sql_u64(row, 2), sql_u64(row, 3),
                                      sql_u64(row, 4)};
    if (value_list_add(context, &value)) return true;
    *status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    return false;
}

/* Steps from one service and from one kind to the next by the index, which is fast because a service has few. */
#define CHUNK_OF_KINDS                                                                                                 \
    "SELECT 1 FROM chunk INDEXED BY chunk_kinds" WHERE_CHUNK " AND service=found.service AND chunk.kinds=found.kinds"
static const char KINDS_BY_INDEX[] =
    "WITH RECURSIVE one(service) AS (SELECT ifnull(?4,(SELECT min(service) FROM chunk WHERE project=?1)) UNION ALL "
    "SELECT (SELECT min(service) FROM chunk WHERE project=?1 AND chunk.service>one.service) FROM one "
    "WHERE ?4 IS NULL AND one.service IS NOT NULL), "
    "found(service,kinds) AS (SELECT service,(SELECT min(kinds) FROM chunk WHERE project=?1 AND "
    "chunk.service=one.service) FROM one WHERE service IS NOT NULL UNION ALL SELECT service,(SELECT min(kinds) "
    "FROM chunk WHERE project=?1 AND chunk.service=found.service AND chunk.kinds>found.kinds) FROM found "
    "WHERE kinds IS NOT NULL) "
    "SELECT kinds,0,0,0,0 FROM found WHERE kinds IS NOT NULL AND (EXISTS(" CHUNK_OF_KINDS
    " AND start_ns>=?2) OR EXISTS(" CHUNK_OF_KINDS "))";

/* False if the index would have to look for a name that few services have in the chunks of each. */
static bool asks_kinds_by_index(const struct store_query *query)
{
    size_t others = query->environment.size + query->release.size + query->host.size + query->platform.size +
                    query->profiler_id.size + query->chunk_id.size;
    return query->service.size > 0 || others == 0;
}

#define LABELS                                                                                                         \
    "SELECT DISTINCT labels,0,0,0,0 FROM sum_group JOIN space ON space.id=space WHERE project=?1" WHERE_NAMES          \
    " AND (?7 IS NULL OR host=?7) AND (?8 IS NULL OR platform=?8)" WHERE_KINDS " LIMIT 10001"

enum status days_each_value(struct store *store, const struct store_query *query, enum store_column column,
                            store_visit_value *visit, void *context, struct error *error)
{
#define VALUES_OF(column)                                                                                              \
    "SELECT " column ",min(start_ns),max(end_ns),count(*),sum(samples) FROM chunk" WHERE_CHUNK                         \
    " AND (?11 IS NULL OR " column ">?11) GROUP BY " column " ORDER BY " column " LIMIT 10001"
    static const char *const statements[STORE_COLUMNS] = {
        [STORE_SERVICE] = VALUES_OF("service"),   [STORE_ENVIRONMENT] = VALUES_OF("environment"),
        [STORE_RELEASE] = VALUES_OF("release"),   [STORE_HOST] = VALUES_OF("host"),
        [STORE_PLATFORM] = VALUES_OF("platform"), [STORE_PROFILER] = VALUES_OF("profiler_id"),
        [STORE_KINDS] = VALUES_OF("kinds"),       [STORE_LABELS] = LABELS,
    };
    struct value_list list = {0};
    bool is_by_index = column == STORE_KINDS && asks_kinds_by_index(query);
    enum status status =
        walk(store, query, is_by_index ? KINDS_BY_INDEX : statements[column], collect_value, &list, error);
    if (status == STATUS_OK) value_list_visit(&list, visit, context);
    value_list_fini(&list);
    return status;
}
