/* Collapsed stacks: "root;caller;leaf 42" a line.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COLLAPSED_H
#define OFFBEAT_FORMAT_COLLAPSED_H

#include "base/buffer.h"
#include "profile/profile.h"

enum status collapsed_decode(struct slice bytes, struct profile *profile, struct error *error);
/* Writes the default value of each stack, equal stacks summed, sorted by stack. */
enum status collapsed_encode(const struct profile *profile, struct buffer *out, struct error *error);

#endif
