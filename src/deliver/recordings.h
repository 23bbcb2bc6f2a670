/* From recordings to payloads that a server accepts.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DELIVER_RECORDINGS_H
#define OFFBEAT_DELIVER_RECORDINGS_H

#include "base/buffer.h"
#include "base/status.h"
#include "deliver/chunks.h"
#include "profile/profile.h"

enum {
    CHUNK_RECORDINGS_MAX = 64,
    CHUNK_MEASUREMENTS_MAX = 10000,
    CHUNK_MEASUREMENT_NAME_SIZE = 65,
    CHUNK_RECORDING_BYTES_MAX = 1 << 30,
    CHUNK_PAYLOAD_BYTES_MAX = 64 << 20,   /* more than a server accepts */
    CHUNK_PAYLOADS_BYTES_MAX = 512 << 20, /* payloads of one request */
};

/* A value that the program measured. */
struct chunk_measurement {
    char name[CHUNK_MEASUREMENT_NAME_SIZE];
    char unit[16];    /* unit of FMT-7 */
    uint64_t time_ns; /* UTC */
    double value;
};

/* The transaction of a V1 profile. */
struct chunk_transaction {
    const char *event_id, *profile_id, *name, *trace_id, *thread_id;
    uint64_t start_ns, end_ns; /* UTC */
};

/* Strings may be NULL: not known. */
struct chunk_request {
    const char *recordings[CHUNK_RECORDINGS_MAX]; /* files, of one process, in the order of time */
    size_t recording_count;
    const char *release, *environment, *dist, *platform;
    const char *in_app_include, *in_app_exclude; /* prefixes separated by commas */
    bool repeats_idle;                           /* writes a sample per tick also for waiting threads */
    bool has_names;                              /* symbolize the frames */
    bool asks;                                   /* the program's before_send is asked about each payload */
    bool is_v1;                                  /* recordings are of use for transactions only */
    const struct chunk_measurement *measurements;
    size_t measurement_count;
    struct chunk_transaction transaction; /* EVENT_ID NULL: chunks of V2 */
};

/* Symbolizes the frames of PROFILE as far as it can. */
typedef void (*deliver_namer)(struct profile *profile);

/* Gives RECEIVE the payloads of REQUEST: chunks by deliver_chunks, or one profile of V1. NAME may be NULL. Returns what
 * reading and decoding give, and what deliver_chunks does; STATUS_MALFORMED also if no chunk has enough samples. */
enum status deliver_recordings(const struct chunk_request *request, deliver_namer name, deliver_sink receive,
                               void *context, struct error *error);

/* A sink. Appends PAYLOAD, which contains no line end, and a line end to CONTEXT, a struct buffer. */
bool deliver_append_line(void *context, struct slice payload);

#endif
