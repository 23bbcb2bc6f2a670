/* The envelope of a chunk's payload, without the model: for liboffbeat, too.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_CHUNK_ENVELOPE_H
#define OFFBEAT_FORMAT_SENTRY_CHUNK_ENVELOPE_H

#include "base/buffer.h"

enum { SENTRY_PLATFORM_SIZE = 64 };

/* Copies the platform that PAYLOAD, a chunk, names to RET_PLATFORM; "" if it names none or a longer one. */
void sentry_payload_platform(struct slice payload, char ret_platform[SENTRY_PLATFORM_SIZE]);

/* Appends the envelope of the chunk PAYLOAD to OUT. Its item names the payload's platform (V2-7). */
void chunk_envelope_write(struct slice payload, struct buffer *out);

#endif
