/* Properties and operations of one format. Each format defines them beside its code; FORMATS lists them all
 * (doc/adding-a-format.md). SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_FORMAT_OPS_H
#define OFFBEAT_FORMAT_COMMON_FORMAT_OPS_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Parts of a profile that a format can store; bits of struct format's KEEPS. `convert` names the others that a profile
 * has. */
enum format_keeps {
    KEEPS_TIMES = 1 << 0,
    KEEPS_THREADS = 1 << 1,
    KEEPS_PRIORITIES = 1 << 2,
    KEEPS_LABELS = 1 << 3,
    KEEPS_VALUES = 1 << 4, /* more than the default one */
    KEEPS_INLINED = 1 << 5,
    KEEPS_LINES = 1 << 6,
    KEEPS_ADDRESSES = 1 << 7,
    KEEPS_IMAGES = 1 << 8,
    KEEPS_DEBUG_IDS = 1 << 9,
    KEEPS_ATTRIBUTES = 1 << 10, /* module, package and in_app of functions */
    KEEPS_MEASUREMENTS = 1 << 11,
    KEEPS_METADATA = 1 << 12, /* release, environment and ids */
    KEEPS_TRANSACTION = 1 << 13,
    KEEPS_ITEMS = 1 << 14, /* the header and the other items of an envelope */
    KEEPS_COMMENTS = 1 << 15,
    KEEPS_RULES = 1 << 16, /* drop_frames and keep_frames */
    KEEPS_RECORDER_METADATA = 1 << 17,
    KEEPS_DEVICE = 1 << 18,
    KEEPS_MEMBERS = 1 << 19, /* members of Sentry's objects that the model has no place for */
    KEEPS_MEMBERS_OF_SAMPLES = 1 << 20,
    KEEPS_MEMBERS_OF_PROFILE = 1 << 21,
    KEEPS_DOC_URL = 1 << 22,
    KEEPS_ITEM_MEMBERS = 1 << 23, /* members of the profile's item header; no format keeps them */
    KEEPS_MARKERS = 1 << 24,
    KEEPS_ANY_UNIT = 1 << 25,  /* values that are no time */
    KEEPS_NEGATIVES = 1 << 26, /* negative values */
    KEEPS_ZEROS = 1 << 27,     /* samples whose values are 0 */
    KEEPS_ALL_NUMBERS = KEEPS_ANY_UNIT | KEEPS_NEGATIVES | KEEPS_ZEROS,

    KEEPS_SENTRY_V2 = KEEPS_TIMES | KEEPS_THREADS | KEEPS_PRIORITIES | KEEPS_INLINED | KEEPS_LINES | KEEPS_ADDRESSES |
                      KEEPS_IMAGES | KEEPS_DEBUG_IDS | KEEPS_ATTRIBUTES | KEEPS_MEASUREMENTS | KEEPS_METADATA |
                      KEEPS_RECORDER_METADATA | KEEPS_MEMBERS | KEEPS_MEMBERS_OF_SAMPLES | KEEPS_MEMBERS_OF_PROFILE,
    KEEPS_SENTRY_V1 = KEEPS_SENTRY_V2 | KEEPS_TRANSACTION | KEEPS_DEVICE,
};

enum { FORMAT_SUFFIXES_MAX = 3 };

struct format {
    const char *name;                          /* name on the command line: "pprof" */
    const char *suffixes[FORMAT_SUFFIXES_MAX]; /* endings of file names that choose the format, each also with .gz */
    const char *written_suffix; /* suffix of a file that the user did not name; NULL: the first of SUFFIXES */

    bool (*detect)(struct slice bytes); /* takes decompressed bytes; NULL: no file is detected as this format */
    enum status (*decode)(struct slice bytes, struct profile *profile, struct error *error);
    /* The same for bytes that nobody else needs, which are freed while they are read. May be NULL. */
    enum status (*decode_buffer)(struct buffer *bytes, struct profile *profile, struct error *error);
    enum status (*encode)(const struct profile *profile, struct buffer *out, struct error *error); /* NULL: read only */

    unsigned keeps;          /* KEEPS_… */
    int sentry_version;      /* version of Sentry's sample format: 1 or 2; 0 = not a format of Sentry */
    unsigned samples_a_byte; /* maximum of samples per byte of a small file; 0 = one */
    bool needs_timestamps;   /* samples without timestamps are put in sequence: the format has a time axis */
    bool needs_full_names;   /* functions are distinguished by their names alone (FMT-4, FMT-11) */
    bool is_gzip;            /* encode() compresses */
};

/* In the order of detection: a format that accepts fewer files comes first. The first line of a recording, an envelope
 * or another JSON document does not end as a collapsed stack does. Little is known of JSON and protobuf. */
#define FORMATS(X)                                                                                                     \
    X(recording)     /* files that liboffbeat writes while it samples; read only */                                    \
    X(perf_data)     /* read only */                                                                                   \
    X(jfr)           /* read only */                                                                                   \
    X(otlp)          /* before text: it begins as an empty line does */                                                \
    X(android_trace) /* read only */                                                                                   \
    X(pstats)        /* read only */                                                                                   \
    X(massif)        /* read only */                                                                                   \
    X(bpftrace)      /* read only */                                                                                   \
    X(dtrace)        /* read only */                                                                                   \
    X(macos_sample)  /* read only */                                                                                   \
    X(pprof_legacy)  /* formats of pprof from before profile.proto; read only */                                       \
    X(perf_script)   /* read only */                                                                                   \
    X(callgrind)     /* its first line may look as a collapsed stack does */                                           \
    X(collapsed)                                                                                                       \
    X(otlp_json)                                                                                                       \
    X(dhat)      /* read only */                                                                                       \
    X(stackprof) /* read only */                                                                                       \
    X(v8_heap)   /* read only */                                                                                       \
    X(v8_log)    /* read only */                                                                                       \
    X(envelope)  /* before others in JSON: the members of its header are anybody's */                                  \
    X(speedscope)                                                                                                      \
    X(chrome_trace) /* before the other traces, which hold CPU profiles */                                             \
    X(chrome)       /* read only */                                                                                    \
    X(firefox)                                                                                                         \
    X(envelope_v1) /* written only: a V1 profile with its transaction; read as an envelope */                          \
    X(sentry_v1)                                                                                                       \
    X(sentry_v2)                                                                                                       \
    X(pprof)

#define FORMAT_DECLARE(name) extern const struct format format_##name;
FORMATS(FORMAT_DECLARE)
#undef FORMAT_DECLARE

#endif
