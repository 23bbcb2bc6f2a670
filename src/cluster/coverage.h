/* Finds out which roll-ups are right, and which rows a query reads therefore.
 *
 * A roll-up is the sums of a service in 10 minutes, an hour or a day, in as many rows as there are groups of equal
 * names. Each of its rows has the count and the XOR of the ids that it was made of; it counts only while the rows of
 * the chunks have the same, and while all of its rows are there. So anybody may make roll-ups, at any time, and a chunk
 * that comes late makes them void by itself. What was found out about a day is kept for a minute, of days before
 * yesterday for ten: another server's late chunk is missing for so long, one of this server is not.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_COVERAGE_H
#define OFFBEAT_CLUSTER_COVERAGE_H

#include "base/array.h"
#include "base/index_table.h"
#include "cluster/rows.h"
#include "store/rollup_values.h"
#include "store/store.h"

#include <pthread.h>

struct cluster;

enum {
    BUCKETS_PER_DAY = 144,
    COVERAGE_DAYS_MAX = 512,
    COVERAGE_NOTES_MAX = 1024,
    COVERAGE_NOTE_SECONDS = 20, /* a chunk that takes longer from its note to the cluster makes all be forgotten */
};

/* Ids of the chunks of one service in 10 minutes. */
struct coverage_bucket {
    uint32_t service, number; /* indices: of the day's services, of the 10 minutes in the day */
    uint64_t inputs, inputs_xor;
    bool is_void; /* whether it has a chunk without a sum: roll-ups are not used */
};

/* A roll-up that is right. */
struct coverage_set {
    uint32_t service;
    int level;
    uint64_t start_ns, inputs, inputs_xor, rows, first_ns, last_ns;
};

struct coverage_service {
    char name[STORE_NAME_BYTES_MAX + 1];
    uint8_t id[ROW_ID_BYTES]; /* depends on the name alone */
};

/* The chunks of a project that start on a day, on one shard, as far as they are known. */
struct coverage_day {
    uint64_t project, start_ns;
    int shard;
    uint64_t until_ns;     /* later chunks were not looked at */
    uint64_t checked_ns;   /* monotonic */
    unsigned users;        /* readers; under the lock of the coverage */
    bool is_kept;          /* whether it is in the list of the coverage */
    bool is_doubtful;      /* whether it is to be looked at again */
    bool is_too_large;     /* more than fits here: roll-ups are not used */
    uint32_t last_service; /* index of the one that was found last */
    ARRAY_OF(struct coverage_service) services;
    ARRAY_OF(struct coverage_bucket) buckets; /* sorted by service and number */
    ARRAY_OF(struct coverage_set) sets;       /* sorted by service, level and start */
};

/* A late chunk of this server. */
struct coverage_note {
    uint64_t project, bucket_ns, noted_ns; /* NOTED_NS: monotonic; 0: not used */
    uint8_t service[ROW_ID_BYTES];
};

/* The longest chunk of a project on a shard, for those that begin before the range of a query. */
struct coverage_longest {
    uint64_t project, longest_ns, checked_ns, day;
    int shard;
};

struct coverage {
    pthread_mutex_t lock; /* lock of all below */
    struct coverage_day *days[COVERAGE_DAYS_MAX];
    size_t day_count;
    uint64_t forgotten; /* number of times that all days were forgotten */
    struct coverage_note notes[COVERAGE_NOTES_MAX];
    uint64_t newest_note_ns, lost_notes_ns; /* monotonic; LOST: of the newest one that had no room */
    ARRAY_OF(struct coverage_longest) longest;
};

void coverage_init(struct coverage *coverage);
void coverage_fini(struct coverage *coverage);

/* Notes that a chunk of this server was stored or will be: roll-ups do not have it yet. */
void coverage_note(struct coverage *coverage, const struct store_chunk *chunk);
/* Forgets what is known: data were deleted. */
void coverage_forget(struct coverage *coverage);

/* Finds out what is known of the day that has TIME_NS, unless that was done lately. Ends with coverage_release. */
enum status coverage_take(struct cluster *cluster, int shard, uint64_t project, uint64_t time_ns,
                          struct coverage_day **ret_day, struct error *error);
/* Notes that DAY is to be looked at again. */
void coverage_doubt(struct coverage *coverage, struct coverage_day *day);
void coverage_release(struct coverage *coverage, struct coverage_day *day);

/* Returns whether chunks of this server may be missing in DAY that are in no note. Under the lock. */
bool coverage_has_lost(const struct coverage *coverage, const struct coverage_day *day);

/* --- Rows to read ------------------------------------------------------------------------------------------------- */

struct cover_range {
    uint64_t start_ns, end_ns;
};
struct cover_set {
    uint8_t service[ROW_ID_BYTES];
    int level;
    uint64_t start_ns, inputs, inputs_xor, rows;
};

/* Time ranges of each level, which may have rows that are not wanted: cover_takes knows. {0} is an empty one. */
struct cover {
    ARRAY_OF(struct cover_range) ranges[LEVELS];
    INDEXED_ARRAY_OF(struct cover_set) sets;
    uint64_t longest_ns; /* length of the longest chunk; UINT64_MAX: not known */
    bool failed;         /* whether memory was short */
};

void cover_fini(struct cover *cover);
/* Chooses what to read of SHARD for the sums of QUERY: the longest roll-ups that are wholly in its range. */
enum status cover_query(struct cluster *cluster, int shard, const struct store_query *query, struct cover *cover,
                        struct error *error);
/* Chooses what a roll-up of SERVICE in DAY is made of. */
void cover_inputs(struct coverage *coverage, const struct coverage_day *day, uint32_t service, int level,
                  uint64_t start_ns, struct cover *cover);
/* Returns the sum of the buckets of a roll-up; INPUTS 0: there is none, or no roll-up may be made of them. */
struct coverage_bucket coverage_sum(struct coverage *coverage, const struct coverage_day *day, uint32_t service,
                                    int level, uint64_t start_ns);
const struct coverage_set *coverage_find_set(const struct coverage_day *day, uint32_t service, int level,
                                             uint64_t start_ns);
/* Returns whether COVER has the row of LEVEL and SERVICE (an id as in coverage_service); INPUTS and INPUTS_XOR are
 * those of the row. */
bool cover_takes(const struct cover *cover, const uint8_t *service, int level, uint64_t start_ns, uint64_t inputs,
                 uint64_t inputs_xor);
/* Returns whether there are ranges of the level FIRST or above. */
bool cover_has_levels(const struct cover *cover, int first);
/* Appends " AND (level = … AND … OR …)": the ranges from the level FIRST on; those of chunks are wholly in QUERY. */
void cover_write_levels(const struct cover *cover, int first, const struct store_query *query, struct buffer *sql);
/* Appends " AND (…)": chunks next to the ends of QUERY, which may be partly in its range, and those that meet CONDITION
 * where no roll-up was chosen. */
void cover_write_chunks(const struct cover *cover, const struct store_query *query, const char *condition,
                        struct buffer *sql);

#endif
