/* What a frame without a name is called.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_PLACE_NAME_H
#define OFFBEAT_ANALYZE_PLACE_NAME_H

#include "profile/profile.h"

/* "libx.so.1+0x1234" (the address as the file has it), "0x1234" without a mapping, "" without an address. Adds the
 * string to PROFILE. */
struct string_id place_name(struct profile *profile, const struct location *location);

#endif
