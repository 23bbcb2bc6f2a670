/* A profile as V2 chunks that a server accepts.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DELIVER_CHUNKS_H
#define OFFBEAT_DELIVER_CHUNKS_H

#include "base/slice.h"
#include "format/sentry/rules.h"
#include "profile/profile.h"

enum {
    DELIVER_CHUNK_SECONDS = 60,
    DELIVER_CHUNKS_MAX = 10000, /* chunks of one profile: a week */
};

struct deliver_options {
    bool tries_one_chunk; /* tries to send all in one chunk, even if it is somewhat longer than 60 s */
    bool thins_idle;      /* same member of sentry_v2_options */
    bool may_thin_idle;   /* thins a chunk that is too large before it splits it */
    bool wraps;           /* hands out an envelope around each chunk */
    bool carries_items;   /* the first of these envelopes has the passthrough items of the profile */
    size_t chunks_before; /* chunks of other profiles in the same place */
    size_t chunks_max;    /* maximum of CHUNKS_BEFORE and the chunks of this profile; 0 = none */
};

struct deliver_summary {
    size_t chunk_count;         /* handed out */
    size_t encoding_count;      /* CHUNK_COUNT, and one for each chunk that was too large and encoded again */
    uint64_t samples_left_out;  /* samples that no server accepts */
    struct rules_result reject; /* reason of the first rejection */
};

/* Takes BYTES, a chunk or an envelope; false to give up. */
typedef bool (*deliver_sink)(void *context, struct slice bytes);

/* Splits PROFILE, which has timestamps and a profiler id, into chunks of 60 s or less, and gives each to RECEIVE in the
 * order of time. Each chunk is encoded once and validated once; only a chunk that is too large is encoded again, in
 * parts. A part with too few samples becomes the end of the chunk before it or, if that chunk would be too long, is
 * left out. Chunks of several have new ids.
 *
 * Failure: STATUS_MALFORMED with the name of a reject reason first in the message, STATUS_TOO_LARGE for more chunks
 * than OPTIONS or DELIVER_CHUNKS_MAX allow, STATUS_IO if RECEIVE gave up, STATUS_NO_MEMORY. RECEIVE may have taken
 * chunks before. SUMMARY counts on: begin with {0}. */
enum status deliver_chunks(const struct profile *profile, const struct deliver_options *options, deliver_sink receive,
                           void *context, struct deliver_summary *summary, struct error *error);

#endif
