/* Reads the rows of sums that a cover chooses, each once.  SPDX-License-Identifier: MIT */
#include "cluster/cluster_private.h"

#include <inttypes.h>
#include <string.h>

enum { SQL_BYTES_MAX = 200 << 10 };

struct sum_rows {
    const struct sum_rows_request *request;
    char service_name[STORE_NAME_BYTES_MAX + 1]; /* service of the row before */
    uint8_t service[ROW_ID_BYTES];
    bool has_service, continues, failed;
};

/* Rows of one service follow each other, so its id is made seldom. */
static const uint8_t *id_of_service(struct sum_rows *rows, struct slice name)
{
    if (rows->has_service && slice_equals_text(name, rows->service_name)) return rows->service;
    rows->has_service = name.size <= STORE_NAME_BYTES_MAX;
    if (rows->has_service) {
        if (name.size > 0) (void)memcpy(rows->service_name, name.data, name.size);
        rows->service_name[name.size] = '\0';
    }
    row_id_of(&name, 1, rows->service);
    return rows->service;
}

static bool take_row(void *context, const struct row *row)
{
    struct sum_rows *rows = context;
    const struct sum_rows_request *request = rows->request;
    if (!cover_takes(request->cover, id_of_service(rows, row->cells[SUM_SERVICE]), (int)row_number(row, SUM_LEVEL),
                     row_number(row, SUM_START), row_number(row, SUM_INPUTS), row_number(row, SUM_INPUTS_XOR)))
        return true;
    if (request->count && row_number(row, SUM_LEVEL) == LEVEL_CHUNK) {
        uint64_t id;
        (void)memcpy(&id, row->cells[SUM_ID].data, sizeof(id));
        request->count->inputs++;
        request->count->inputs_xor ^= id;
    }
    if (!id_set_add(request->seen, row->cells[SUM_ID])) {
        rows->failed |= request->seen->failed;
        return !rows->failed;
    }
    rows->continues = request->visit(request->context, row);
    return rows->continues;
}

/* All levels are one statement: each costs the server some 20 ms. */
static void write_statement(const struct sum_rows_request *request, struct buffer *sql)
{
    const struct store_query *query = request->query;
    buffer_append_format(sql,
                         "SELECT id,project,service,space,nodes,header,first_ns,last_ns,entries,level,start_ns,inputs,"
                         "inputs_xor%s FROM sum WHERE project = %" PRIu64,
                         request->with_names ? ",kinds,environment,release,platform,keep,day" : "", query->project);
    query_write_names(query, sql);
    cover_write_levels(request->cover, LEVEL_CHUNK, query, sql);
    buffer_append_text(sql, " FORMAT RowBinary");
}

enum status sum_rows_each(struct cluster *cluster, int shard, const struct sum_rows_request *request,
                          bool *ret_continues, struct error *error)
{
    struct sum_rows rows = {.request = request, .continues = true};
    enum status status = STATUS_OK;
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    write_statement(request, &sql);
    if (sql.failed)
        status = error_set(error, STATUS_TOO_LARGE, 0, "the question is too long; choose less");
    else if (cover_has_levels(request->cover, LEVEL_CHUNK))
        status =
            topology_each_row(&cluster->topology, shard, buffer_slice(&sql),
                              request->with_names ? "iqsiqsqqsbqqqsssshd" : "iqsiqsqqsbqqq", take_row, &rows, error);
    buffer_fini(&sql);
    if (rows.failed) status = error_set(error, STATUS_TOO_LARGE, 0, "too many sums match; narrow the time range");
    if (ret_continues) *ret_continues = rows.continues;
    return status;
}
