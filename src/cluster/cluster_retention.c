/* Ends what is kept too long, by whole partitions, and deletes what somebody wants to be gone, by mutations.
 * SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "cluster/cluster_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SQL_BYTES_MAX = 200 << 10, DELETE_SECONDS = 60, PARTITIONS_MAX = 1 << 16, PARTITION_SIZE = 40 };

/* --- Partitions --------------------------------------------------------------------------------------------------- */

struct partition {
    enum cluster_table table;
    unsigned keep;
    char name[PARTITION_SIZE]; /* "(0,'2026-11-23')" */
};

struct expiring {
    ARRAY_OF(struct partition) partitions;
    uint64_t now_ns, age_ns;
    uint64_t removed;
};

/* Days since 1970 of "2026-11-23". */
static bool day_of_text(const char *text, uint64_t *ret_day)
{
    struct tm date = {0};
    const char *end = strptime(text, "%Y-%m-%d", &date);
    if (!end) return false;
    *ret_day = (uint64_t)timegm(&date) / 86400;
    return true;
}

static bool is_over(const struct expiring *expiring, unsigned keep, uint64_t day)
{
    uint64_t age_ns = keep == 0 ? expiring->age_ns : keep == KEEP_FOREVER ? 0 : keep * DAY_NS;
    return age_ns > 0 && expiring->now_ns > age_ns && (day + 1) * DAY_NS <= expiring->now_ns - age_ns;
}

static bool take_partition(void *context, const struct row *row)
{
    struct expiring *expiring = context;
    struct partition partition;
    char day_text[16];
    uint64_t day;
    (void)snprintf(partition.name, PARTITION_SIZE, "%.*s", SLICE_ARGUMENTS(row->cells[1]));
    if (sscanf(partition.name, "(%u,'%10[0-9-]')", &partition.keep, day_text) != 2 || !day_of_text(day_text, &day) ||
        !is_over(expiring, partition.keep, day))
        return true;
    for (partition.table = 0; partition.table < DATA_TABLES; partition.table++) {
        if (slice_equals_text(row->cells[0], cluster_tables[partition.table].name))
            return ARRAY_PUSH(&expiring->partitions, PARTITIONS_MAX, partition);
    }
    return true;
}

static enum status run(struct cluster *cluster, int shard, const struct buffer *sql, struct error *error)
{
    const struct shard_request request = {.shard = shard, .statement = buffer_slice(sql)};
    return topology_run(&cluster->topology, &request, error);
}

/* Two servers may drop the same one: the second finds nothing. */
static enum status drop_partitions(struct cluster *cluster, int shard, const struct expiring *expiring,
                                   struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < expiring->partitions.count && status == STATUS_OK; i++) {
        const struct partition *partition = &expiring->partitions.items[i];
        struct buffer sql = {.maximum = SQL_BYTES_MAX};
        buffer_append_format(&sql, "ALTER TABLE %s DROP PARTITION %s", cluster_tables[partition->table].name,
                             partition->name);
        status = run(cluster, shard, &sql, error);
        buffer_fini(&sql);
    }
    return status;
}

static enum status expire_shard(void *context, struct cluster *cluster, int shard, struct error *error)
{
    struct expiring *expiring = context;
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    expiring->partitions.count = 0;
    buffer_append_text(&sql, "SELECT table, partition FROM system.parts WHERE active AND database = ");
    sql_append_literal(&sql, slice_of_text(cluster->topology.clickhouse.database));
    buffer_append_text(&sql, " GROUP BY table, partition FORMAT RowBinary");
    enum status status =
        topology_each_sum(&cluster->topology, shard, buffer_slice(&sql), "ss", take_partition, expiring, error);
    buffer_fini(&sql);
    if (status == STATUS_OK) status = drop_partitions(cluster, shard, expiring, error);
    if (status == STATUS_OK) expiring->removed += expiring->partitions.count;
    return status;
}

enum status cluster_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                           uint64_t *ret_removed, struct error *error)
{
    const struct store_query all = {.project = 0};
    struct expiring expiring = {.now_ns = now_ns, .age_ns = age_ns};
    struct cluster *cluster = store_engine_data(store);
    (void)bytes_max; /* the disks are those of the cluster */
    enum status status = cluster_each_shard(cluster, &all, expire_shard, &expiring, error);
    bool is_away =
        !topology_all_shards(&cluster->topology) || (status == STATUS_IO && topology_is_away(&cluster->topology));
    if (status != STATUS_OK && is_away) status = STATUS_OK; /* the keeper says why */
    free(expiring.partitions.items);
    if (ret_removed) *ret_removed = expiring.removed;
    return status;
}

/* --- Deleting ----------------------------------------------------------------------------------------------------- */

struct deleting {
    const struct store_query *query;
    uint64_t before_ns; /* UTC time of the deletion */
    uint64_t chunks, left;
};

static bool take_number(void *context, const struct row *row)
{
    *(uint64_t *)context = row_number(row, 0);
    return false;
}

/* Waits until the replicas of SHARD have rewritten their parts. */
static enum status wait_for_mutations(struct cluster *cluster, int shard, struct error *error)
{
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    uint64_t end_ns = clock_monotonic_ns() + DELETE_SECONDS * SECOND_NS, left = 1;
    const struct timespec pause = {.tv_nsec = 100 * 1000000};
    enum status status = STATUS_OK;
    buffer_append_text(&sql, "SELECT count() FROM system.mutations WHERE is_done = 0 AND database = ");
    sql_append_literal(&sql, slice_of_text(cluster->topology.clickhouse.database));
    buffer_append_text(&sql, " FORMAT RowBinary");
    while (status == STATUS_OK && left > 0 && clock_monotonic_ns() < end_ns) {
        status = topology_each_sum(&cluster->topology, shard, buffer_slice(&sql), "q", take_number, &left, error);
        if (left > 0) (void)nanosleep(&pause, NULL);
    }
    buffer_fini(&sql);
    if (status == STATUS_OK && left > 0)
        status = error_set(error, STATUS_IO, 0, "the cluster goes on deleting; ask again later");
    return status;
}

/* Returns whether rows of TABLE are among what QUERY selects: outcomes and rejected items belong to a whole project,
 * and stacks to all of a service. */
static bool is_deleted_from(enum cluster_table table, const struct store_query *query)
{
    bool has_parts =
        query->environment.size + query->release.size + query->host.size > 0 || query->from_ns || query->to_ns;
    switch ((int)table) {
    case TABLE_SPAN:
        return query->host.size == 0;
    case TABLE_DICT:
        return !has_parts;
    case TABLE_OUTCOME:
    case TABLE_REJECTED:
        return !has_parts && query->service.size == 0;
    default:
        return true;
    }
}

/* Servers go on to number the stacks of a service in its dictionaries of today: these stay. */
static void write_deletion(enum cluster_table table, const struct store_query *query, struct buffer *sql)
{
    buffer_append_format(sql, "ALTER TABLE %s DELETE", cluster_tables[table].name);
    if (table == TABLE_OUTCOME || table == TABLE_REJECTED || table == TABLE_DICT) {
        buffer_append_format(sql, " WHERE project = %" PRIu64, query->project);
        query_write_names(query, sql);
        if (table == TABLE_DICT && query->service.size > 0)
            buffer_append_format(sql, " AND day < toDate(%" PRIu64 ")", clock_utc_ns() / DAY_NS);
    } else if (table == TABLE_SUM) {
        query_write_conditions(query, "last_ns", sql);
        /* A roll-up has other data, too: it is made again of what is left. */
        const struct store_query whole = {
            .project = query->project, .from_ns = query->from_ns, .to_ns = query->to_ns, .service = query->service};
        struct buffer more = {.maximum = SQL_BYTES_MAX};
        query_write_conditions(&whole, "last_ns", &more);
        buffer_append(&more, "", 1);
        if (!more.failed)
            buffer_append_format(sql, " OR (level > 0 AND %s)", (const char *)more.data + strlen(" WHERE "));
        buffer_fini(&more);
    } else {
        query_write_conditions(query, "end_ns", sql);
    }
}

static enum status delete_in_shard(void *context, struct cluster *cluster, int shard, struct error *error)
{
    struct deleting *deleting = context;
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    uint64_t chunks = 0;
    buffer_append_text(&sql, "SELECT uniqExact(id) FROM chunk");
    query_write_conditions(deleting->query, "end_ns", &sql);
    buffer_append_text(&sql, " FORMAT RowBinary");
    enum status status =
        topology_each_sum(&cluster->topology, shard, buffer_slice(&sql), "q", take_number, &chunks, error);
    for (enum cluster_table table = 0; table < DATA_TABLES && status == STATUS_OK; table++) {
        if (!is_deleted_from(table, deleting->query)) continue;
        buffer_clear(&sql);
        write_deletion(table, deleting->query, &sql);
        status = run(cluster, shard, &sql, error);
    }
    buffer_fini(&sql);
    if (status == STATUS_OK) status = wait_for_mutations(cluster, shard, error);
    deleting->chunks += chunks;
    return status;
}

/* Waits until the cluster has what is in the spool: it would arrive behind the deletion. Files are sent in order. */
static enum status send_all(struct cluster *cluster, struct error *error)
{
    uint64_t last = insert_spool_flush(cluster->spool);
    if (insert_spool_wait(cluster->spool, last, DELETE_SECONDS * SECOND_NS)) return STATUS_OK;
    return error_set(error, STATUS_IO, 0, "nothing was deleted: what waits in the spool cannot be sent to the cluster");
}

/* Another server may have begun to send before it knew of the deletion. */
static enum status count_left(void *context, struct cluster *cluster, int shard, struct error *error)
{
    struct deleting *deleting = context;
    struct buffer sql = {.maximum = SQL_BYTES_MAX};
    uint64_t chunks = 0;
    buffer_append_text(&sql, "SELECT uniqExact(id) FROM chunk");
    query_write_conditions(deleting->query, "end_ns", &sql);
    buffer_append_format(&sql, " AND received_ns < %" PRIu64 " FORMAT RowBinary", deleting->before_ns);
    enum status status =
        topology_each_sum(&cluster->topology, shard, buffer_slice(&sql), "q", take_number, &chunks, error);
    buffer_fini(&sql);
    deleting->left += chunks;
    return status;
}

enum status cluster_delete(struct store *store, const struct store_query *query, uint64_t *ret_chunks,
                           struct error *error)
{
    enum { ROUNDS = 3 };
    struct cluster *cluster = store_engine_data(store);
    enum status status = send_all(cluster, error);
    struct deleting deleting = {.query = query, .before_ns = clock_utc_ns(), .left = 1};
    if (status == STATUS_OK) status = deletions_tell(cluster, query, deleting.before_ns, error);
    /* A file that is kept would be read again after a restart. */
    if (status == STATUS_OK) insert_spool_expire(cluster->spool, 0);
    if (status == STATUS_OK) (void)cluster_pause(cluster, 1000);
    for (int round = 0; round < ROUNDS && status == STATUS_OK && deleting.left > 0; round++) {
        deleting.left = 0;
        status = cluster_each_shard(cluster, query, delete_in_shard, &deleting, error);
        if (status == STATUS_OK) status = cluster_each_shard(cluster, query, count_left, &deleting, error);
    }
    if (status == STATUS_OK && deleting.left > 0)
        status = error_set(error, STATUS_IO, 0, "other servers went on to send what was to be deleted; ask again");
    coverage_forget(&cluster->coverage);
    bool has_lost;
    insert_spool_begin(cluster->spool, &has_lost);
    cluster_forget_spaces(cluster); /* stacks of earlier days were deleted */
    insert_spool_abandon(cluster->spool);
    *ret_chunks = deleting.chunks;
    return status;
}
