/* Sentry's envelopes (requirements ENV-1, ENV-2, V2-7; facts §2.1).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_ENVELOPE_H
#define OFFBEAT_FORMAT_ENVELOPE_H

#include "base/buffer.h"
#include "base/slice.h"
#include "base/status.h"

/* --- Reading: envelope_open, then envelope_next until it gives false. All slices point into the bytes given. ------ */

struct envelope_reader {
    struct slice bytes;
    struct slice header; /* the envelope's own header, one JSON object */
    size_t position;
};

struct envelope_item {
    struct slice header;  /* JSON object */
    struct slice payload; /* as sent */
    struct slice type;    /* view of header.type, profile_chunk_ui as sent; empty where it is written with escapes */
};

/* STATUS_NOT_THIS_FORMAT if the first line is no JSON object or no other one begins behind it. BYTES must be
 * decompressed. */
enum status envelope_open(struct envelope_reader *reader, struct slice bytes, struct error *error);
/* False at the end (ERROR->status is STATUS_OK) or when the framing is broken (ERROR tells). */
bool envelope_next(struct envelope_reader *reader, struct envelope_item *ret_item, struct error *error);

/* --- Writing: envelope_begin once, then items. Always with length. ------------------------------------------------ */

/* SDK_NAME and SDK_VERSION may be NULL. SENT_AT_NS: UTC; 0 leaves it out. */
void envelope_begin(struct buffer *out, const char *sdk_name, const char *sdk_version, uint64_t sent_at_ns);
/* PLATFORM may be NULL (needed for profile_chunk, V2-7). */
void envelope_add_item(struct buffer *out, const char *type, const char *platform, struct slice payload);

#endif
