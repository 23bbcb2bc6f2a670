/* What threads say of themselves: when they began, and what they have spent when they end. The sampler thread looks in
 * ticks and does not see a thread that lives between two of them. Without locks and without its own memory, because
 * any thread of the program writes here.  SPDX-License-Identifier: MIT */
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
    uint64_t start_wait_ns;   /* until it first got a processor */
    uint64_t wall_ns, cpu_ns; /* of the thread's whole life, if it ends */
    uint64_t sleeps;          /* without any, all time beside CPU_NS was a wait for a processor */
    uint64_t preemptions;
};

/* --- On the thread itself: signal-safe, errno is kept ------------------------------------------------------------- */

void thread_events_begin(uint64_t routine, uint64_t created_ns);
void thread_events_end(void);
void thread_events_stay_silent(void); /* the thread works for the profiler */

/* --- On the sampler thread ---------------------------------------------------------------------------------------- */

bool thread_events_are_pending(void);
bool thread_events_take(struct thread_event *ret); /* false: there are no more */

/* After fork, in the child: they are the parent's. */
void thread_events_forget(void);

#endif
