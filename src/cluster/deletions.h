/* Deletions that other servers are told of: what they have in their spools and was received before is not sent.
 * They are rows of the table "control".  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_DELETIONS_H
#define OFFBEAT_CLUSTER_DELETIONS_H

#include "base/array.h"
#include "cluster/rows.h"
#include "store/store.h"

#include <pthread.h>

struct cluster;

enum { DELETIONS_MAX = 4096, DELETION_NAMES = 4 };

struct deletion {
    uint64_t before_ns; /* end of the time of receipt */
    uint64_t project, from_ns, to_ns;
    char names[DELETION_NAMES][STORE_NAME_BYTES_MAX + 1]; /* service, environment, release, host; "": all */
};

struct deletions {
    pthread_mutex_t lock; /* lock of all below */
    ARRAY_OF(struct deletion) items;
    uint64_t newest_ns; /* BEFORE_NS of the newest one */
};

void deletions_init(struct deletions *deletions);
void deletions_fini(struct deletions *deletions);

/* Tells all servers, before the data are deleted, that QUERY was deleted at BEFORE_NS. */
enum status deletions_tell(struct cluster *cluster, const struct store_query *query, uint64_t before_ns,
                           struct error *error);
/* Finds out what was deleted. */
enum status deletions_take(struct cluster *cluster, struct error *error);
/* Returns whether a row of TABLE that was received at RECEIVED_NS was deleted. BYTES are the row in the spool. */
bool deletions_has(struct deletions *deletions, enum cluster_table table, struct slice bytes, uint64_t received_ns);
/* Returns the time of receipt in a row of TABLE; 0: it has none. */
uint64_t row_received_ns(enum cluster_table table, struct slice bytes);

#endif
