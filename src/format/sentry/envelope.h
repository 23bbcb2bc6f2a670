/* Sentry's envelopes (requirements ENV-1, ENV-2, V2-7; facts §2.1, §2.2).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_ENVELOPE_H
#define OFFBEAT_FORMAT_SENTRY_ENVELOPE_H

#include "base/buffer.h"
#include "base/slice.h"
#include "base/status.h"
#include "base/uuid.h"

/* Members of an envelope's own header. Each may be missing. */
struct envelope_attributes {
    char event_id[UUID_TEXT_SIZE]; /* "" = none */
    struct slice dsn, sdk_name, sdk_version;
    uint64_t sent_at_ns; /* UTC; 0 = not there */
    struct slice trace;  /* the dynamic sampling context, a JSON object as in the input */
};

/* --- Reading: envelope_open, then envelope_next until it gives false, and envelope_close in every case. ----------- */

struct envelope_reader {
    struct slice bytes;
    struct slice header; /* the envelope's own header, one JSON object */
    struct envelope_attributes attributes;
    size_t position;
    bool is_lenient;
    struct buffer header_texts, item_texts; /* private */
};

/* The slices live as long as the bytes given, but TYPE, PLATFORM and CONTENT_TYPE until the next item is read. */
struct envelope_item {
    struct slice header;  /* JSON object */
    struct slice payload; /* bytes as they were sent */
    struct slice type;    /* profile_chunk_ui as sent */
    struct slice platform, content_type;
    uint64_t item_count; /* items of a container; 0 = no container */
    bool has_meta_length;
    uint64_t meta_length;     /* bytes of JSON at the start of the payload, which a trace follows */
    bool has_further_members; /* the header has others than type, length and platform */
};

/* Whether BYTES, decompressed, look like an envelope: the first line is a JSON object, and an item follows; or
 * nothing follows, and the object has only members of an envelope's header. */
bool envelope_detect(struct slice bytes);

/* STATUS_NOT_THIS_FORMAT if the first line is no JSON object, STATUS_MALFORMED if event_id, dsn or sent_at are not what
 * they must be. An envelope without items is one. */
enum status envelope_open(struct envelope_reader *reader, struct slice bytes, struct error *error);
/* The same for a file on its way to a person: lines may end with "\r\n", and empty lines between items are passed over.
 * Servers reject both. */
enum status envelope_open_lenient(struct envelope_reader *reader, struct slice bytes, struct error *error);
void envelope_close(struct envelope_reader *reader);
/* False at the end (ERROR->status is STATUS_OK) or when the framing is broken (ERROR has the reason). */
bool envelope_next(struct envelope_reader *reader, struct envelope_item *ret_item, struct error *error);

/* profile_chunk, also by the name that some clients give it. */
bool envelope_item_is_chunk(const struct envelope_item *item);
/* A chunk whose payload is JSON and then a Perfetto trace. */
bool envelope_item_is_perfetto(const struct envelope_item *item);

/* --- What a server accepts ---------------------------------------------------------------------------------------- */

enum { ENVELOPE_BYTES_MAX = 200 << 20 }; /* decompressed */

/* STATUS_MALFORMED: the framing is broken. STATUS_TOO_LARGE, for which the server answers 413: the envelope or an item
 * is larger than facts §2.2 allow, or there are more items of a kind than an envelope may have: one event or
 * transaction, one profile or chunk, 100 sessions. */
enum status envelope_check(struct slice bytes, struct error *error);

/* --- Writing: a beginning once, then items. A failure is OUT's. --------------------------------------------------- */

/* Writes the envelope's header, with a new event_id if ATTRIBUTES have none. */
void envelope_begin(struct buffer *out, const struct envelope_attributes *attributes);
/* Begins with the HEADER of another envelope. */
void envelope_begin_with(struct buffer *out, struct slice header);
/* Adds an item with its length. PLATFORM may be NULL (needed for profile_chunk, V2-7). */
void envelope_add_item(struct buffer *out, const char *type, const char *platform, struct slice payload);
/* Adds an item with the HEADER of an item of another envelope, whose length, if it has one, is that of PAYLOAD. */
void envelope_add_item_with(struct buffer *out, struct slice header, struct slice payload);

#endif
