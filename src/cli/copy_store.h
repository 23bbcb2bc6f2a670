/* SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_COPY_STORE_H
#define OFFBEAT_CLI_COPY_STORE_H

#include "cli/options.h"
#include "cluster/cluster.h"

/* Copies the store in FOLDER to the cluster, or that of the cluster to FOLDER. What waits for the cluster is in a
 * folder in FOLDER. */
enum exit_status copy_store(const char *folder, const struct cluster_options *cluster, bool is_from_cluster);

#endif
