/* CPU clocks of threads.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_CPU_CLOCK_H
#define OFFBEAT_SAMPLER_CPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

clockid_t thread_cpu_clock(pid_t tid);

/* Reads the CPU time of a thread of this process. Returns false if there is no such thread. */
bool thread_cpu_ns(pid_t tid, uint64_t *ret_ns);

/* Returns the CPU time of the calling thread, ns; 0 if the kernel does not tell it. */
uint64_t thread_own_cpu_ns(void);

#endif
