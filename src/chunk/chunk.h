/* Recordings into payloads that a receiver takes.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CHUNK_CHUNK_H
#define OFFBEAT_CHUNK_CHUNK_H

#include "base/buffer.h"
#include "base/status.h"
#include "profile/profile.h"

enum {
    CHUNK_RECORDINGS_MAX = 64,
    CHUNK_MEASUREMENTS_MAX = 10000,
    CHUNK_MEASUREMENT_NAME_SIZE = 65,
    CHUNK_RECORDING_BYTES_MAX = 1 << 30,
    CHUNK_PAYLOAD_BYTES_MAX = 64 << 20,   /* more than a receiver takes */
    CHUNK_PAYLOADS_BYTES_MAX = 512 << 20, /* of one request */
};

/* What the program measured by itself. */
struct chunk_measurement {
    char name[CHUNK_MEASUREMENT_NAME_SIZE];
    char unit[16];    /* as FMT-7 has them */
    uint64_t time_ns; /* UTC */
    double value;
};

/* The transaction that a V1 profile is of. */
struct chunk_transaction {
    const char *event_id, *profile_id, *name, *trace_id, *thread_id;
    uint64_t start_ns, end_ns; /* UTC */
};

/* Texts may be NULL for those that are not known. */
struct chunk_request {
    const char *recordings[CHUNK_RECORDINGS_MAX]; /* files, one after the other in time, of one process */
    size_t recording_count;
    const char *release, *environment, *dist, *platform;
    const char *in_app_include, *in_app_exclude; /* prefixes with ',' between them */
    bool repeats_idle;                           /* write a sample each tick also of threads that wait */
    bool has_names;                              /* name the frames */
    const struct chunk_measurement *measurements;
    size_t measurement_count;
    struct chunk_transaction transaction; /* EVENT_ID NULL: V2, a chunk */
};

/* Gives names to the frames of PROFILE, as far as it can. */
typedef void (*chunk_namer)(struct profile *profile);
/* Takes one payload; false to give up. */
typedef bool (*chunk_receiver)(void *context, struct slice payload);

/* Gives RECEIVE the payload; several where one would be larger than a receiver takes. What is given has been judged by
 * the rules of the real receiver. STATUS_MALFORMED with the reason's name first in the message where it would refuse
 * ("profiling_not_enough_samples: …"), else what reading and decoding give. NAME may be NULL. */
enum status chunk_make(const struct chunk_request *request, chunk_namer name, chunk_receiver receive, void *context,
                       struct error *error);

/* A receiver that gathers payloads in CONTEXT, a struct buffer, a line each: there are no line ends in them. */
bool chunk_append_line(void *context, struct slice payload);

#endif
