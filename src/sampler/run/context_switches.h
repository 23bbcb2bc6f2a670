/* Waits for a processor, without a timer. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_CONTEXT_SWITCHES_H
#define OFFBEAT_SAMPLER_CONTEXT_SWITCHES_H

#include "sampler/run/sampler_state.h"

/* Counts THREAD's waits since the last call. Returns false if they are unknown, or there are none. */
bool context_switches_count_waits(struct target_thread *thread, struct ended_waits *ret);
/* Counts the last waits of THREAD, which has ended and reported its switches. */
bool context_switches_count_last_waits(const struct target_thread *thread, struct ended_waits *ret);

#endif
