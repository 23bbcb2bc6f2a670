/* What the encoders of V1 and V2 share: the parts that both have, each a key and its value.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_SENTRY_ENCODER_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_SENTRY_ENCODER_PRIVATE_H

#include "base/json_writer.h"
#include "format/sentry/sentry_v2_private.h"

typedef void chunk_write(struct chunk_plan *plan, struct buffer *out);

/* Plans, which checks, and then has WRITE write into a buffer of its own, so that nothing is appended to OUT (NULL: is
 * only checked) unless the chunk is whole and acceptable. PLAN is {0}, save for is_v1 and start_ns; it is finished. */
enum status chunk_encode(struct chunk_plan *plan, const struct profile *profile,
                         const struct sentry_v2_options *options, chunk_write *write, struct buffer *out,
                         struct error *error);

void chunk_write_member(struct json_writer *writer, const struct profile *profile, const char *key,
                        struct string_id value); /* nothing where VALUE is "" */
/* The members of the object ATTRIBUTES, beside others. */
void chunk_write_attributes(struct json_writer *writer, const struct profile *profile, struct string_id attributes);
void chunk_write_uuid(struct json_writer *writer, const char *key,
                      struct slice id); /* ID if it is one, else a new one */
void chunk_write_client_sdk(struct json_writer *writer, const struct profile *profile);
void chunk_write_debug_meta(struct json_writer *writer, struct chunk_plan *plan);
void chunk_write_measurements(struct json_writer *writer, const struct chunk_plan *plan);
void chunk_write_profile(struct json_writer *writer, const struct chunk_plan *plan);
/* What receivers pass over, at the end: our own, and the attributes of the whole. */
void chunk_write_rest(struct json_writer *writer, const struct chunk_plan *plan);

#endif
