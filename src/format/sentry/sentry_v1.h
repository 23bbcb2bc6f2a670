/* Sentry's Sample Format V1: a profile bound to a transaction (requirements FMT-1…8, V1-1…5; facts §1.4).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_SENTRY_V1_H
#define OFFBEAT_FORMAT_SENTRY_SENTRY_V1_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Whether BYTES are a JSON object whose members say that it is of version 1, whatever else is wrong with it. */
bool sentry_v1_detect(struct slice bytes);

/* One profile, not an envelope around it. See format_decode for the rest of the contract. As liberal as
 * sentry_v2_decode. The profile's own id becomes chunk_id, the first of several transactions the one. Times are those
 * since the profile's timestamp, added to it; without a timestamp they begin in 1970. Value types as sentry_v2_decode
 * makes them; idle samples stay idle (profile_fill_idle). STATUS_UNSUPPORTED for other versions of the sample format.
 */
enum status sentry_v1_decode(struct slice bytes, struct profile *profile, struct error *error);

/* Appends PROFILE. As sentry_v2_encode, but that times are whole nanoseconds since profile->time_ns, and that nothing
 * is cut out. Missing ids are assigned; an unknown device or operating system is "unknown". A profile without a
 * transaction is rejected (V1-4). The payload is validated before anything is appended, as sentry_v2_encode does. */
enum status sentry_v1_encode(const struct profile *profile, struct buffer *out, struct error *error);

#endif
