/* Paths of which there is one spelling.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_CLEAN_PATH_H
#define OFFBEAT_BASE_CLEAN_PATH_H

#include "base/buffer.h"

/* Appends PATH without empty and "." parts, and without "x/..": "a//b/../c" is "a/c", "" is ".". Looks at no file. */
void clean_path_append(struct buffer *out, struct slice path);

#endif
