/* The replicas and shards of a cluster: which ones there are, which one to ask, and where a service is.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_TOPOLOGY_H
#define OFFBEAT_CLUSTER_TOPOLOGY_H

#include "cluster/clickhouse.h"
#include "cluster/rows.h"

struct cluster_options;

enum {
    REPLICAS_MAX = 64,
    SHARDS_MAX = 32,
    SHARD_NAME_SIZE = 32,
    SHARD_LISTS_MAX = 64, /* changes of the list of shards that are known */
};

struct replica {
    char place[PLACE_SIZE];                             /* HOST:PORT */
    char shard[SHARD_NAME_SIZE], name[SHARD_NAME_SIZE]; /* macros of the server; "": not known, because it was away */
    bool is_known;
    bool is_behind;      /* whether it lacks rows that its twin has, or cannot know */
    bool is_silent;      /* whether it did not answer in time: topology_look_at_silent looks whether it does again */
    uint64_t checked_ns; /* monotonic time when IS_BEHIND was found out; 0: never */
    uint64_t failed_ns;  /* monotonic time of the last failure; 0: none since the last success */
};

/* The shards that take what is received from the day FIRST_DAY on (days since 1970). */
struct shard_list {
    uint64_t first_day;
    uint32_t shards; /* bits: indices of topology.shards */
};

struct topology {
    struct clickhouse clickhouse;
    struct replica replicas[REPLICAS_MAX]; /* PLACE does not change */
    size_t replica_count;
    pthread_mutex_t lock; /* lock of all below, and of what changes in REPLICAS */
    char shards[SHARDS_MAX][SHARD_NAME_SIZE];
    size_t shard_count;
    struct shard_list lists[SHARD_LISTS_MAX]; /* lists in the order of days */
    size_t list_count;
    uint64_t placement;           /* number of changes of LISTS */
    size_t preferred[SHARDS_MAX]; /* replica that answered last, which has what was sent to it */
};

bool topology_is_address(const char *address);
/* Reads the places and the database of the address in OPTIONS, and the login. Asks nobody. */
enum status topology_init(struct topology *topology, const struct cluster_options *options, struct error *error);
void topology_fini(struct topology *topology);

/* Asks replica INDEX which one it is. */
enum status topology_ask_name(struct topology *topology, size_t index, struct error *error);
/* Finds out which shards there are, as far as replicas answer. STATUS_IO if none does. */
enum status topology_update(struct topology *topology, struct error *error);

/* A number that is the same for a service in each server. */
uint64_t placement_of(uint64_t project, struct slice service);
/* The index of the shard that takes PLACEMENT on DAY; -1 if no shard is known. */
int topology_shard_of(struct topology *topology, uint64_t placement, uint64_t day);
/* A number that changes when topology_shard_of may answer otherwise. */
uint64_t topology_placement(struct topology *topology);
/* Bits of the shards that may have PLACEMENT. */
uint32_t topology_shards_of(struct topology *topology, uint64_t placement);
uint32_t topology_all_shards(struct topology *topology);

/* A statement to one replica of SHARD: the next one if a replica does not answer. RECEIVE gets the answer of each that
 * is tried, after RESTART. */
struct shard_request {
    int shard;
    struct slice statement, body;
    clickhouse_receive *receive;
    void (*restart)(void *context); /* NULL: nothing to do */
    void *context;
};
enum status topology_run(struct topology *topology, const struct shard_request *request, struct error *error);

/* Looks whether replicas that were silent answer again; until then nobody asks them. To be called each second. */
void topology_look_at_silent(struct topology *topology);

/* Returns whether no replica has answered lately. */
bool topology_is_away(struct topology *topology);

/* Returns whether all replicas of SHARD that answer lack rows for now. */
bool topology_is_behind(struct topology *topology, int shard);

/* The same with rows of TYPES in the format RowBinary, which STATEMENT asks for. */
typedef bool row_visit(void *context, const struct row *row);
enum status topology_each_row(struct topology *topology, int shard, struct slice statement, const char *types,
                              row_visit *visit, void *context, struct error *error);
/* The same, but VISIT gets the rows when all of them have come: for those that have no id by which a repeated one is
 * known. */
enum status topology_each_sum(struct topology *topology, int shard, struct slice statement, const char *types,
                              row_visit *visit, void *context, struct error *error);
/* The same as topology_each_row with the replica INDEX. STATEMENT names the database of each table. */
enum status replica_each_row(struct topology *topology, size_t index, struct slice statement, const char *types,
                             row_visit *visit, void *context, struct error *error);

#endif
