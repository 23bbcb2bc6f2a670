/* The name of a location whose function is not known.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_FRAME_NAME_H
#define OFFBEAT_FORMAT_COMMON_FRAME_NAME_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Appends "[libc.so.6]", the file that holds LOCATION, or else its address, or else "[unknown]". */
void frame_name_unnamed(const struct profile *profile, const struct location *location, struct buffer *out);

/* A function's name for people, or else the linker's. */
struct string_id frame_name_of_function(const struct function *function);

#endif
