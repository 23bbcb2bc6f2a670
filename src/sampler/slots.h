/* The slots through which signalled threads hand over their stacks, from the sampler thread's side. One set a process.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SLOTS_H
#define OFFBEAT_SAMPLER_SLOTS_H

#include "sampler/signal_handler.h"

/* Makes them, all free; in a forked child, anew. False without memory. */
bool slots_prepare(void);
void slots_forget(void); /* the parent's, in a forked child */

/* Installs the signal handler; on a thread of libc's. False if the signal cannot be had. */
bool slots_install_handler(void);

/* A slot that asks for a walk with MODULES, or NULL if all are in use. */
struct slot *slot_take(const struct unwind_modules *modules);

/* The answer was read, or is no longer wanted. */
void slot_give_back(struct slot *slot);

/* Sends signal NUMBER to thread TID, to answer into SLOT. False if the kernel refuses. */
bool slot_send(const struct slot *slot, pid_t tid, int number);

enum slot_phase slot_phase_of(const struct slot *slot);
bool slots_in_use(void);

#endif
