/* A home for profiles: keeps what a server accepted, and finds it again by project, time and metadata.
 *
 * The interface names no database, so that a second one can implement it. All functions may be called from any thread
 * at the same time. Times are nanoseconds since 1970, UTC; those after the year 2262 are stored as that year's.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_STORE_H
#define OFFBEAT_STORE_STORE_H

#include "base/buffer.h"
#include "base/slice.h"
#include "base/status.h"

enum {
    STORE_KEY_SIZE = 33,        /* 32 lowercase hex digits and a NUL */
    STORE_NAME_BYTES_MAX = 200, /* bytes of a service, release, host, …; the server cuts longer ones */
    STORE_VALUES_MAX = 10001,   /* distinct values that one list has */
    STORE_PAYLOAD_BYTES_MAX = 200 << 20,
    STORE_REJECTED_BYTES_MAX = 1 << 20, /* payloads of rejected items that are larger are not kept */
    STORE_WAITING_MAX = 1024,           /* batches that wait for a commit */
};

enum store_kind {
    STORE_CHUNK = 1,   /* Sentry's sample format V2 */
    STORE_PROFILE = 2, /* V1 */
    STORE_FILE = 3,    /* a file of another format */
    STORE_TRACE = 4,   /* an envelope with a chunk whose trace is not read (Android, Perfetto); queries pass over it */
};

/* The sums of a chunk by stack, without times. A frame is any bytes: equal ones are the same
 * frame. Node 0 is the empty stack; any other one is FRAME called by PARENT, whose number is lower. */
struct store_node {
    uint32_t parent, frame;
};
struct store_rollup {
    struct slice header; /* any bytes; only rollups with equal ones are added */
    struct slice labels; /* any bytes; rollups with others are added, too, unless a visitor wants them apart */
    const struct slice *frames;
    const struct store_node *nodes;
    const uint64_t *values; /* VALUE_COUNT values of each node; a node without samples has 0 */
    size_t frame_count, node_count, value_count;
    /* The first RUNNING_COUNT values grow since the start of a process. All chunks with such a header are of one
     * process. If the rollup is visited, VALUES has their increases from chunk to chunk, and the two arrays have those
     * of the first and of the last chunk, with 0 for the other values. */
    size_t running_count;
    const uint64_t *first_values, *last_values;
    uint64_t restart_count;
    uint64_t first_ns, last_ns; /* first start and last end of the chunks, if it is visited */
};

/* Returns whether one of VALUES is not 0. */
static inline bool store_has_values(const uint64_t *values, size_t count)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++) any |= values[i];
    return any != 0;
}

enum {
    STORE_ROLLUP_VALUES_MAX = 8,
    STORE_ROLLUP_NODES_MAX = 1 << 18,
    STORE_ROLLUP_HEADER_MAX = 4096,
    STORE_ROLLUP_LABELS_MAX = 2048
};

/* Empty slices where something is not known. */
struct store_chunk {
    uint64_t project;
    enum store_kind kind;
    struct slice profiler_id, chunk_id; /* together they are unique in the project */
    struct slice service, environment, release, host, platform;
    struct slice kinds;  /* kinds of the values, as the server writes them; no newline */
    struct slice series; /* id of what sends such profiles one after the other; empty: the columns above are it */
    uint64_t start_ns, end_ns, received_ns;
    uint64_t sample_count;
    struct slice payload;              /* bytes as they were sent */
    const struct store_rollup *rollup; /* sums for store_add; NULL: queries decode the payload */
};

struct store_span {
    struct slice trace_id, span_id, name, op;
    struct slice service, environment, release;
    struct slice profiler_id, profile_id, thread_id;
    uint64_t start_ns, end_ns;
    bool is_transaction;
};

struct store_rejected {
    uint64_t received_ns;
    struct slice type, reason, place, found, expected;
    struct slice sdk, header; /* name/version in the envelope; header of the item, JSON */
    struct slice payload;
};

/* Counts of items, added up by project, outcome, category and reason. */
struct store_outcome {
    struct slice outcome, category, reason;
    uint64_t quantity;
};

enum { STORE_BATCH_OUTCOMES_MAX = 64 };

/* The content of one request; stored all or not at all. */
struct store_batch {
    uint64_t project, received_ns;
    const struct store_chunk *chunks;
    size_t chunk_count;
    const struct store_span *spans;
    size_t span_count;
    const struct store_rejected *rejected;
    size_t rejected_count;
    const struct store_outcome *outcomes;
    size_t outcome_count;
};

struct store;

/* Called for each thing that opening or checking a store found wrong. TEXT is one sentence. */
typedef void store_report(void *context, const char *text);

/* Opens the store in the folder PATH, which is created (only its owner may enter it). STATUS_UNSUPPORTED if another
 * process has it open, or it has another schema version. A data file that is damaged is moved aside and reported. */
enum status store_open(const char *path, store_report *report, void *context, struct store **ret_store,
                       struct error *error);
/* Waits until everything that was added is on disk. Accepts NULL. */
void store_close(struct store *store);

/* Returns when BATCH is on disk: one commit serves all batches that wait. A chunk that is in the file of its day of
 * receipt, or in one of the three files that were written before it, is not stored again; *RET_DUPLICATES counts those.
 * STATUS_TOO_LARGE if too many batches wait, STATUS_IO if the disk is full or broken: then nothing of BATCH is stored.
 */
enum status store_add(struct store *store, const struct store_batch *batch, uint64_t *ret_duplicates,
                      struct error *error);

/* --- Asking. The slices live until the function that receives them returns; false ends the walk. ------------------ */

/* Empty slices and zeros choose everything. */
struct store_query {
    uint64_t project;
    uint64_t from_ns, to_ns; /* rows that have some time in [from, to); TO_NS 0: no end */
    struct slice service, environment, release, host, platform, profiler_id, chunk_id;
    struct slice kinds; /* chunks with one of these kinds: each of them ends with a newline */
    struct slice after; /* lower bound of store_each_value, exclusive; no DATA: none */
    bool with_payload;
    bool *is_damaged;         /* set to true if damaged data were left out; may be NULL */
    uint32_t *missing_shards; /* bit N is set if shard N + 1 of a cluster does not answer; NULL: that is a failure */
};

typedef bool store_visit_chunk(void *context, const struct store_chunk *chunk);
enum status store_each_chunk(struct store *store, const struct store_query *query, store_visit_chunk *visit,
                             void *context, struct error *error);

typedef bool store_visit_rollup(void *context, const struct store_rollup *rollup);
/* Visits the same chunks, in any order, but without profiler_id and chunk_id: those that are wholly in the time
 * range are added up, as far as they have a rollup, and VISIT gets the payloads of the others. Rollups of several
 * services, headers and days are separate. CONTINUES is asked from time to time; false ends the walk. */
struct store_rollup_visitor {
    store_visit_rollup *add;
    store_visit_chunk *visit;
    bool (*continues)(void *context);
    void *context;
    bool separates_labels; /* rollups with other labels are separate, and have their labels */
    bool has_increases;    /* chunks belong to the time of their start, and increases between them are needed: where a
                              store    does not have these, the walk fails with STATUS_UNSUPPORTED */
};
enum status store_each_rollup(struct store *store, const struct store_query *query,
                              const struct store_rollup_visitor *visitor, struct error *error);

typedef bool store_visit_span(void *context, const struct store_span *span);
/* Visits transactions and spans by PROJECT, the times, SERVICE, ENVIRONMENT, RELEASE and PROFILER_ID of QUERY. */
enum status store_each_span(struct store *store, const struct store_query *query, store_visit_span *visit,
                            void *context, struct error *error);

typedef bool store_visit_rejected(void *context, const struct store_rejected *rejected);
enum status store_each_rejected(struct store *store, const struct store_query *query, store_visit_rejected *visit,
                                void *context, struct error *error);

typedef bool store_visit_outcome(void *context, const struct store_outcome *outcome);
enum status store_each_outcome(struct store *store, const struct store_query *query, store_visit_outcome *visit,
                               void *context, struct error *error);

enum store_column {
    STORE_SERVICE,
    STORE_ENVIRONMENT,
    STORE_RELEASE,
    STORE_HOST,
    STORE_PLATFORM,
    STORE_PROFILER, /* a session */
    STORE_KINDS,    /* may have no counts and times */
    STORE_LABELS,   /* labels of rollups; has no counts and times, and the time of the query chooses nothing */
    STORE_COLUMNS
};

struct store_value {
    struct slice value;
    uint64_t first_ns, last_ns, chunk_count, sample_count;
};

/* The distinct values of COLUMN among the chunks of QUERY, in the order of their bytes; at most STORE_VALUES_MAX. */
typedef bool store_visit_value(void *context, const struct store_value *value);
enum status store_each_value(struct store *store, const struct store_query *query, enum store_column column,
                             store_visit_value *visit, void *context, struct error *error);

/* --- Projects and keys -------------------------------------------------------------------------------------------- */

#define STORE_FOREVER UINT64_MAX

struct store_project {
    uint64_t id;
    char name[64];
    char key[STORE_KEY_SIZE];    /* oldest key of a DSN; "": all were revoked */
    uint64_t keep_ns, bytes_max; /* limits that store_limit_project set */
};

/* Makes a project with a new key. */
enum status store_add_project(struct store *store, const char *name, struct store_project *ret_project,
                              struct error *error);
typedef bool store_visit_project(void *context, const struct store_project *project);
enum status store_each_project(struct store *store, store_visit_project *visit, void *context, struct error *error);
/* Each gives STATUS_NOT_FOUND if there is no such project. */
enum status store_rename_project(struct store *store, uint64_t project, const char *name, struct error *error);
/* Deletes PROJECT with its keys, data and debug files. */
enum status store_delete_project(struct store *store, uint64_t project, uint64_t *ret_chunks, struct error *error);

/* Adds the projects and keys of SOURCE that TARGET lacks. STATUS_UNSUPPORTED if TARGET has another project with the
 * number of one. */
enum status store_copy_projects(struct store *source, struct store *target, struct error *error);

/* The use of a key. Those that do not write are called tokens. The store keeps the numbers. */
enum store_role {
    STORE_ROLE_READ = 0,    /* everything of its project */
    STORE_ROLE_METRICS = 1, /* the figures of the server, no profiles */
    STORE_ROLE_UPLOAD = 2,  /* adds debug files (store/debug_files.h) and reads nothing */
    STORE_ROLE_ADMIN = 3,   /* all that tokens do, and administration */
    STORE_ROLE_WRITE = 4,   /* the key of a DSN */
    STORE_ROLES
};
struct store_key {
    uint64_t id, project; /* project 0: all of them */
    enum store_role role;
    char name[64], secret[STORE_KEY_SIZE]; /* SECRET: "" unless the key writes: it is not known */
    uint64_t created_ns;
};
/* Makes a key with the project, role and name of KEY. Its secret cannot be found out later unless it writes. */
enum status store_add_key(struct store *store, const struct store_key *key, char ret_secret[STORE_KEY_SIZE],
                          struct error *error);
typedef bool store_visit_key(void *context, const struct store_key *key);
enum status store_each_key(struct store *store, store_visit_key *visit, void *context, struct error *error);
/* Each gives STATUS_NOT_FOUND if there is no such key. */
enum status store_rename_key(struct store *store, uint64_t key, const char *name, struct error *error);
enum status store_revoke_key(struct store *store, uint64_t key, struct error *error);
/* Replaces the secret of the key ID; that of before is valid no more. */
enum status store_rotate_key(struct store *store, uint64_t id, struct store_key *ret_key,
                             char ret_secret[STORE_KEY_SIZE], struct error *error);

enum store_access { STORE_NO_ACCESS, STORE_OTHER_PROJECT, STORE_ACCESS };
/* Whether KEY may write to PROJECT, or TOKEN do there what ROLE may. */
enum store_access store_may_write(struct store *store, struct slice key, uint64_t project);
enum store_access store_may_read(struct store *store, struct slice token, enum store_role role, uint64_t project);
/* The project of which KEY may write, 0 if there is none. */
uint64_t store_project_of_key(struct store *store, struct slice key);
/* Writes the token of ROLE for all projects that each start of a server prints. Makes a new one if its file is not
 * there or it was revoked. */
enum status store_start_token(struct store *store, enum store_role role, char ret_token[STORE_KEY_SIZE],
                              struct error *error);

struct store_service_usage {
    uint64_t project;
    char service[STORE_NAME_BYTES_MAX + 1];
    uint64_t chunk_count, sample_count, bytes, first_ns, last_ns; /* BYTES of payloads as they are stored */
};
typedef bool store_visit_usage(void *context, const struct store_service_usage *usage);
/* Visits the services of PROJECT (0: of all), at most STORE_VALUES_MAX of them. */
enum status store_each_usage(struct store *store, uint64_t project, store_visit_usage *visit, void *context,
                             struct error *error);

/* Deletes the chunks that QUERY selects by project, service, environment, release, host and time, with their spans; of
 * a whole project also its outcomes and rejected items. The files become smaller. */
enum status store_delete(struct store *store, const struct store_query *query, uint64_t *ret_chunks,
                         struct error *error);

/* --- Keeping ------------------------------------------------------------------------------------------------------ */

/* Removes the days that ended before NOW_NS - AGE_NS, then the oldest files until the files have at most BYTES_MAX (0:
 * no limit; the last day stays), and rejected items that are older than a day. A project with limits
 * (store_limit_project) keeps its data as they say. RET_REMOVED counts removed days, also where only one project's data
 * was. */
enum status store_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                         uint64_t *ret_removed, struct error *error);

/* Sets how long PROJECT's data is kept (0: as store_expire says), and in how many bytes of payloads as they are
 * stored (0: no limit; the last day stays). STATUS_NOT_FOUND if there is no such project. */
enum status store_limit_project(struct store *store, uint64_t project, uint64_t age_ns, uint64_t bytes_max,
                                struct error *error);

/* Returns how long PROJECT's data is kept: AGE_NS unless it has a time of its own. 0: forever. */
uint64_t store_age_of_project(struct store *store, uint64_t project, uint64_t age_ns);

/* Adds up the rollups of 10 minutes, hours and days that have ended and that nothing was added to since they were added
 * up. Waiting batches are stored in between. RET_COUNT counts the rollups made. */
enum status store_update_rollups(struct store *store, uint64_t now_ns, uint64_t *ret_count, struct error *error);

/* Makes store_add, store_expire and store_update_rollups return early from now on, also where they wait for another
 * machine. */
void store_hurry(struct store *store);

/* Copies the store in the folder PATH to the new folder TARGET while a server has it open: everything that was on disk
 * before the call. TARGET may exist if it is empty, and is not there after a failure; TARGET.part then may be. */
enum status store_backup(const char *path, const char *target, store_report *report, void *context,
                         struct error *error);

struct store_usage {
    uint64_t bytes, days, commits, batches, waiting;
    uint64_t free_bytes;                   /* room on the disk */
    bool is_in_cluster;                    /* the members above are of the folder of this server */
    uint64_t spool_bytes, spool_oldest_ns; /* bytes that wait for the cluster; UTC time of the oldest, 0: none */
};
void store_usage(struct store *store, struct store_usage *ret_usage);
/* Keeps the data files within BYTES_MAX (0: no limit) while batches are added: a day has several files then, and the
 * oldest ones are removed. */
void store_limit_disk(struct store *store, uint64_t bytes_max);
/* Returns whether the disk has room for more. */
bool store_has_room(struct store *store);
/* Removes the oldest days of the store in the folder PATH, which nobody has open, until its files have at most
 * BYTES_MAX; the last day stays. Needs no room on the disk. */
enum status store_trim(const char *path, uint64_t bytes_max, uint64_t *ret_removed, struct error *error);

/* Reads everything in the folder PATH, which no server may have open. A damaged file is moved aside if REPAIRS, after
 * its readable chunks were copied to a new one. RET_DAMAGED counts damaged files. */
enum status store_check(const char *path, bool repairs, store_report *report, void *context, uint64_t *ret_damaged,
                        struct error *error);

#endif
