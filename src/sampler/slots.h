/* The slots through which signalled threads hand over their stacks, from the sampler thread's side. One set a process.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SLOTS_H
#define OFFBEAT_SAMPLER_SLOTS_H

#include "sampler/signal_handler.h"

/* Makes them, all free; in a forked child, again. False without memory. */
bool slots_prepare(void);
void slots_forget(void); /* the parent's, in a forked child */

/* Installs the signal handler; on a thread of libc's. False if no signal is available. */
bool slots_install_handler(void);

/* A slot that asks THREAD for a walk with MODULES, or NULL if all are in use. */
struct slot *slot_take(pid_t thread, const struct unwind_modules *modules, enum slot_reading reading);

/* The answer was read, or is no longer wanted. */
void slot_give_back(struct slot *slot);

/* Sends signal NUMBER to SLOT's thread. False if the kernel denies it. */
bool slot_send(const struct slot *slot, int number);

enum slot_phase slot_phase_of(const struct slot *slot);
bool slots_in_use(void);

#endif
