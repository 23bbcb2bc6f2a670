/* The store's data in a ClickHouse cluster: the engine behind `offbeat serve --store clickhouse://…`.
 *
 * Any number of servers may use one cluster. Each has a folder of its own, for what the cluster has not taken yet.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_CLUSTER_H
#define OFFBEAT_CLUSTER_CLUSTER_H

#include "store/store.h"

/* The texts must live as long as the store. */
struct cluster_options {
    const char *address;      /* clickhouse://HOST:PORT,HOST:PORT/DATABASE; clickhouses:// is with TLS */
    const char *login_path;   /* file with two lines, user and password; NULL: the user "default" without one */
    const char *authority;    /* PEM file of the authority of the replicas' certificates; NULL: the system's */
    uint64_t spool_bytes_max; /* the most that waits for the cluster */
    bool waits_for_cluster;   /* store_add returns when the cluster has the batch, and not when the folder has it */
    bool forgets_taken;   /* whether files are not forced to the disk, and removed when the cluster has taken them, not
                             15 minutes later: a copy is repeated after a failure */
    store_report *report; /* one sentence about what goes wrong */
    void *report_context;
};

/* Returns whether ADDRESS names a cluster. */
bool cluster_is_address(const char *address);

/* Opens the store of the cluster with FOLDER for keys and for what waits. It takes batches also while the cluster is
 * away, or has other tables. */
enum status cluster_open(const char *folder, const struct cluster_options *options, struct store **ret_store,
                         struct error *error);

/* Sends changes of projects and keys that the cluster does not have yet. */
enum status cluster_send_control(struct store *store, struct error *error);

/* Makes the tables that are missing on each replica. May be repeated. Reports what it did. */
enum status cluster_create(const struct cluster_options *options, struct error *error);
/* Compares the tables of each replica with what is needed, and reports differences, foreign tables and parts that were
 * set aside. RET_PROBLEMS counts what must be mended. */
enum status cluster_check(const struct cluster_options *options, uint64_t *ret_problems, struct error *error);

/* Deletes the tables of each replica, and the database if nothing else is in it. May be repeated. RET_PROBLEMS counts
 * the replicas where that failed. */
enum status cluster_drop(const struct cluster_options *options, uint64_t *ret_problems, struct error *error);

#endif
