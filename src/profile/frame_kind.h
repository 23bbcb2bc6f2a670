/* The kind of code that a frame runs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_FRAME_KIND_H
#define OFFBEAT_PROFILE_FRAME_KIND_H

#include "profile/profile.h"

/* The file of a mapping, or the package of a function, whose code a JIT compiler wrote; the symbolizer sets it. */
#define JIT_PACKAGE "[jit]"

/* The kind of line LINE of LOCATION, 0 being the innermost. A line before the last one is inlined. Otherwise the kind
 * that the format gave counts; without one, the file, the package and the address decide. */
enum frame_kind frame_kind_of(const struct profile *profile, const struct location *location, uint32_t line);

/* "native", "kernel", "jit", "interpreted", "inlined"; "unknown". */
const char *frame_kind_name(enum frame_kind kind);

#endif
