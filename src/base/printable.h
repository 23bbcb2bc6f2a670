/* Text that came out of a file or from the system, made safe for a terminal.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_PRINTABLE_H
#define OFFBEAT_BASE_PRINTABLE_H

#include "base/buffer.h"
#include "base/slice.h"

/* Returns how many bytes at the front of TEXT, which is not empty, are one character that a terminal shows; 0 if the
 * first byte begins none: a control character (C0, DEL, C1: some terminals take U+009B for ESC [), one that turns the
 * direction of the text around it (U+202E and the like) or breaks the line (U+2028, U+2029), or a byte that is not
 * UTF-8. RET_SKIP: how many bytes to pass over then. */
size_t printable_size(struct slice text, size_t *ret_skip);

/* Returns whether all of TEXT is printable. */
bool printable_is(struct slice text);

/* Appends TEXT with an escape for each character that is not printable and not in KEPT: "\x1b", "\u202e". */
void printable_append(struct buffer *out, struct slice text, const char *kept);

#endif
