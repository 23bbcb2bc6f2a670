/* UUIDs as Sentry writes them: 32 lowercase hex digits, no hyphens.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_UUID_H
#define OFFBEAT_BASE_UUID_H

#include "base/slice.h"

enum { UUID_TEXT_SIZE = 33 };

/* Writes a new random UUID (version 4) and a NUL. False if the system has no random bytes. */
bool uuid_new(char ret_text[UUID_TEXT_SIZE]);

/* Reads 32 hex digits in any case, with or without the four hyphens, and writes them as above. False, with RET_TEXT
 * unchanged, if TEXT is not that. */
bool uuid_parse(struct slice text, char ret_text[UUID_TEXT_SIZE]);

/* Whether PLAIN, as uuid_parse writes it, is a random UUID (version 4). */
bool uuid_is_random(const char *plain);

#endif
