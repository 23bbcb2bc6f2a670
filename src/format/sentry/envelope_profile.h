/* Envelopes as files that hold profiles: chunks, profiles bound to a transaction, and what else came along.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_ENVELOPE_PROFILE_H
#define OFFBEAT_FORMAT_SENTRY_ENVELOPE_PROFILE_H

#include "base/buffer.h"
#include "base/uuid.h"
#include "profile/profile.h"

/* All chunks and profiles of the envelope in BYTES become one profile, in the order of time. The header and every other
 * item are kept (sentry_extension.passthrough_items). STATUS_UNSUPPORTED if there is no profile in it. See
 * format_decode for the rest.
 */
enum status envelope_profile_decode(struct slice bytes, struct profile *profile, struct error *error);

/* Appends an envelope around CHUNK, the payload of PROFILE's chunk. If IS_FIRST of the chunks of PROFILE, also writes
 * the header and the passthrough items of PROFILE, unless they are from a V1 envelope, where they belong to the
 * transaction. */
void envelope_profile_wrap(const struct profile *profile, struct slice chunk, bool is_first, struct buffer *out);

/* One chunk, by sentry_v2_encode. */
enum status envelope_profile_encode(const struct profile *profile, struct buffer *out, struct error *error);

/* V1: the profile in one envelope with its transaction (V1-5) and the passthrough items. If none of these is the
 * transaction, it is written from what PROFILE knows about it. */
enum status envelope_profile_encode_v1(const struct profile *profile, struct buffer *out, struct error *error);

/* Whether an item of the envelope BYTES is a transaction. */
bool envelope_has_transaction(struct slice bytes);

/* The id of the transaction in the envelope BYTES: its event_id, else that of the envelope's header. "" if the envelope
 * has no transaction, or no id of it. */
void envelope_transaction_id(struct slice bytes, char ret_id[UUID_TEXT_SIZE]);

/* Whether a server accepts the frame of the envelope that OUT holds from FIRST on: the sizes and numbers of its items.
 * The encoders have validated the profiles in it. */
enum status envelope_profile_check(const struct buffer *out, size_t first, struct error *error);

#endif
