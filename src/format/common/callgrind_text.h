/* The words of callgrind's format, for all who write it: names are numbered, addresses relative.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_CALLGRIND_TEXT_H
#define OFFBEAT_FORMAT_COMMON_CALLGRIND_TEXT_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Objects, files and functions have separate numbers. */
enum callgrind_kind { CALLGRIND_OBJECT, CALLGRIND_FILE, CALLGRIND_FUNCTION, CALLGRIND_KINDS };

/* clang-format off */
struct callgrind_text {
    struct buffer *out;
    struct profile texts; /* a table of strings; nothing else of it is used */
    struct { uint32_t *items; size_t capacity; uint32_t given; } numbers[CALLGRIND_KINDS]; /* number of each text; 0: none yet */
};
/* clang-format on */

void callgrind_text_init(struct callgrind_text *text, struct buffer *out);
/* OUT has failed if memory was short. */
void callgrind_text_fini(struct callgrind_text *text);

/* Appends a line: "KEY=(1) NAME" for a new name, "KEY=(1)" from then on, "KEY=" for an empty one. */
void callgrind_append_name(struct callgrind_text *text, const char *key, enum callgrind_kind kind, struct slice name);

/* Appends ADDRESS, relative to *BEFORE where that is shorter; BEFORE may be NULL. */
void callgrind_append_address(struct buffer *out, const uint64_t *before, uint64_t address);

#endif
