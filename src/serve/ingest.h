/* Profiles that a request stores together: what the routes that receive them share (ingest_file.c, ingest.c).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_INGEST_H
#define OFFBEAT_SERVE_INGEST_H

#include "base/uuid.h"
#include "query/kinds.h"
#include "serve/serve_private.h"
#include "query/profile_rollup.h"
#include "query/series.h"

/* Returns at most STORE_NAME_BYTES_MAX bytes of NAME. */
struct slice ingest_cut_name(struct slice name);
/* "redis-server" of the release "redis-server@7.0.15": releases are PACKAGE@VERSION. */
struct slice ingest_service_of_release(struct slice release);
/* {"id": ID}; without an id {}. */
void ingest_answer_id(struct request *request, struct slice id);

/* A chunk for the store, and the memory of what was computed for it. {0} is a valid empty one. */
struct described_chunk {
    struct store_chunk chunk;
    struct profile_rollup rollup;
    struct buffer kinds;
};

/* The source that a chunk was decoded from. */
struct chunk_source {
    enum store_kind kind;
    struct slice payload;
    const struct kind_hints *hints; /* NULL: none */
};

/* Fills DESCRIBED for PROFILE, which was decoded from SOURCE; both must outlive it. */
void ingest_describe(const struct request *request, const struct profile *profile, const struct chunk_source *source,
                     struct described_chunk *described);
/* A time that is not stored: a chunk that starts more than a day ahead, or ends before the retention. */
struct misdating {
    const char *reason;
    char found[64], expected[64];
};
bool ingest_is_misdated(const struct request *request, const struct store_chunk *chunk,
                        struct misdating *ret_misdating);
/* Gives the chunk, whose columns are set, its sums by stack. */
void ingest_add_up(struct described_chunk *described, const struct profile *profile);
void described_chunk_fini(struct described_chunk *described);

/* False: answered. */
bool ingest_store(struct request *request, const struct store_batch *batch);

/* The description of a profile in a request; empty slices and zeros: the profile itself says it. */
struct sent_profile {
    struct slice payload;
    struct slice service, environment, release, host, platform, id;
    struct slice series;            /* id of the process or labels that profiles of one series share */
    const struct kind_hints *hints; /* NULL: none */
    uint64_t start_ns, end_ns;
};

enum { SERIES_TEXT_SIZE = 17 }; /* 16 hexadecimal digits, and a zero byte */

/* An uploaded profile, ready to be stored. It refers to the bytes of the request, which must outlive it. */
struct ingest_file {
    struct profile profile;
    struct described_chunk described;
    bool is_misdated; /* the file has a time that is not stored, and is listed as rejected */
    char id[UUID_TEXT_SIZE];
    char series[SERIES_TEXT_SIZE];
};

/* Decodes an uploaded file into PROFILE. Rejects a file of which a part cannot be read: its sender has the whole. */
enum status ingest_decode(struct slice bytes, struct profile *profile, struct error *error);

/* FILE is to be finished in every case. A profile without samples is not stored. STATUS_UNSUPPORTED, and FILE is listed
 * as rejected, if it is misdated. */
enum status ingest_file_init(struct ingest_file *file, struct request *request, const struct sent_profile *sent,
                             struct error *error);
void ingest_file_fini(struct ingest_file *file);
/* Stores FILES in one batch. False: answered. */
bool ingest_files_store(struct request *request, const struct ingest_file *files, size_t count);

#endif
