/* What the decoder of sample format V1 hands to its rules.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_SENTRY_V1_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_SENTRY_V1_PRIVATE_H

#include "format/sentry/sentry_decoder_private.h"

/* Of one transaction, what a rule asks for. */
struct v1_transaction {
    bool is_there, has_name, has_thread, has_nil_id;
    char id[UUID_TEXT_SIZE];
    uint64_t start_ns, end_ns, cpu_start_ms, cpu_end_ms;
};

/* What only the rules for cocoa ask for, as bits of v1_decoder.described. */
enum {
    V1_BUILD_NUMBER = 1 << 0,
    V1_IS_EMULATOR = 1 << 1,
    V1_LOCALE = 1 << 2,
    V1_MANUFACTURER = 1 << 3,
    V1_MODEL = 1 << 4,
};

struct v1_decoder {
    struct chunk_decoder chunk; /* is_relative is set */
    uint64_t start_ns;
    struct slice transactions; /* the list as it is in the input */
    size_t transaction_count;  /* in it */
    bool has_transaction;      /* beside it */
    bool has_version, is_version_1;
    uint64_t version_offset;           /* if has_version */
    struct v1_transaction transaction; /* the object, else the first of the list */
    unsigned described;                /* V1_… */
};

/* BYTES and PROFILE outlive the decoder. */
void v1_decoder_init(struct v1_decoder *decoder, struct slice bytes, struct profile *profile);
void v1_decoder_fini(struct v1_decoder *decoder);
/* Reads the payload to its end. */
void v1_read_payload(struct v1_decoder *decoder);
/* Reads only the members that say what the payload is. */
void v1_read_header(struct v1_decoder *decoder);

#endif
