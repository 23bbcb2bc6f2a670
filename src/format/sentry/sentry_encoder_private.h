/* Parts that the encoders of V1 and V2 share; each writes a key and its value.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_SENTRY_ENCODER_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_SENTRY_ENCODER_PRIVATE_H

#include "base/json_writer.h"
#include "format/sentry/sentry_v2_private.h"

typedef void chunk_write_metadata(struct json_writer *writer, const struct chunk_plan *plan);

/* Plans the chunk, writes it (WRITE_METADATA writes the part in which the versions differ) and validates it. Appends it
 * to OUT only if a server accepts it. RET_RESULT is the result, also if the chunk was too large to be written. PLAN is
 * {0} except is_v1 and start_ns; its memory is freed. */
enum status chunk_encode(struct chunk_plan *plan, const struct profile *profile,
                         const struct sentry_v2_options *options, chunk_write_metadata *write_metadata,
                         struct buffer *out, struct rules_result *ret_result, struct error *error);

void chunk_write_member(struct json_writer *writer, const struct profile *profile, const char *key,
                        struct string_id value); /* nothing where VALUE is "" */
/* The members of the object ATTRIBUTES, beside others. */
void chunk_write_attributes(struct json_writer *writer, const struct profile *profile, struct string_id attributes);
void chunk_write_uuid(struct json_writer *writer, const char *key,
                      struct slice id); /* ID if it is one, else a new one */
/* A string of the digits of NUMBER: a double does not hold 64 bits. */
void chunk_write_decimal(struct json_writer *writer, const char *key, uint64_t number);
void chunk_write_client_sdk(struct json_writer *writer, const struct profile *profile);

#endif
