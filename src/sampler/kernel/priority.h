/* Priorities of threads. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PRIORITY_H
#define OFFBEAT_SAMPLER_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Asks for a processor at once when the calling thread wakes up: a sampler that wakes up late, when a processor falls
 * idle, sees threads asleep more often than they are. With nice -20, if that is allowed and the process has the right.
 */
void thread_wake_promptly(void);
void thread_allow_urgency(bool may_be_urgent); /* called on the program's thread, before the sampler thread starts */

/* Returns the priority of TID, 0: of the calling thread, if it is a real-time thread, else 0. */
uint32_t thread_real_time_priority(pid_t tid);

/* Makes TID, the sampler thread (0: the calling thread), a real-time thread that precedes those of PRIORITY, if it may
 * be urgent and has the right. */
void thread_precede(pid_t tid, uint32_t priority);

bool thread_is_urgent(void);
void thread_end_urgency(void); /* takes nice -20 back */

#endif
