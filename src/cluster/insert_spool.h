/* Rows on the way to the cluster, in files of the folder "inserts": what is there survives this process, and is sent
 * again with the same bytes until the cluster has it.
 *
 * A file has records, each with its size and checksum; a record that was not written to its end was not acknowledged.
 * One thread writes, and one fsync serves all records that wait. All functions may be called from any thread.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_INSERT_SPOOL_H
#define OFFBEAT_CLUSTER_INSERT_SPOOL_H

#include "base/buffer.h"
#include "base/status.h"

enum {
    SPOOL_FILE_BYTES_MAX = 8 << 20, /* a file that has more gets no further record */
    SPOOL_RECORD_BYTES_MAX = 1 << 29,
    SPOOL_TAKEN_SECONDS = 900, /* a file is kept so long after the cluster has it: a replica may lose rows */
};

struct insert_spool;

struct insert_spool_usage {
    uint64_t bytes, files; /* bytes and number of files that the cluster has not taken */
    uint64_t oldest_ns;    /* UTC when the first of them was begun; 0: there is none */
};

/* Opens the folder "inserts" in FOLDER, with what an earlier process left. BYTES_MAX: the most that waits. */
enum status insert_spool_open(const char *folder, uint64_t bytes_max, struct insert_spool **ret_spool,
                              struct error *error);
/* Writes the records that wait, accepts no more, and ends each insert_spool_next. */
void insert_spool_stop(struct insert_spool *spool);
void insert_spool_close(struct insert_spool *spool);

/* Locks the order of records, for a caller whose records depend on each other. *RET_LOST: records since the last call
 * were not written. */
void insert_spool_begin(struct insert_spool *spool, bool *ret_lost);
/* Lets records be on the disk when the system writes them: for who adds all of them again after a failure. To be called
 * before the first record. */
void insert_spool_be_lazy(struct insert_spool *spool);
/* Adds RECORD and unlocks; returns when RECORD is on the disk, with the number of its file. STATUS_TOO_LARGE if the
 * spool is full, STATUS_IO if the disk is, or if a record was lost since insert_spool_begin. */
enum status insert_spool_add(struct insert_spool *spool, struct slice record, uint64_t *ret_file, struct error *error);
/* Unlocks without a record. */
void insert_spool_abandon(struct insert_spool *spool);

/* Returns the number of the first finished file that SHARD (a bit) has not taken, and waits for it. 0: the spool was
 * stopped. */
uint64_t insert_spool_next(struct insert_spool *spool, uint32_t shard);
typedef bool insert_spool_visit(void *context, struct slice record);
/* Visits the records of FILE. A damaged end is reported as STATUS_MALFORMED after the records before it. */
enum status insert_spool_each_record(struct insert_spool *spool, uint64_t file, struct buffer *content,
                                     insert_spool_visit *visit, void *context, struct error *error);
/* Notes that SHARD has its rows of FILE by the placement PLACEMENT. What shards took by another placement they take
 * again: a row might be in the part of none of them. */
void insert_spool_mark(struct insert_spool *spool, uint64_t file, uint32_t shard, uint32_t all_shards,
                       uint64_t placement);
/* Waits until all shards have FILE; false after TIMEOUT_NS or insert_spool_hurry. */
bool insert_spool_wait(struct insert_spool *spool, uint64_t file, uint64_t timeout_ns);
/* Makes insert_spool_wait return at once from now on. */
void insert_spool_hurry(struct insert_spool *spool);
/* Returns when FILE was begun (UTC), or written last by an earlier process; 0 if it is not there. */
uint64_t insert_spool_begun_ns(struct insert_spool *spool, uint64_t file);
/* Returns the number of the last file that an earlier process left, or 0. */
uint64_t insert_spool_left(const struct insert_spool *spool);
/* Finishes the file that is being written, so that it is sent. Returns the number of the last file, or 0. */
uint64_t insert_spool_flush(struct insert_spool *spool);
/* Removes the files that all shards have had for AGE_NS: they are not sent again after a restart. */
void insert_spool_expire(struct insert_spool *spool, uint64_t age_ns);
void insert_spool_usage(struct insert_spool *spool, struct insert_spool_usage *ret_usage);

#endif
