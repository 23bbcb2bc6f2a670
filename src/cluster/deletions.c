/* SPDX-License-Identifier: MIT */
#include "cluster/deletions.h"

#include "base/clocks.h"
#include "base/cursor.h"
#include "cluster/cluster_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_BYTES_MAX = 4096, BODY_BYTES_MAX = 4096 };

void deletions_init(struct deletions *deletions)
{
    (void)pthread_mutex_init(&deletions->lock, NULL);
}

void deletions_fini(struct deletions *deletions)
{
    free(deletions->items.items);
    (void)pthread_mutex_destroy(&deletions->lock);
}

/* --- Telling ------------------------------------------------------------------------------------------------------ */

enum status deletions_tell(struct cluster *cluster, const struct store_query *query, uint64_t before_ns,
                           struct error *error)
{
    struct buffer row = {.maximum = BODY_BYTES_MAX}, body = {.maximum = BODY_BYTES_MAX};
    const struct slice names[DELETION_NAMES] = {query->service, query->environment, query->release, query->host};
    uint8_t id[ROW_ID_BYTES];
    char text[24];
    if (!row_id_new(id)) return error_set(error, STATUS_IO, 0, "the system has no random bytes");
    (void)snprintf(text, sizeof(text), "%" PRIu64, before_ns);
    row_u64(&body, query->project);
    row_u64(&body, query->from_ns);
    row_u64(&body, query->to_ns);
    for (size_t i = 0; i < DELETION_NAMES; i++) row_text(&body, names[i]);
    row_text(&row, slice_of_text("deletion"));
    row_text(&row, slice_of_text(text));
    row_u64(&row, before_ns);
    row_id(&row, id);
    row_text(&row, buffer_slice(&body));
    struct slice bytes = buffer_slice(&row);
    enum status status = row.failed || body.failed
                             ? error_set(error, STATUS_TOO_LARGE, 0, "the names of what is to be deleted are too long")
                             : cluster_insert_control(cluster, &bytes, 1, error);
    buffer_fini(&row);
    buffer_fini(&body);
    return status;
}

/* --- Taking ------------------------------------------------------------------------------------------------------- */

static bool take_deletion(void *context, const struct row *row)
{
    struct deletions *taken = context;
    struct deletion deletion = {.before_ns = row_number(row, 0)};
    struct slice body = row->cells[1];
    struct row cells;
    if (!row_take("qqqssss", &body, &cells)) return true; /* a newer version's */
    deletion.project = row_number(&cells, 0);
    deletion.from_ns = row_number(&cells, 1);
    deletion.to_ns = row_number(&cells, 2);
    for (size_t i = 0; i < DELETION_NAMES; i++) {
        struct slice name = cells.cells[3 + i];
        if (name.size > STORE_NAME_BYTES_MAX) return true;
        if (name.size > 0) (void)memcpy(deletion.names[i], name.data, name.size);
    }
    if (deletion.before_ns > taken->newest_ns) taken->newest_ns = deletion.before_ns;
    return ARRAY_PUSH(&taken->items, DELETIONS_MAX, deletion);
}

enum status deletions_take(struct cluster *cluster, struct error *error)
{
    static const char sql[] = "SELECT version, body FROM control WHERE sort = 'deletion' ORDER BY version DESC LIMIT "
                              "4096 FORMAT RowBinary";
    struct deletions *deletions = &cluster->deletions;
    uint32_t shards = topology_all_shards(&cluster->topology);
    enum status status = STATUS_IO;
    struct deletions taken = {.newest_ns = 0};
    for (int shard = 0; shard < SHARDS_MAX && status != STATUS_OK; shard++) {
        if (!(shards >> shard & 1)) continue;
        taken.items.count = 0;
        status = topology_each_sum(&cluster->topology, shard, slice_of_text(sql), "qs", take_deletion, &taken, error);
    }
    (void)pthread_mutex_lock(&deletions->lock);
    /* A replica that is behind has fewer; that of a server whose clock is behind is not the newest one. */
    bool is_new =
        status == STATUS_OK && (taken.newest_ns > deletions->newest_ns || taken.items.count > deletions->items.count);
    if (is_new) {
        free(deletions->items.items);
        deletions->items = taken.items;
        deletions->newest_ns = taken.newest_ns;
    }
    (void)pthread_mutex_unlock(&deletions->lock);
    if (is_new)
        coverage_forget(&cluster->coverage);
    else
        free(taken.items.items);
    return status;
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

/* Returns the value of the column NAME of TABLE in CELLS; empty if there is none. */
static struct slice cell_of(enum cluster_table table, const struct row *cells, const char *name)
{
    struct slice names = slice_of_text(cluster_tables[table].columns);
    for (size_t i = 0; names.size > 0; i++) {
        if (slice_equals_text(text_take_until(&names, ','), name)) return cells->cells[i];
    }
    return slice_of(NULL, 0);
}

static uint64_t number_of(enum cluster_table table, const struct row *cells, const char *name)
{
    uint64_t number = 0;
    struct slice cell = cell_of(table, cells, name);
    if (cell.size > 0) (void)memcpy(&number, cell.data, cell.size < sizeof(number) ? cell.size : sizeof(number));
    return number;
}

uint64_t row_received_ns(enum cluster_table table, struct slice bytes)
{
    struct row cells;
    if (table != TABLE_CHUNK && table != TABLE_REJECTED) return 0;
    return row_read(table, bytes, &cells) ? number_of(table, &cells, "received_ns") : 0;
}

/* A roll-up has data of other names, too: one that may have deleted data is made again of what is left. */
static bool is_chosen(const struct deletion *deletion, enum cluster_table table, const struct row *cells)
{
    static const char *const names[DELETION_NAMES] = {"service", "environment", "release", "host"};
    bool is_rollup = table == TABLE_SUM && number_of(table, cells, "level") > 0;
    uint64_t start_ns = number_of(table, cells, "start_ns");
    uint64_t end_ns = number_of(table, cells, table == TABLE_SUM ? "last_ns" : "end_ns");
    bool has_names = true;
    for (size_t i = 0; i < (is_rollup ? 1 : DELETION_NAMES); i++) {
        if (deletion->names[i][0]) has_names &= slice_equals_text(cell_of(table, cells, names[i]), deletion->names[i]);
    }
    return has_names && number_of(table, cells, "project") == deletion->project && end_ns >= deletion->from_ns &&
           (deletion->to_ns == 0 || start_ns < deletion->to_ns);
}

bool deletions_has(struct deletions *deletions, enum cluster_table table, struct slice bytes, uint64_t received_ns)
{
    struct row cells;
    bool has_times = table == TABLE_RAW || table == TABLE_CHUNK || table == TABLE_SUM || table == TABLE_SPAN;
    bool is_deleted = false;
    (void)pthread_mutex_lock(&deletions->lock);
    if (has_times && received_ns < deletions->newest_ns && row_read(table, bytes, &cells)) {
        for (size_t i = 0; i < deletions->items.count && !is_deleted; i++) {
            const struct deletion *deletion = &deletions->items.items[i];
            is_deleted = received_ns < deletion->before_ns && is_chosen(deletion, table, &cells);
        }
    }
    (void)pthread_mutex_unlock(&deletions->lock);
    return is_deleted;
}
