/* The name of a frame that has none.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_PLACE_NAME_H
#define OFFBEAT_ANALYZE_PLACE_NAME_H

#include "analyze/names.h"

/* "libx.so.1+0x1234" (the address as the file has it), "0x1234" without a mapping, "" without an address. LOCATION is
 * of the profile of NAMES. */
struct name_id place_name(struct names *names, const struct location *location);

#endif
