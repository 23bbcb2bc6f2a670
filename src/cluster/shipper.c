/* Sends the files of the spool to one shard: of each file the rows of that shard, as a block for each table and
 * partition. The blocks depend on the file alone, so that a repetition has the same bytes. A file that a shard does not
 * take is sent again without end; the other shards go on.  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clocks.h"
#include "base/cursor.h"
#include "base/unsigned.h"
#include "cluster/cluster_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES_MAX = 8 << 20, FILE_ROWS_MAX = 1 << 22, RETRY_MS = 100, RETRY_MS_MAX = 1000 };

struct sent_row {
    uint32_t partition; /* keep and day, the first bytes of a row */
    uint32_t turn;      /* place in the file */
    uint8_t table;
    struct slice bytes;
};

struct sending {
    struct shipper *shipper;
    uint64_t begun_ns; /* UTC time when the file was begun */
    ARRAY_OF(struct sent_row) rows;
    bool failed; /* whether memory was short, or the bytes are none of ours */
};

/* Takes a row off the front of a record. */
static bool take_row(struct cursor *cursor, struct sent_row *row, uint64_t *ret_placement)
{
    row->table = cursor_u8(cursor);
    *ret_placement = cursor_u64(cursor);
    row->bytes = cursor_take(cursor, cursor_uleb128(cursor));
    if (cursor->failed || row->table >= DATA_TABLES || row->bytes.size < sizeof(row->partition)) return false;
    (void)memcpy(&row->partition, row->bytes.data, sizeof(row->partition));
    return true;
}

/* A record is one request: its chunks say when it was received. */
static uint64_t received_ns_of(const struct sending *sending, struct slice record)
{
    struct cursor cursor = cursor_of(record);
    struct sent_row row;
    uint64_t placement, received_ns = 0;
    while (!received_ns && !cursor_at_end(&cursor) && take_row(&cursor, &row, &placement))
        received_ns = row_received_ns(row.table, row.bytes);
    return received_ns ? received_ns : sending->begun_ns;
}

static bool take_record(void *context, struct slice record)
{
    struct sending *sending = context;
    struct cluster *cluster = sending->shipper->cluster;
    struct topology *topology = &cluster->topology;
    struct cursor cursor = cursor_of(record);
    uint64_t received_ns = received_ns_of(sending, record);
    while (!cursor_at_end(&cursor) && !sending->failed) {
        struct sent_row row = {.turn = (uint32_t)sending->rows.count};
        uint64_t placement;
        if (!take_row(&cursor, &row, &placement)) {
            sending->failed = true;
            break;
        }
        if (deletions_has(&cluster->deletions, row.table, row.bytes, received_ns)) continue;
        if (topology_shard_of(topology, placement, row.partition >> 16) != sending->shipper->shard) continue;
        if (!ARRAY_PUSH(&sending->rows, FILE_ROWS_MAX, row)) sending->failed = true;
    }
    return !sending->failed;
}

static int compare_rows(const void *a, const void *b)
{
    const struct sent_row *left = a, *right = b;
    if (left->table != right->table) return left->table < right->table ? -1 : 1;
    if (left->partition != right->partition) return left->partition < right->partition ? -1 : 1;
    return (left->turn > right->turn) - (left->turn < right->turn);
}

static enum status send_block(struct shipper *shipper, const struct sent_row *rows, size_t count, struct error *error)
{
    const struct table *table = &cluster_tables[rows[0].table];
    struct buffer statement = {.maximum = 4096}, block = {.maximum = (size_t)SPOOL_RECORD_BYTES_MAX * 2};
    struct slice *bytes = calloc(count, sizeof(*bytes));
    enum status status = bytes ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to send rows");
    for (size_t i = 0; bytes && i < count; i++) bytes[i] = rows[i].bytes;
    if (status == STATUS_OK) status = rows_write_block(rows[0].table, bytes, count, &block, error);
    buffer_append_format(&statement, "INSERT INTO %s (%s) FORMAT Native", table->name, table->columns);
    const struct shard_request request = {
        .shard = shipper->shard, .statement = buffer_slice(&statement), .body = buffer_slice(&block)};
    if (status == STATUS_OK) status = topology_run(&shipper->cluster->topology, &request, error);
    buffer_fini(&statement);
    buffer_fini(&block);
    free(bytes);
    return status;
}

static enum status send_rows(struct sending *sending, struct error *error)
{
    const struct sent_row *rows = sending->rows.items;
    size_t count = sending->rows.count;
    enum status status = STATUS_OK;
    if (count > 0) qsort(sending->rows.items, count, sizeof(*rows), compare_rows);
    for (size_t start = 0, end; start < count && status == STATUS_OK; start = end) {
        size_t bytes = rows[start].bytes.size;
        for (end = start + 1;
             end < count && rows[end].table == rows[start].table && rows[end].partition == rows[start].partition &&
             bytes + rows[end].bytes.size <= BLOCK_BYTES_MAX;
             end++)
            bytes += rows[end].bytes.size;
        status = send_block(sending->shipper, rows + start, end - start, error);
    }
    return status;
}

/* A record that was not written to its end was not acknowledged: those before it are sent. */
static enum status send_file(struct shipper *shipper, uint64_t file, struct error *error)
{
    struct sending sending = {.shipper = shipper, .begun_ns = insert_spool_begun_ns(shipper->cluster->spool, file)};
    struct buffer content = {.maximum = (size_t)SPOOL_RECORD_BYTES_MAX * 2 + SPOOL_FILE_BYTES_MAX};
    enum status status = deletions_take(shipper->cluster, error);
    if (status == STATUS_OK)
        status = insert_spool_each_record(shipper->cluster->spool, file, &content, take_record, &sending, error);
    if (status == STATUS_MALFORMED) {
        cluster_report(shipper->cluster, "%s; it was not acknowledged", error->message);
        status = STATUS_OK;
    }
    if (status == STATUS_OK && sending.failed)
        status =
            error_set(error, STATUS_NO_MEMORY, 0, "file %llu of the spool cannot be read", (unsigned long long)file);
    if (status == STATUS_OK) status = send_rows(&sending, error);
    free(sending.rows.items);
    buffer_fini(&content);
    return status;
}

/* Reports a problem when it begins and when it ends. */
static void note_problem(struct shipper *shipper, const char *text)
{
    if (strcmp(shipper->said, text) == 0) return;
    if (text[0])
        cluster_report(shipper->cluster, "%s; what arrives waits in the spool", text);
    else
        cluster_report(shipper->cluster, "shard %s takes rows again",
                       shipper->cluster->topology.shards[shipper->shard]);
    (void)snprintf(shipper->said, sizeof(shipper->said), "%s", text);
}

/* Returns whether no note tells of the chunks of FILE: an earlier process received them, or the cluster was away. */
static bool is_unnoted(const struct cluster *cluster, uint64_t file)
{
    uint64_t age_max_ns = (COVERAGE_NOTE_SECONDS - 5) * SECOND_NS;
    return file <= insert_spool_left(cluster->spool) ||
           insert_spool_begun_ns(cluster->spool, file) + age_max_ns < clock_utc_ns();
}

void *shipper_run(void *context)
{
    struct shipper *shipper = context;
    struct cluster *cluster = shipper->cluster;
    uint32_t bit = 1u << shipper->shard;
    unsigned pause_ms = 0;
    bool continues = true;
    while (continues) {
        uint64_t file = insert_spool_next(cluster->spool, bit), placement = topology_placement(&cluster->topology);
        if (!file) break;
        struct error error = {0};
        enum status status = send_file(shipper, file, &error);
        note_problem(shipper, status == STATUS_OK ? "" : error.message);
        if (status == STATUS_OK && is_unnoted(cluster, file)) coverage_forget(&cluster->coverage);
        /* A file of which shards take parts by different placements is sent again. */
        if (status == STATUS_OK && placement == topology_placement(&cluster->topology))
            insert_spool_mark(cluster->spool, file, bit, topology_all_shards(&cluster->topology), placement);
        if (status == STATUS_OK)
            pause_ms = 0;
        else
            pause_ms = pause_ms == 0 ? RETRY_MS : (unsigned)least(2 * pause_ms, RETRY_MS_MAX);
        continues = cluster_pause(cluster, pause_ms);
    }
    return NULL;
}
