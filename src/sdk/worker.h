/* The thread that has the sampler and makes chunks of what was recorded. The caller has LOCK_PROFILER, unless a
 * function says otherwise.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_WORKER_H
#define OFFBEAT_SDK_WORKER_H

#include <stdbool.h>

/* Starts the worker if there is none, and wakes it up. */
void worker_wake(void);
/* Also one that has stepped aside. */
bool worker_exists(void);
/* One that has not stepped aside. */
bool worker_is_running(void);
/* Starts one that continues where the last one stepped aside; true if none did. */
bool worker_come_back(void);
/* In a forked child: the worker is the parent's. Takes no lock. */
void worker_forget(void);

#endif
