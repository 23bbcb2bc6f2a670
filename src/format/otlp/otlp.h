/* OTLP profiles, opentelemetry.proto.profiles.v1development as opentelemetry-proto 1.10 and 1.11 define it: in protobuf
 * (format_otlp) and JSON (format_otlp_json). The request of the collector's export service has the same fields.
 *
 * Kept: times, threads, labels (attributes), links to spans, every value type, inlined functions, lines, addresses,
 * mappings with build ids, comments, rules, the recorder's metadata. doc/formats/otlp.md says how.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_OTLP_OTLP_H
#define OFFBEAT_FORMAT_OTLP_OTLP_H

#include "base/buffer.h"
#include "base/json_reader.h"
#include "profile/profile.h"

enum {
    OTLP_DEPTH_MAX = 65536,     /* frames of a stack */
    OTLP_LINES_MAX = 65536,     /* functions at one location */
    OTLP_ATTRIBUTES_MAX = 1024, /* attributes of one sample and its resource */
    OTLP_DOCUMENTS_MAX = 65536, /* JSON documents in one file, a line each */
};

/* The labels that hold the link of a sample, in hex. */
#define OTLP_TRACE_LABEL "trace_id"
#define OTLP_SPAN_LABEL "span_id"

bool otlp_detect(struct slice bytes);
/* PROFILE must be initialised and empty; after a failure it is only good for profile_fini. ERROR may be NULL. */
enum status otlp_decode(struct slice bytes, struct profile *profile, struct error *error);
enum status otlp_encode(const struct profile *profile, struct buffer *out, struct error *error);

bool otlp_json_detect(struct slice bytes);
enum status otlp_json_decode(struct slice bytes, struct profile *profile, struct error *error);
enum status otlp_json_encode(const struct profile *profile, struct buffer *out, struct error *error);

/* Takes one object, a ProfilesData, and appends it to OUT in protobuf. Unknown members are passed over; a broken one
 * makes READER fail. */
void otlp_json_take(struct json_reader *reader, struct buffer *out);

#endif
