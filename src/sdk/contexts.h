/* The contexts of transactions: what they run on.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_CONTEXTS_H
#define OFFBEAT_SDK_CONTEXTS_H

#include "base/buffer.h"

/* Appends the members os, device, runtime and app of the contexts, JSON, for the program of RELEASE. Opens no file. */
void contexts_write(const char *release, struct buffer *out);

#endif
