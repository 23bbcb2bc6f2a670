/* Opens and closes the engine of a cluster, and keeps it: looks for shards, and ends what is kept too long.
 * SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "base/file.h"
#include "cluster/cluster_private.h"
#include "store/control_rows.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEPER_MS = 1000, KEEPER_TURNS = 5, LAST_MS = 1500, REPORT_SIZE = 512 };

bool cluster_is_address(const char *address)
{
    return topology_is_address(address);
}

void cluster_report(const struct cluster *cluster, const char *format, ...)
{
    char text[REPORT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (cluster->options.report) cluster->options.report(cluster->options.report_context, text);
}

bool cluster_pause(struct cluster *cluster, unsigned pause_ms)
{
    uint64_t end_ns = clock_utc_ns() + pause_ms * 1000000ull;
    const struct timespec until = {(time_t)(end_ns / SECOND_NS), (long)(end_ns % SECOND_NS)};
    int waited = 0;
    (void)pthread_mutex_lock(&cluster->lock);
    while (!cluster->is_ending && waited == 0)
        waited = pthread_cond_timedwait(&cluster->changed, &cluster->lock, &until);
    bool continues = !cluster->is_ending;
    (void)pthread_mutex_unlock(&cluster->lock);
    return continues;
}

/* --- The keeper --------------------------------------------------------------------------------------------------- */

static void start_shippers(struct cluster *cluster)
{
    uint32_t shards = topology_all_shards(&cluster->topology);
    for (int shard = 0; shard < SHARDS_MAX; shard++) {
        struct shipper *shipper = &cluster->shippers[shard];
        if (!(shards >> shard & 1) || shipper->is_started) continue;
        shipper->cluster = cluster;
        shipper->shard = shard;
        shipper->is_started = pthread_create(&shipper->thread, NULL, shipper_run, shipper) == 0;
    }
}

static void update(struct cluster *cluster)
{
    struct error error = {0};
    enum status status = topology_update(&cluster->topology, &error);
    if (status == STATUS_OK) status = cluster_share_control(cluster, &error);
    if (status == STATUS_OK) (void)deletions_take(cluster, &error);
    start_shippers(cluster);
    if (status == STATUS_IO && topology_all_shards(&cluster->topology)) return; /* a shipper says so */
    if (strcmp(cluster->said, error.message) != 0) {
        const char *meanwhile = status == STATUS_IO ? "; what arrives waits in the spool" : "";
        if (error.message[0]) cluster_report(cluster, "%s%s", error.message, meanwhile);
        (void)snprintf(cluster->said, sizeof(cluster->said), "%s", error.message);
    }
}

static void *keep(void *context)
{
    struct cluster *cluster = context;
    for (unsigned turn = 1; cluster_pause(cluster, KEEPER_MS); turn++) {
        topology_look_at_silent(&cluster->topology);
        if (turn % KEEPER_TURNS == 0) update(cluster);
        insert_spool_expire(cluster->spool, cluster->options.forgets_taken ? 0 : SPOOL_TAKEN_SECONDS * SECOND_NS);
    }
    return NULL;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* The spool is sent as far as that works in a second or two; what is left is sent after the next start. */
static void cluster_close(void *data)
{
    struct cluster *cluster = data;
    if (cluster->spool) {
        struct insert_spool_usage usage;
        uint64_t end_ns = clock_monotonic_ns() + LAST_MS * MILLISECOND_NS;
        const struct timespec pause = {.tv_nsec = 20 * 1000000};
        insert_spool_stop(cluster->spool);
        for (insert_spool_usage(cluster->spool, &usage);
             usage.files > 0 && clock_monotonic_ns() < end_ns && !topology_is_away(&cluster->topology);
             insert_spool_usage(cluster->spool, &usage))
            (void)nanosleep(&pause, NULL);
    }
    (void)pthread_mutex_lock(&cluster->lock);
    cluster->is_ending = true;
    atomic_store(&cluster->topology.clickhouse.is_ending, true);
    (void)pthread_cond_broadcast(&cluster->changed);
    (void)pthread_mutex_unlock(&cluster->lock);
    if (cluster->has_keeper) (void)pthread_join(cluster->keeper, NULL);
    for (int shard = 0; shard < SHARDS_MAX; shard++) {
        if (cluster->shippers[shard].is_started) (void)pthread_join(cluster->shippers[shard].thread, NULL);
    }
    if (cluster->spool) insert_spool_close(cluster->spool);
    cluster_forget_spaces(cluster);
    coverage_fini(&cluster->coverage);
    deletions_fini(&cluster->deletions);
    dictionaries_fini(&cluster->dictionaries);
    topology_fini(&cluster->topology);
    (void)pthread_mutex_destroy(&cluster->lock);
    (void)pthread_cond_destroy(&cluster->changed);
    free(cluster);
}

static void add_usage(struct store *store, struct store_usage *usage)
{
    const struct cluster *cluster = store_engine_data(store);
    struct insert_spool_usage waiting;
    insert_spool_usage(cluster->spool, &waiting);
    usage->is_in_cluster = true;
    usage->spool_bytes = waiting.bytes;
    usage->spool_oldest_ns = waiting.oldest_ns;
}

static void hurry(struct store *store)
{
    const struct cluster *cluster = store_engine_data(store);
    insert_spool_hurry(cluster->spool);
}

static const struct store_engine engine = {
    .add = cluster_add,
    .each_chunk = cluster_each_chunk,
    .each_rollup = cluster_each_rollup,
    .each_span = cluster_each_span,
    .each_rejected = cluster_each_rejected,
    .each_outcome = cluster_each_outcome,
    .each_value = cluster_each_value,
    .each_usage = cluster_each_usage,
    .delete = cluster_delete,
    .expire = cluster_expire,
    .update_rollups = cluster_update_rollups,
    .add_usage = add_usage,
    .hurry = hurry,
    .close = cluster_close,
};

/* Notes in FOLDER that its data are in the cluster. */
static enum status note_place(const struct cluster *cluster, const char *folder, struct error *error)
{
    char path[PATH_MAX];
    struct error problem;
    (void)snprintf(path, sizeof(path), "%s/" STORE_ELSEWHERE_FILE, folder);
    enum status status = file_write(path, slice_of_text(cluster->options.address), &problem);
    return status == STATUS_OK ? status : error_set(error, status, 0, "%.120s: %.100s", path, problem.message);
}

static enum status start(struct cluster *cluster, const char *folder, struct error *error)
{
    enum status status = note_place(cluster, folder, error);
    if (status == STATUS_OK) status = control_rows_begin(cluster->store, error);
    if (status != STATUS_OK) return status;
    status = insert_spool_open(folder, cluster->options.spool_bytes_max, &cluster->spool, error);
    if (status != STATUS_OK) return status;
    if (cluster->options.forgets_taken) insert_spool_be_lazy(cluster->spool);
    update(cluster); /* the first query finds the shards then */
    cluster->has_keeper = pthread_create(&cluster->keeper, NULL, keep, cluster) == 0;
    return cluster->has_keeper ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "cannot start a thread");
}

enum status cluster_open(const char *folder, const struct cluster_options *options, struct store **ret_store,
                         struct error *error)
{
    struct store *store;
    struct cluster *cluster = calloc(1, sizeof(*cluster));
    if (!cluster) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    cluster->options = *options;
    (void)pthread_mutex_init(&cluster->lock, NULL);
    (void)pthread_cond_init(&cluster->changed, NULL);
    coverage_init(&cluster->coverage);
    deletions_init(&cluster->deletions);
    dictionaries_init(&cluster->dictionaries);
    (void)row_id_new(cluster->writer);
    enum status status = topology_init(&cluster->topology, options, error);
    if (status != STATUS_OK) {
        cluster_close(cluster);
        return status;
    }
    status = store_open_with(folder, &engine, cluster, options->report, options->report_context, &store, error);
    if (status != STATUS_OK) return status;
    cluster->store = store;
    status = start(cluster, folder, error);
    if (status == STATUS_OK)
        *ret_store = store;
    else
        store_close(store);
    return status;
}
