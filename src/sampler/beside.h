/* Asking a thread from the processor that it runs on.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_BESIDE_H
#define OFFBEAT_SAMPLER_BESIDE_H

#include "sampler/threads.h"

/* The processors that the sampler thread may use. */
struct beside {
    uint64_t allowed[128]; /* room for 8192 processors */
    long size;             /* of ALLOWED that is filled; 0: the sampler stayed where it was */
};

/* Moves the sampler to the processor of THREAD, and waits there for PAUSE_NS, which is drawn (chance_pause_ns). True if
 * THREAD was running when that ended; it is then stopped until the sampler sleeps or leaves. Call beside_leave in any
 * case. */
bool beside_stop(struct beside *beside, const struct watched_thread *thread, uint64_t pause_ns);
void beside_leave(const struct beside *beside);

#endif
