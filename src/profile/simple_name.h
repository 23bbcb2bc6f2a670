/* Function names as the expressions of drop_frames and prune_from see them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_SIMPLE_NAME_H
#define OFFBEAT_PROFILE_SIMPLE_NAME_H

#include "base/slice.h"

/* NAME without the dot that some systems put ahead of it, and without parameters; brackets that are part of a name
 * stay: "(anonymous namespace)::f", "operator()". A part of NAME. */
struct slice simple_name(struct slice name);

#endif
