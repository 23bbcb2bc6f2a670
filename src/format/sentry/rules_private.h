/* From what a decoder noted to a result.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_RULES_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_RULES_PRIVATE_H

#include "format/sentry/sentry_decoder_private.h"

/* Each rejects, and returns false. */
bool rules_reject_note(struct rules_result *result, struct slice payload, const struct note *note,
                       enum reject_reason reason);
/* For the reason for which DECODER could not read PAYLOAD, which is valid JSON, to its end. */
bool rules_reject_failure(struct rules_result *result, struct slice payload, const struct chunk_decoder *decoder);
/* The same for any PAYLOAD: JSON may be broken there, or later. */
bool rules_reject_first_failure(struct rules_result *result, struct slice payload, const struct chunk_decoder *decoder);
/* An index of COUNT items is FOUND at PLACE. */
bool rules_reject_index(struct rules_result *result, enum reject_reason reason, size_t count, uint32_t found,
                        const char *place);
/* True if PAYLOAD is valid JSON; else the result is rejected. */
bool rules_payload_is_json(struct rules_result *result, struct slice payload);

/* Whether PLATFORM is that of native code. */
bool rules_platform_is_native(struct slice platform);

#endif
