/* Envelopes as files that hold profiles: chunks, profiles bound to a transaction, and what else came along.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_ENVELOPE_PROFILE_H
#define OFFBEAT_FORMAT_SENTRY_ENVELOPE_PROFILE_H

#include "base/buffer.h"
#include "base/uuid.h"
#include "profile/profile.h"

/* All chunks and profiles of the envelope in BYTES become one profile, in the order of time. The header and every other
 * item are carried (profile.carried). STATUS_UNSUPPORTED if there is no profile in it. See format_decode for the rest.
 */
enum status envelope_profile_decode(struct slice bytes, struct profile *profile, struct error *error);

/* Appends an envelope around CHUNK, the payload of PROFILE's chunk. With the header and the items that PROFILE carries,
 * if IS_FIRST of the chunks that are cut from it, and if they came with a chunk: the items of a V1 envelope belong to
 * the transaction there. */
void envelope_profile_wrap(const struct profile *profile, struct slice chunk, bool is_first, struct buffer *out);

/* One chunk, by sentry_v2_encode. */
enum status envelope_profile_encode(const struct profile *profile, struct buffer *out, struct error *error);

/* V1: the profile in one envelope with its transaction (V1-5), which is the one that PROFILE carries, or else made of
 * what it knows of it; and with what else it carries. */
enum status envelope_profile_encode_v1(const struct profile *profile, struct buffer *out, struct error *error);

/* The id of the transaction in the envelope BYTES: its event_id, else that of the envelope's header. "" if the envelope
 * has no transaction, or no id of it. */
void envelope_transaction_id(struct slice bytes, char ret_id[UUID_TEXT_SIZE]);

/* Whether a server takes the envelope that OUT holds from FIRST on: its frame, the sizes and numbers of its items, and
 * each profile by both sets of rules. To be asked of every envelope before it is given out. */
enum status envelope_profile_check(const struct profile *profile, const struct buffer *out, size_t first,
                                   struct error *error);

#endif
