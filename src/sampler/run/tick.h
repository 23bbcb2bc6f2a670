/* The work for each thread at a tick. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_TICK_H
#define OFFBEAT_SAMPLER_TICK_H

#include <stdbool.h>

struct sampler;

/* Scans all threads. Returns false if one has ended. */
bool tick_all_threads(struct sampler *sampler);

/* Scans the threads that tick_all_threads did not see in this tick. */
void tick_new_threads(struct sampler *sampler);

/* Performs the last tick of a recording, which writes times but takes no stacks. */
void tick_last(struct sampler *sampler);

#endif
