/* The distinct values of a column.  SPDX-License-Identifier: MIT */
#include "cluster/cluster_private.h"
#include "store/value_list.h"

#include <inttypes.h>

enum { SQL_BYTES_MAX = 200 << 10 };

struct value_reading {
    const struct store_query *query;
    struct buffer sql;
    struct value_list list;
    bool failed;
};

static bool take_value(void *context, const struct row *row)
{
    struct value_reading *reading = context;
    const struct store_value value = {row->cells[0], row_number(row, 1), row_number(row, 2), row_number(row, 3),
                                      row_number(row, 4)};
    reading->failed = !value_list_add(&reading->list, &value);
    return !reading->failed;
}

static enum status read_values(void *context, struct cluster *cluster, int shard, struct error *error)
{
    struct value_reading *reading = context;
    enum status status =
        topology_each_sum(&cluster->topology, shard, buffer_slice(&reading->sql), "sqqqq", take_value, reading, error);
    return reading->failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory") : status;
}

static void write_statement(const struct store_query *query, const char *column, struct buffer *sql)
{
    buffer_append_format(sql,
                         "SELECT v, min(s), max(e), count(), sum(n) FROM (SELECT %s AS v, id, any(start_ns) AS s, "
                         "any(end_ns) AS e, any(samples) AS n FROM chunk",
                         column);
    query_write_conditions(query, "end_ns", sql);
    if (query->after.data) {
        buffer_append_format(sql, " AND %s > ", column);
        sql_append_literal(sql, query->after);
    }
    buffer_append_format(sql, " GROUP BY v, id) GROUP BY v ORDER BY v LIMIT %d FORMAT RowBinary", STORE_VALUES_MAX);
}

/* Kinds are those of the roll-ups in the range, and of the chunks where there are none: no question scans a whole day.
 */
static enum status read_kinds(void *context, struct cluster *cluster, int shard, struct error *error)
{
    struct value_reading *reading = context;
    const struct store_query *query = reading->query;
    struct cover cover = {.longest_ns = 0};
    enum status status = cover_query(cluster, shard, query, &cover, error);
    for (int of_sums = 0; of_sums < 2 && status == STATUS_OK; of_sums++) {
        bool is_chunk = !of_sums;
        if (!is_chunk && !cover_has_levels(&cover, LEVEL_10_MINUTES)) continue;
        buffer_clear(&reading->sql);
        buffer_append_format(&reading->sql, "SELECT kinds, min(start_ns), max(%s), toUInt64(0), toUInt64(0) FROM %s",
                             is_chunk ? "end_ns" : "last_ns", is_chunk ? "chunk" : "sum");
        query_write_conditions(query, is_chunk ? "end_ns" : "last_ns", &reading->sql);
        if (is_chunk)
            cover_write_chunks(&cover, query, "1", &reading->sql);
        else
            cover_write_levels(&cover, LEVEL_10_MINUTES, query, &reading->sql);
        buffer_append_text(&reading->sql, " GROUP BY kinds FORMAT RowBinary");
        status = reading->sql.failed ? error_set(error, STATUS_TOO_LARGE, 0, "the question is too long; choose less")
                                     : read_values(reading, cluster, shard, error);
    }
    cover_fini(&cover);
    return status;
}

enum status cluster_each_value(struct store *store, const struct store_query *query, enum store_column column,
                               store_visit_value *visit, void *context, struct error *error)
{
    static const char *const columns[STORE_COLUMNS] = {
        [STORE_SERVICE] = "service", [STORE_ENVIRONMENT] = "environment", [STORE_RELEASE] = "release",
        [STORE_HOST] = "host",       [STORE_PLATFORM] = "platform",       [STORE_PROFILER] = "profiler_id",
        [STORE_KINDS] = "kinds",
    };
    if (!columns[column]) return STATUS_OK; /* sums in the cluster have no labels */
    struct value_reading reading = {.query = query, .sql = {.maximum = SQL_BYTES_MAX}};
    bool is_of_kinds =
        column == STORE_KINDS && !query->after.data && query->profiler_id.size == 0 && query->chunk_id.size == 0;
    if (!is_of_kinds) write_statement(query, columns[column], &reading.sql);
    enum status status = reading.sql.failed
                             ? error_set(error, STATUS_TOO_LARGE, 0, "the question is too long; choose less")
                             : cluster_each_shard(store_engine_data(store), query,
                                                  is_of_kinds ? read_kinds : read_values, &reading, error);
    if (status == STATUS_OK) value_list_visit(&reading.list, visit, context);
    value_list_fini(&reading.list);
    buffer_fini(&reading.sql);
    return status;
}
