/* Kinds of files that offbeat does not read, and what helps.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_FOREIGN_FORMATS_H
#define OFFBEAT_FORMAT_FOREIGN_FORMATS_H

#include "base/slice.h"

enum { FOREIGN_FORMAT_BYTES_MAX = 4096 }; /* looked at */

/* Returns what BYTES are and which command makes a profile of them, or why there is none; NULL if they are unknown.
 * FILE in the text stands for the name of the file. Constant text. */
const char *foreign_format_hint(struct slice bytes);

/* Returns whether BYTES are such a format although a reader of ours may take them for its own: JSON with members that
 * several programs use, and text whose lines end with numbers. */
bool foreign_format_is_certain(struct slice bytes);

#endif
