/* Projects and keys of all servers: each sends its changes to the table "control", which is on every machine, and takes
 * those of the others from there. The control file in its folder is a copy, with which it goes on while the cluster is
 * away.  SPDX-License-Identifier: MIT */
#include "cluster/cluster_private.h"
#include "store/control_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANGES_MAX = 1000, SQL_BYTES_MAX = 4096, CHANGES_BYTES_MAX = 16 << 20 };

/* --- Sending ------------------------------------------------------------------------------------------------------ */

struct changes {
    struct buffer rows; /* one after the other */
    size_t ends[CHANGES_MAX];
    size_t count;
    struct {
        bool is_project;
        uint64_t id, version;
    } sent[CHANGES_MAX];
    uint8_t writer[ROW_ID_BYTES];
};

static bool take_change(void *context, const struct control_row *change)
{
    struct changes *changes = context;
    char id[24];
    (void)snprintf(id, sizeof(id), "%" PRIu64, change->id);
    row_text(&changes->rows, change->sort);
    row_text(&changes->rows, slice_of_text(id));
    row_u64(&changes->rows, change->version);
    row_id(&changes->rows, changes->writer);
    row_text(&changes->rows, change->body);
    if (changes->rows.failed) return false;
    changes->ends[changes->count] = changes->rows.size;
    changes->sent[changes->count].is_project = slice_equals_text(change->sort, "project");
    changes->sent[changes->count].id = change->id;
    changes->sent[changes->count++].version = change->version;
    return changes->count < CHANGES_MAX;
}

enum status cluster_insert_control(struct cluster *cluster, const struct slice *rows, size_t count, struct error *error)
{
    const struct table *table = &cluster_tables[TABLE_CONTROL];
    struct buffer sql = {.maximum = SQL_BYTES_MAX}, block = {.maximum = 2 * CHANGES_BYTES_MAX};
    enum status status = rows_write_block(TABLE_CONTROL, rows, count, &block, error);
    buffer_append_format(&sql, "INSERT INTO %s (%s) FORMAT Native", table->name, table->columns);
    uint32_t shards = topology_all_shards(&cluster->topology);
    enum status inserted = STATUS_IO;
    for (int shard = 0; shard < SHARDS_MAX && status == STATUS_OK && inserted != STATUS_OK; shard++) {
        const struct shard_request request = {
            .shard = shard, .statement = buffer_slice(&sql), .body = buffer_slice(&block)};
        if (shards >> shard & 1) inserted = topology_run(&cluster->topology, &request, error);
    }
    buffer_fini(&sql);
    buffer_fini(&block);
    return status == STATUS_OK ? inserted : status;
}

static enum status insert_changes(struct cluster *cluster, const struct changes *changes, struct error *error)
{
    struct slice rows[CHANGES_MAX];
    for (size_t i = 0, start = 0; i < changes->count; start = changes->ends[i++])
        rows[i] = slice_of(changes->rows.data + start, changes->ends[i] - start);
    return cluster_insert_control(cluster, rows, changes->count, error);
}

static enum status send_changes(struct cluster *cluster, struct error *error)
{
    struct changes *changes = calloc(1, sizeof(*changes));
    if (!changes || !row_id_new(changes->writer)) {
        free(changes);
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    }
    changes->rows.maximum = CHANGES_BYTES_MAX;
    enum status status = control_rows_each_change(cluster->store, CHANGES_MAX, take_change, changes, error);
    if (status == STATUS_OK && changes->count > 0) status = insert_changes(cluster, changes, error);
    for (size_t i = 0; i < changes->count && status == STATUS_OK; i++) {
        const struct control_row row = {.sort = slice_of_text(changes->sent[i].is_project ? "project" : "key"),
                                        .id = changes->sent[i].id,
                                        .version = changes->sent[i].version};
        status = control_rows_mark_sent(cluster->store, &row, error);
    }
    buffer_fini(&changes->rows);
    free(changes);
    return status;
}

/* --- Taking ------------------------------------------------------------------------------------------------------- */

struct taking {
    struct cluster *cluster;
    enum status status;
    struct error error;
};

static bool take_row(void *context, const struct row *cells)
{
    struct taking *taking = context;
    char id[24];
    (void)snprintf(id, sizeof(id), "%.*s", SLICE_ARGUMENTS(cells->cells[1]));
    const struct control_row row = {.sort = cells->cells[0],
                                    .id = strtoull(id, NULL, 10),
                                    .version = row_number(cells, 2),
                                    .body = cells->cells[3]};
    if (row.version > INT64_MAX) return true;
    taking->status = control_rows_apply(taking->cluster->store, &row, &taking->error);
    return taking->status == STATUS_OK;
}

static enum status take_changes(struct cluster *cluster, struct error *error)
{
    static const char sql[] =
        "SELECT sort, id, max(version), argMax(body, (version, writer)) FROM control WHERE sort IN "
        "('project', 'key') GROUP BY sort, id ORDER BY sort DESC FORMAT RowBinary";
    struct taking taking = {.cluster = cluster};
    uint32_t shards = topology_all_shards(&cluster->topology);
    enum status status = STATUS_IO;
    for (int shard = 0; shard < SHARDS_MAX && status != STATUS_OK; shard++) {
        if (!(shards >> shard & 1)) continue;
        status = topology_each_sum(&cluster->topology, shard, slice_of_text(sql), "ssqs", take_row, &taking, error);
    }
    if (taking.status != STATUS_OK && error) *error = taking.error;
    return taking.status != STATUS_OK ? taking.status : status;
}

enum status cluster_share_control(struct cluster *cluster, struct error *error)
{
    enum status status = take_changes(cluster, error);
    return status == STATUS_OK ? send_changes(cluster, error) : status;
}

static bool note_change(void *context, const struct control_row *row)
{
    (void)row;
    *(bool *)context = true;
    return false;
}

enum status cluster_send_control(struct store *store, struct error *error)
{
    enum { TURNS_MAX = 1000 };
    struct cluster *cluster = store_engine_data(store);
    enum status status = STATUS_OK;
    for (int turn = 0; turn < TURNS_MAX && status == STATUS_OK; turn++) {
        bool is_unsent = false;
        status = control_rows_each_change(store, 1, note_change, &is_unsent, error);
        if (!is_unsent) break;
        if (status == STATUS_OK) status = cluster_share_control(cluster, error);
    }
    return status;
}
