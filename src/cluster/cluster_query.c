/* Reads the rows of a cluster. Any row may be there twice, because an insert may be repeated: a reader passes over ids
 * that it has seen, and counts in SQL are by id.  SPDX-License-Identifier: MIT */
#include "cluster/cluster_private.h"
#include "store/payload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SQL_BYTES_MAX = 200 << 10 }; /* the server takes 256 KiB */

/* --- Shards ------------------------------------------------------------------------------------------------------- */

/* A question is right, whatever is wrong with the cluster: its askers may ask again. */
static enum status blame_cluster(enum status status, struct error *error)
{
    bool is_of_cluster = status == STATUS_NOT_FOUND || status == STATUS_UNSUPPORTED || status == STATUS_MALFORMED;
    if (is_of_cluster && error) error->status = STATUS_IO;
    return is_of_cluster ? STATUS_IO : status;
}

/* Bits of the shards that may have rows of QUERY. STATUS_IO if none is known. */
static enum status choose_shards(struct cluster *cluster, const struct store_query *query, uint32_t *ret_shards,
                                 struct error *error)
{
    struct topology *topology = &cluster->topology;
    *ret_shards = query->service.size > 0 ? topology_shards_of(topology, placement_of(query->project, query->service))
                                          : topology_all_shards(topology);
    if (*ret_shards) return STATUS_OK;
    enum status status = topology_update(topology, error);
    return status == STATUS_OK ? error_set(error, STATUS_IO, 0, "the shards are not known yet; try again")
                               : blame_cluster(status, error);
}

enum status cluster_each_shard(struct cluster *cluster, const struct store_query *query, shard_read *read,
                               void *context, struct error *error)
{
    uint32_t shards;
    bool has_answer = false;
    enum status status = choose_shards(cluster, query, &shards, error);
    if (status != STATUS_OK) return status;
    for (int shard = 0; shard < SHARDS_MAX; shard++) {
        struct error problem = {0};
        if (!(shards >> shard & 1)) continue;
        enum status of_shard = read(context, cluster, shard, &problem);
        bool is_missing = of_shard == STATUS_IO || topology_is_behind(&cluster->topology, shard);
        if (is_missing && query->missing_shards) *query->missing_shards |= 1u << shard;
        has_answer |= of_shard == STATUS_OK;
        if (of_shard != STATUS_OK && (status == STATUS_OK || status == STATUS_IO)) {
            status = of_shard;
            if (error) *error = problem;
        }
    }
    if (status == STATUS_IO && has_answer && query->missing_shards) return STATUS_OK;
    return blame_cluster(status, error);
}

/* --- Conditions --------------------------------------------------------------------------------------------------- */

static void write_equal(struct buffer *sql, const char *column, struct slice value)
{
    if (value.size == 0) return;
    buffer_append_format(sql, " AND %s = ", column);
    sql_append_literal(sql, value);
}

/* KINDS: each ends with a newline. */
static void write_kinds(struct buffer *sql, struct slice kinds)
{
    const char *before = " AND kinds IN (";
    if (kinds.size == 0) return;
    while (kinds.size > 0) {
        buffer_append_text(sql, before);
        sql_append_literal(sql, text_take_until(&kinds, '\n'));
        before = ", ";
    }
    buffer_append_text(sql, ")");
}

static void write_range(const struct store_query *query, const char *end, struct buffer *sql)
{
    buffer_append_format(sql, " WHERE project = %" PRIu64 " AND %s >= %" PRIu64, query->project, end, query->from_ns);
    if (query->to_ns) buffer_append_format(sql, " AND start_ns < %" PRIu64, query->to_ns);
}

static void write_service(const struct store_query *query, struct buffer *sql)
{
    write_equal(sql, "service", query->service);
    write_equal(sql, "environment", query->environment);
    write_equal(sql, "release", query->release);
}

void query_write_names(const struct store_query *query, struct buffer *sql)
{
    write_service(query, sql);
    write_equal(sql, "host", query->host);
    write_equal(sql, "platform", query->platform);
    write_kinds(sql, query->kinds);
}

void query_write_conditions(const struct store_query *query, const char *end, struct buffer *sql)
{
    write_range(query, end, sql);
    query_write_names(query, sql);
    write_equal(sql, "profiler_id", query->profiler_id);
    write_equal(sql, "chunk_id", query->chunk_id);
}

/* --- A statement, and rows that a visitor gets once --------------------------------------------------------------- */

struct reading {
    struct buffer sql;
    const char *types;
    row_visit *visit; /* gets the reading itself, the first member of what the function below has */
    bool has_ids;     /* the first column is the id of the row */
    struct id_set seen;
    bool continues;
    struct error problem; /* failure of the visitor; STATUS_OK without one */
};

static bool visit_once(void *context, const struct row *row)
{
    struct reading *reading = context;
    if (reading->has_ids && !id_set_add(&reading->seen, row->cells[0])) return !reading->seen.failed;
    reading->continues = reading->visit(reading, row);
    return reading->continues;
}

static enum status read_shard(void *context, struct cluster *cluster, int shard, struct error *error)
{
    struct reading *reading = context;
    if (!reading->continues) return STATUS_OK;
    struct slice sql = buffer_slice(&reading->sql);
    enum status status =
        reading->has_ids
            ? topology_each_row(&cluster->topology, shard, sql, reading->types, visit_once, reading, error)
            : topology_each_sum(&cluster->topology, shard, sql, reading->types, visit_once, reading, error);
    if (reading->seen.failed)
        return error_set(error, STATUS_TOO_LARGE, 0, "too many rows match; narrow the time range");
    if (reading->problem.status != STATUS_OK && error) *error = reading->problem;
    return reading->problem.status != STATUS_OK ? reading->problem.status : status;
}

/* Visits the rows of READING->sql on each shard that may have rows of QUERY. */
static enum status read_rows(struct reading *reading, struct cluster *cluster, const struct store_query *query,
                             struct error *error)
{
    enum status status;
    reading->continues = true;
    if (reading->sql.failed)
        status = error_set(error, STATUS_TOO_LARGE, 0, "the question is too long; choose less");
    else
        status = cluster_each_shard(cluster, query, read_shard, reading, error);
    buffer_fini(&reading->sql);
    id_set_fini(&reading->seen);
    return status;
}

/* --- Chunks ------------------------------------------------------------------------------------------------------- */

#define READ_COLUMNS                                                                                                   \
    "SELECT id,project,kind,profiler_id,chunk_id,service,environment,release,host,platform,kinds,series,start_ns,"     \
    "end_ns,received_ns,samples,size"
#define READ_TYPES "iqbsssssssssqqqqq"

struct chunk_reading {
    struct reading rows;
    store_visit_chunk *visit;
    void *context;
    bool *is_damaged;
    bool with_payload;
    struct buffer payload;
};

static bool visit_chunk(void *context, const struct row *row)
{
    struct chunk_reading *reading = context;
    const struct slice *cells = row->cells;
    struct store_chunk chunk = {
        .project = row_number(row, 1),
        .kind = (enum store_kind)row_number(row, 2),
        .profiler_id = cells[3],
        .chunk_id = cells[4],
        .service = cells[5],
        .environment = cells[6],
        .release = cells[7],
        .host = cells[8],
        .platform = cells[9],
        .kinds = cells[10],
        .series = cells[11],
        .start_ns = row_number(row, 12),
        .end_ns = row_number(row, 13),
        .received_ns = row_number(row, 14),
        .sample_count = row_number(row, 15),
        .payload = {.size = row_number(row, 16)},
    };
    if (reading->with_payload) {
        struct error *problem = &reading->rows.problem;
        buffer_clear(&reading->payload);
        enum status status = payload_unpack(cells[17], chunk.payload.size, &reading->payload, problem);
        if (status == STATUS_MALFORMED) {
            if (reading->is_damaged) *reading->is_damaged = true;
            problem->status = STATUS_OK;
            return true;
        }
        if (status != STATUS_OK) return false;
        chunk.payload = buffer_slice(&reading->payload);
    }
    return reading->visit(reading->context, &chunk);
}

/* READING has what its caller wants. */
static enum status read_chunks(struct chunk_reading *reading, struct cluster *cluster, const struct store_query *query,
                               struct error *error)
{
    struct buffer *sql = &reading->rows.sql;
    bool with_payload = reading->with_payload;
    reading->rows.types = with_payload ? READ_TYPES "s" : READ_TYPES;
    reading->rows.visit = visit_chunk;
    reading->rows.has_ids = true;
    reading->is_damaged = query->is_damaged;
    buffer_init(&reading->payload, PAYLOAD_ROOM);
    buffer_init(sql, SQL_BYTES_MAX);
    buffer_append_text(sql, with_payload ? READ_COLUMNS ",payload FROM raw" : READ_COLUMNS " FROM chunk");
    query_write_conditions(query, "end_ns", sql);
    buffer_append_text(sql, " ORDER BY start_ns FORMAT RowBinary");
    enum status status = read_rows(&reading->rows, cluster, query, error);
    buffer_fini(&reading->payload);
    return status;
}

enum status cluster_each_chunk(struct store *store, const struct store_query *query, store_visit_chunk *visit,
                               void *context, struct error *error)
{
    struct chunk_reading reading = {.visit = visit, .context = context, .with_payload = query->with_payload};
    return read_chunks(&reading, store_engine_data(store), query, error);
}

struct unsummed_reading {
    struct chunk_reading chunks;
    const struct store_query *query;
    struct cover *covers;
};

/* A chunk without a sum is where no roll-up was chosen; one that is not wholly in the range is next to an end of it. */
static enum status read_unsummed(void *context, struct cluster *cluster, int shard, struct error *error)
{
    struct unsummed_reading *reading = context;
    const struct store_query *query = reading->query;
    struct buffer *sql = &reading->chunks.rows.sql;
    buffer_clear(sql);
    buffer_append_text(sql, READ_COLUMNS ",payload FROM raw");
    query_write_conditions(query, "end_ns", sql);
    cover_write_chunks(&reading->covers[shard], query, "summed = 0", sql);
    buffer_append_text(sql, " ORDER BY start_ns FORMAT RowBinary");
    if (sql->failed) return error_set(error, STATUS_TOO_LARGE, 0, "the question is too long; choose less");
    return read_shard(&reading->chunks.rows, cluster, shard, error);
}

enum status cluster_each_unsummed(struct cluster *cluster, const struct store_query *query, struct cover *covers,
                                  struct id_set *seen, store_visit_chunk *visit, void *context, struct error *error)
{
    struct unsummed_reading reading = {.chunks = {.rows = {.sql = {.maximum = SQL_BYTES_MAX},
                                                           .types = READ_TYPES "s",
                                                           .visit = visit_chunk,
                                                           .has_ids = true,
                                                           .seen = *seen,
                                                           .continues = true},
                                                  .visit = visit,
                                                  .context = context,
                                                  .is_damaged = query->is_damaged,
                                                  .with_payload = true},
                                       .query = query,
                                       .covers = covers};
    *seen = (struct id_set){0};
    buffer_init(&reading.chunks.payload, PAYLOAD_ROOM);
    enum status status = cluster_each_shard(cluster, query, read_unsummed, &reading, error);
    buffer_fini(&reading.chunks.rows.sql);
    buffer_fini(&reading.chunks.payload);
    id_set_fini(&reading.chunks.rows.seen);
    return status;
}

/* --- Spans, rejected items, outcomes ------------------------------------------------------------------------------ */

/* The function of the caller for rows of one kind. */
struct row_reading {
    struct reading rows;
    store_visit_span *span;
    store_visit_rejected *rejected;
    store_visit_outcome *outcome;
    store_visit_usage *usage;
    void *context;
};

static bool visit_span(void *context, const struct row *row)
{
    const struct row_reading *reading = context;
    const struct slice *cells = row->cells;
    const struct store_span span = {.trace_id = cells[1],
                                    .span_id = cells[2],
                                    .name = cells[3],
                                    .op = cells[4],
                                    .service = cells[5],
                                    .environment = cells[6],
                                    .release = cells[7],
                                    .profiler_id = cells[8],
                                    .profile_id = cells[9],
                                    .thread_id = cells[10],
                                    .start_ns = row_number(row, 11),
                                    .end_ns = row_number(row, 12),
                                    .is_transaction = row_number(row, 13)};
    return reading->span(reading->context, &span);
}

enum status cluster_each_span(struct store *store, const struct store_query *query, store_visit_span *visit,
                              void *context, struct error *error)
{
    struct row_reading reading = {
        .rows = {.sql = {.maximum = SQL_BYTES_MAX}, .types = "issssssssssqqb", .visit = visit_span, .has_ids = true},
        .span = visit,
        .context = context};
    struct buffer *sql = &reading.rows.sql;
    buffer_append_text(sql, "SELECT id,trace_id,span_id,name,op,service,environment,release,profiler_id,profile_id,"
                            "thread_id,start_ns,end_ns,is_transaction FROM span");
    write_range(query, "end_ns", sql);
    write_service(query, sql);
    write_equal(sql, "profiler_id", query->profiler_id);
    buffer_append_text(sql, " ORDER BY start_ns FORMAT RowBinary");
    return read_rows(&reading.rows, store_engine_data(store), query, error);
}

static bool visit_rejected(void *context, const struct row *row)
{
    const struct row_reading *reading = context;
    const struct slice *cells = row->cells;
    const struct store_rejected rejected = {.received_ns = row_number(row, 1),
                                            .type = cells[2],
                                            .reason = cells[3],
                                            .place = cells[4],
                                            .found = cells[5],
                                            .expected = cells[6],
                                            .sdk = cells[7],
                                            .header = cells[8],
                                            .payload = {.size = row_number(row, 9)}};
    return reading->rejected(reading->context, &rejected);
}

enum status cluster_each_rejected(struct store *store, const struct store_query *query, store_visit_rejected *visit,
                                  void *context, struct error *error)
{
    struct row_reading reading = {
        .rows = {.sql = {.maximum = SQL_BYTES_MAX}, .types = "iqsssssssq", .visit = visit_rejected, .has_ids = true},
        .rejected = visit,
        .context = context};
    buffer_append_format(&reading.rows.sql,
                         "SELECT id,received_ns,type,reason,place,found,expected,sdk,header,size FROM rejected WHERE "
                         "project = %" PRIu64 " AND received_ns >= %" PRIu64 " AND received_ns < %" PRIu64
                         " ORDER BY received_ns FORMAT RowBinary",
                         query->project, query->from_ns, query->to_ns ? query->to_ns : UINT64_MAX);
    return read_rows(&reading.rows, store_engine_data(store), query, error);
}

static bool visit_outcome(void *context, const struct row *row)
{
    const struct row_reading *reading = context;
    const struct store_outcome outcome = {row->cells[0], row->cells[1], row->cells[2], row_number(row, 3)};
    return reading->outcome(reading->context, &outcome);
}

enum status cluster_each_outcome(struct store *store, const struct store_query *query, store_visit_outcome *visit,
                                 void *context, struct error *error)
{
    struct row_reading reading = {.rows = {.sql = {.maximum = SQL_BYTES_MAX}, .types = "sssq", .visit = visit_outcome},
                                  .outcome = visit,
                                  .context = context};
    buffer_append_format(&reading.rows.sql,
                         "SELECT outcome, category, reason, sum(once) FROM (SELECT outcome, category, reason, "
                         "any(quantity) AS once FROM outcome WHERE project = %" PRIu64
                         " GROUP BY outcome, category, reason, id) GROUP BY outcome, category, reason ORDER BY "
                         "outcome, category, reason FORMAT RowBinary",
                         query->project);
    return read_rows(&reading.rows, store_engine_data(store), query, error);
}

/* --- Room --------------------------------------------------------------------------------------------------------- */

static bool visit_usage(void *context, const struct row *row)
{
    const struct row_reading *reading = context;
    struct store_service_usage usage = {.project = row_number(row, 0),
                                        .chunk_count = row_number(row, 2),
                                        .sample_count = row_number(row, 3),
                                        .bytes = row_number(row, 4),
                                        .first_ns = row_number(row, 5),
                                        .last_ns = row_number(row, 6)};
    (void)snprintf(usage.service, sizeof(usage.service), "%.*s", SLICE_ARGUMENTS(row->cells[1]));
    return reading->usage(reading->context, &usage);
}

enum status cluster_each_usage(struct store *store, uint64_t project, store_visit_usage *visit, void *context,
                               struct error *error)
{
    const struct store_query all = {.project = project};
    struct row_reading reading = {.rows = {.sql = {.maximum = SQL_BYTES_MAX}, .types = "qsqqqqq", .visit = visit_usage},
                                  .usage = visit,
                                  .context = context};
    struct buffer *sql = &reading.rows.sql;
    buffer_append_text(sql, "SELECT project, service, count(), sum(n), sum(b), min(s), max(e) FROM (SELECT project, "
                            "service, id, any(samples) AS n, any(packed) AS b, any(start_ns) AS s, any(end_ns) AS e "
                            "FROM chunk");
    if (project) buffer_append_format(sql, " WHERE project = %" PRIu64, project);
    buffer_append_format(sql,
                         " GROUP BY project, service, id) GROUP BY project, service ORDER BY project, service "
                         "LIMIT %d FORMAT RowBinary",
                         STORE_VALUES_MAX);
    return read_rows(&reading.rows, store_engine_data(store), &all, error);
}
