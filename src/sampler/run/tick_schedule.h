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

/* Around the scans of a tick: each says for how many periods nothing new is to be seen of its thread, 0: not at all. */
void schedule_begin_scans(struct tick_schedule *schedule);
void schedule_note_room(struct tick_schedule *schedule, uint64_t periods);
void schedule_end_scans(struct tick_schedule *schedule, bool all_live);

#endif
