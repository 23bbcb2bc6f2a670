/* The same stack as libunwind sees it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_PEER_H
#define OFFBEAT_TEST_PEER_H

#include "tracee.h"

struct peer;

/* NULL if libunwind cannot look at the process. It keeps TRACEE, and reads registers and memory through it. */
struct peer *peer_new(struct tracee *tracee);
void peer_free(struct peer *peer);

/* Addresses as unwind_walk gives them. */
void peer_walk(struct peer *peer, struct stack *ret_stack);

/* Forgets the modules. Called after modules were loaded or unloaded. */
void peer_forget(struct peer *peer);

#endif
