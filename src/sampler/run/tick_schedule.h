/* When ticks come. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_TICK_SCHEDULE_H
#define OFFBEAT_SAMPLER_TICK_SCHEDULE_H

#include "sampler/run/sampler_state.h"

void schedule_first_tick(struct sampler *sampler);

/* Notes that a tick begins at NOW_NS, possibly later than it was due. */
void schedule_note_delay(struct sampler *sampler, uint64_t now_ns);

/* Places the tick that follows one of COST_NS of CPU time. It also stands for the periods that are over. */
void schedule_next_tick(struct sampler *sampler, uint64_t cost_ns);

/* Counts the periods without a tick that have passed by NOW_NS; a recording can end before all of them. */
void schedule_count_periods(struct sampler *sampler, uint64_t now_ns);

#endif
