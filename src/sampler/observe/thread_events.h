/* Events that threads report themselves: that they have begun, and at their end how much time they have spent. Ticks do
 * not see a thread that lives between two of them. There are no locks and no allocation, because any thread of the
 * program writes here.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_THREAD_EVENTS_H
#define OFFBEAT_SAMPLER_THREAD_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_event {
    pid_t tid;        /* 0: sums of threads that ended, because there was no room for an event of each */
    uint32_t ends;    /* threads that ended; 0: the thread begins */
    uint64_t routine; /* address of the start routine; 0: not known */
    uint64_t created_ns;
    uint64_t start_wait_ns;   /* time until it first got a processor, ns */
    uint64_t wall_ns, cpu_ns; /* wall-clock time and CPU time of the entire life, at its end, ns */
    uint64_t sleeps,
        preemptions; /* context switches, at its end; without sleeps it only ran or waited for a processor */
};

/* --- On the thread itself: signal-safe, errno is kept ------------------------------------------------------------- */

void thread_events_begin(uint64_t routine, uint64_t created_ns);
void thread_events_end(void);
void thread_events_stay_silent(void); /* for a thread that works for the profiler */

/* --- On the sampler thread ---------------------------------------------------------------------------------------- */

bool thread_events_are_pending(void);
bool thread_events_take(struct thread_event *ret); /* returns false if there are no more */

/* Drops the parent's events in a forked child. */
void thread_events_forget(void);

#endif
