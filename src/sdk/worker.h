/* The thread that has the sampler and makes chunks of what was recorded. The caller has LOCK_PROFILER, unless a
 * function says otherwise.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_WORKER_H
#define OFFBEAT_SDK_WORKER_H

#include <stdbool.h>

/* Starts the worker if there is none, and wakes it up. */
void worker_wake(void);
/* True if there is a worker, even one that has stepped aside. */
bool worker_exists(void);
/* True if there is a worker that has not stepped aside. */
bool worker_is_running(void);
/* The same, without the lock. */
bool worker_is_there(void);
/* Starts a worker that continues where the last one stepped aside; true if none did. */
bool worker_come_back(void);
/* Resets the state in a forked child: the worker is the parent's. Takes no lock. */
void worker_forget(void);

#endif
