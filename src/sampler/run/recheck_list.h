/* Threads to check again a little later in the open tick: they were awake, but usually sleep, or may wait for a
 * processor. Then either they are blocked and can be read, or they have kept running and get a signal.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RECHECK_LIST_H
#define OFFBEAT_SAMPLER_RECHECK_LIST_H

#include <stdbool.h>

struct sampler;
struct target_thread;

void recheck_list_clear(void);
bool recheck_list_has_room(void);

/* Adds THREAD; MAY_WAIT: to find out whether it waits for a processor. A late tick adds none. */
void recheck_list_add(struct sampler *sampler, struct target_thread *thread, bool may_wait);

/* Checks the threads of the recheck list, until the sampler itself had to wait for a processor: threads can have slept
 * and woken up meanwhile. */
void recheck_list_run(struct sampler *sampler);

#endif
