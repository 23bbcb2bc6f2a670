/* All sources, for themselves and for run/source_list.c, which alone knows them by name. SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_SAMPLER_SOURCES_H
#define OFFBEAT_SAMPLER_SOURCES_H

#include "sampler/source/shared_timer.h"

extern const struct source perf_source;      /* stacks that the kernel copies at a timer's ticks (perf_timer.h) */
extern const struct source cpu_clock_source; /* stacks that a thread hands over at ticks of its CPU clock */
extern const struct source stop_source;      /* stacks that the kernel copies where a thread stops */
extern const struct source remote_source;    /* stacks of blocked threads, read from outside */
extern const struct source signal_source;    /* stacks that a thread hands over when it is sent a signal */

#endif
