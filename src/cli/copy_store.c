/* offbeat store copy: from a folder of files into a cluster, or back.  SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700
#include "cli/copy_store.h"

#include "cli/message.h"
#include "serve/store_copy.h"

#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { SPOOL_BYTES_MAX = 256 << 20 };

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    (void)remove(path);
    return 0;
}

static enum exit_status tell(const struct store_copy_counts *counts)
{
    message("store: copied %" PRIu64 " of %" PRIu64 " chunks, and %" PRIu64 " spans; the others were there",
            counts->copied, counts->chunks, counts->spans);
    if (counts->different == 0) return EXIT_DONE;
    message("store: %" PRIu64 " chunks cannot be read, or are not in the copy as they are in the source: data that was "
            "deleted in the target, or is older than it keeps, stays away",
            counts->different);
    return EXIT_NO;
}

static enum exit_status copy_between(struct store *files, struct store *cluster, bool is_from_cluster,
                                     struct error *error)
{
    struct store_copy_counts counts;
    enum status status =
        store_copy(is_from_cluster ? cluster : files, is_from_cluster ? files : cluster, &counts, error);
    if (status == STATUS_OK && !is_from_cluster) status = cluster_send_control(cluster, error);
    return status == STATUS_OK ? tell(&counts) : EXIT_FAILED;
}

enum exit_status copy_store(const char *folder, const struct cluster_options *cluster, bool is_from_cluster)
{
    enum { DESCRIPTORS = 8 };
    char path[PATH_MAX];
    struct store *files = NULL, *in_cluster = NULL;
    struct error error = {0};
    struct cluster_options options = *cluster;
    options.spool_bytes_max = SPOOL_BYTES_MAX;
    options.forgets_taken = true;
    enum exit_status status = EXIT_FAILED;
    (void)snprintf(path, sizeof(path), "%s/control.db", folder);
    if (!is_from_cluster && access(path, R_OK) != 0) {
        message("store: %s has no data of offbeat serve", folder);
        return EXIT_FAILED;
    }
    (void)snprintf(path, sizeof(path), "%s/cluster-copy", folder);
    if (store_open(folder, cluster->report, NULL, &files, &error) == STATUS_OK &&
        cluster_open(path, &options, &in_cluster, &error) == STATUS_OK)
        status = copy_between(files, in_cluster, is_from_cluster, &error);
    if (error.message[0]) message("store: %s", error.message);
    store_close(in_cluster);
    store_close(files);
    if (status != EXIT_FAILED) (void)nftw(path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    return status;
}
