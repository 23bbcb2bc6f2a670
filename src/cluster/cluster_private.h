/* The engine of a cluster.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_CLUSTER_PRIVATE_H
#define OFFBEAT_CLUSTER_CLUSTER_PRIVATE_H

#include "cluster/cluster.h"
#include "cluster/coverage.h"
#include "cluster/deletions.h"
#include "cluster/insert_spool.h"
#include "cluster/topology.h"
#include "store/stack_dictionary.h"
#include "store/store_engine.h"

enum {
    SPACES_MAX = 256,
    SPACES_BYTES_MAX = 64 << 20, /* bytes of memory of the dictionaries of SPACES */
    KEEP_FOREVER = UINT16_MAX,   /* in the column "keep" */
};

/* The stacks of one service and day, as this process numbers them: nobody else writes there. */
struct space {
    uint64_t project, day, used;
    char service[STORE_NAME_BYTES_MAX + 1];
    uint8_t id[ROW_ID_BYTES];
    uint64_t segments;
    struct stack_dictionary dictionary;
};

/* Dictionaries of spaces that queries have read. One that is in use is not here. */
enum {
    KEPT_DICTIONARIES_MAX = 1024,
    KEPT_DICTIONARY_BYTES_MAX = 32 << 20,
    KEPT_DICTIONARIES_BYTES_MAX = 128 << 20,
};
struct kept_dictionary {
    uint8_t space[ROW_ID_BYTES];
    uint64_t next, used; /* number of the next segment; turn of the last use */
    struct stack_dictionary stacks;
};
struct kept_dictionaries {
    pthread_mutex_t lock; /* lock of all below */
    struct kept_dictionary items[KEPT_DICTIONARIES_MAX];
    size_t count, bytes;
    uint64_t uses;
};

/* Sends to one shard what the spool has. */
struct shipper {
    struct cluster *cluster;
    int shard;
    pthread_t thread;
    bool is_started;
    char said[232]; /* the last problem that was reported; "": the last file was sent */
};

struct cluster {
    struct cluster_options options;
    struct topology topology;
    struct store *store; /* the store with this engine */
    struct insert_spool *spool;
    struct space *spaces[SPACES_MAX]; /* spaces, under the order of SPOOL */
    size_t space_count, space_bytes;
    uint64_t space_uses;
    struct coverage coverage;
    struct deletions deletions;
    struct kept_dictionaries dictionaries;
    uint8_t writer[ROW_ID_BYTES]; /* random: other servers have others */
    struct shipper shippers[SHARDS_MAX];
    pthread_t keeper; /* thread that looks for shards, and ends what is kept too long */
    bool has_keeper;
    pthread_mutex_t lock; /* lock of all below */
    pthread_cond_t changed;
    bool is_ending;
    char said[232]; /* the last problem of the keeper that was reported */
};

void cluster_report(const struct cluster *cluster, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Waits, or until the store is closed: false. */
bool cluster_pause(struct cluster *cluster, unsigned pause_ms);

/* --- Ids ---------------------------------------------------------------------------------------------------------- */

/* An id that depends on PARTS alone. */
void row_id_of(const struct slice *parts, size_t count, uint8_t ret_id[ROW_ID_BYTES]);
bool row_id_new(uint8_t ret_id[ROW_ID_BYTES]);

/* The ids that a reader has seen. {0} is a valid empty one. */
struct id_set {
    uint8_t (*items)[ROW_ID_BYTES];
    size_t count, capacity; /* CAPACITY is a power of two */
    bool failed;            /* whether memory was short */
};
void id_set_fini(struct id_set *set);
/* Returns whether ID was not there; false without memory, too. */
bool id_set_add(struct id_set *set, struct slice id);

/* --- Sums --------------------------------------------------------------------------------------------------------- */

/* Columns of a sum as they are read; the last ones if names are wanted. */
enum {
    SUM_ID,
    SUM_PROJECT,
    SUM_SERVICE,
    SUM_SPACE,
    SUM_NODES,
    SUM_HEADER,
    SUM_FIRST,
    SUM_LAST,
    SUM_ENTRIES,
    SUM_LEVEL,
    SUM_START,
    SUM_INPUTS,
    SUM_INPUTS_XOR,
    SUM_KINDS,
    SUM_PLATFORM = SUM_KINDS + 3,
    SUM_KEEP,
    SUM_DAY,
};

struct sum_rows_request {
    const struct store_query *query; /* names, and the times that sums of chunks must be in */
    const struct cover *cover;
    struct id_set *seen;
    bool with_names;
    struct coverage_bucket *count; /* counts rows of chunks, as often as they are there; may be NULL */
    row_visit *visit;
    void *context;
};
/* RET_CONTINUES, unless NULL: whether VISIT took all rows. */
enum status sum_rows_each(struct cluster *cluster, int shard, const struct sum_rows_request *request,
                          bool *ret_continues, struct error *error);

/* The stacks of a space as far as they were read. */
struct dictionary_reading {
    struct stack_dictionary dictionary;
    uint64_t next; /* number of the next segment */
    bool is_damaged;
    struct buffer bytes;
};
void dictionary_reading_fini(struct dictionary_reading *reading);
void dictionaries_init(struct kept_dictionaries *kept);
void dictionaries_fini(struct kept_dictionaries *kept);
/* Reads the dictionary of SPACE, which has NODES nodes, from any shard that SERVICE was on. It may lack the last
 * segments: a replica that is behind its twin. */
struct space_place {
    uint64_t project, nodes;
    struct slice service;
    const uint8_t *space;
};
enum status dictionary_read(struct cluster *cluster, const struct space_place *place,
                            struct dictionary_reading *reading, struct error *error);
/* Keeps the dictionary of READING, which is empty afterwards, for later queries. */
void dictionary_keep(struct cluster *cluster, const uint8_t *space, struct dictionary_reading *reading);

/* Makes the roll-ups that are missing. */
enum status cluster_update_rollups(struct store *store, uint64_t now_ns, uint64_t *ret_count, struct error *error);

/* --- Rows that this process makes ----------------------------------------------------------------------------------
 */

/* Rows on their way into the spool. */
struct record {
    struct buffer bytes, row;
    uint16_t keep, day;
    uint64_t project;
};
/* A row in a record: its table, the hash that chooses its shard, its size and bytes. */
struct buffer *record_begin_row(struct record *record);
void record_end_row(struct record *record, enum cluster_table table, struct slice service);

/* Returns the space of SERVICE, which is made if it is not known; NULL without memory. Under the order of the spool. */
struct space *space_take(struct cluster *cluster, const struct record *record, struct slice service);
/* Adds to RECORD what SPACE has from FRAME and NODE on. */
enum status space_add_segment(struct record *record, struct space *space, size_t frame, size_t node,
                              struct error *error);

/* --- The engine's functions --------------------------------------------------------------------------------------- */

enum status cluster_add(struct store *store, const struct store_batch *batch, uint64_t *ret_duplicates,
                        struct error *error);
void cluster_forget_spaces(struct cluster *cluster);
void *shipper_run(void *shipper); /* a thread */

/* Takes the changes of projects and keys that other servers made, and sends those of this one. */
enum status cluster_share_control(struct cluster *cluster, struct error *error);

/* Inserts ROWS of the table "control" at any server: each has the whole table. */
enum status cluster_insert_control(struct cluster *cluster, const struct slice *rows, size_t count,
                                   struct error *error);

/* Calls READ for each shard that may have rows of QUERY. A shard that does not answer is noted in QUERY; if none does,
 * that is the error. */
typedef enum status shard_read(void *context, struct cluster *cluster, int shard, struct error *error);
enum status cluster_each_shard(struct cluster *cluster, const struct store_query *query, shard_read *read,
                               void *context, struct error *error);
/* Appends " WHERE …" with all conditions of QUERY. END: the column that has the end of what a row is about. */
void query_write_conditions(const struct store_query *query, const char *end, struct buffer *sql);
/* Appends " AND …" with those on the service and on what belongs to it. */
void query_write_names(const struct store_query *query, struct buffer *sql);

enum status cluster_each_chunk(struct store *store, const struct store_query *query, store_visit_chunk *visit,
                               void *context, struct error *error);
/* The payloads of chunks in QUERY that no sum has in its range, and whose ids are not in SEEN: a chunk that came twice
 * may have one sum. COVERS: of each shard, or of none. SEEN is empty afterwards. */
enum status cluster_each_unsummed(struct cluster *cluster, const struct store_query *query, struct cover *covers,
                                  struct id_set *seen, store_visit_chunk *visit, void *context, struct error *error);
enum status cluster_each_rollup(struct store *store, const struct store_query *query,
                                const struct store_rollup_visitor *visitor, struct error *error);
enum status cluster_each_span(struct store *store, const struct store_query *query, store_visit_span *visit,
                              void *context, struct error *error);
enum status cluster_each_rejected(struct store *store, const struct store_query *query, store_visit_rejected *visit,
                                  void *context, struct error *error);
enum status cluster_each_outcome(struct store *store, const struct store_query *query, store_visit_outcome *visit,
                                 void *context, struct error *error);
enum status cluster_each_value(struct store *store, const struct store_query *query, enum store_column column,
                               store_visit_value *visit, void *context, struct error *error);
enum status cluster_each_usage(struct store *store, uint64_t project, store_visit_usage *visit, void *context,
                               struct error *error);
enum status cluster_delete(struct store *store, const struct store_query *query, uint64_t *ret_chunks,
                           struct error *error);
enum status cluster_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                           uint64_t *ret_removed, struct error *error);

#endif
