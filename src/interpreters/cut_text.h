/* Texts of programs as names of places, which have a size. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_CUT_TEXT_H
#define OFFBEAT_INTERPRETERS_CUT_TEXT_H

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

/* Appends BYTES, the beginning of a string of LENGTH bytes, to TEXT, with question marks in place of invalid UTF-8.
 * What has no room in TEXT_SIZE bytes, or is not in BYTES, becomes "…". */
void text_append_cut(char *text, size_t text_size, struct slice bytes, uint64_t length);

#endif
