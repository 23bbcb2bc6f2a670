/* Build id → Sentry's debug id (facts §3.5).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BINARY_DEBUG_ID_H
#define OFFBEAT_BINARY_DEBUG_ID_H

#include "base/slice.h"

enum { DEBUG_ID_TEXT_SIZE = 37 };

/* BUILD_ID_HEX: an even number of hex digits, at least 2. Writes a hyphenated lowercase uuid and a NUL. False if
 * BUILD_ID_HEX is not that. */
bool debug_id_from_build_id(struct slice build_id_hex, char ret_text[DEBUG_ID_TEXT_SIZE]);

enum { BUILD_ID_START_SIZE = 33 };

/* The other way round: the first 32 hex digits of the build id, which may have been longer, and a NUL. False if
 * DEBUG_ID is no uuid, with or without hyphens, or is all zeros. */
bool debug_id_to_build_id(struct slice debug_id, char ret_text[BUILD_ID_START_SIZE]);

#endif
