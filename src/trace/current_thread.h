/* Cached data of the calling thread.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRACE_CURRENT_THREAD_H
#define OFFBEAT_TRACE_CURRENT_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TRACE_THREAD_NAME_SIZE = 16 }; /* as Linux has it */

struct trace_span;

struct trace_thread {
    unsigned process; /* process_number() when the other members were set: a forked child sets them again */
    pid_t tid;
    char name[TRACE_THREAD_NAME_SIZE];
    uint64_t random;
    struct trace_span *current; /* a reference; the span's PREVIOUS is current after it */
    bool is_watched;            /* trace_thread_leave_all is called when the thread ends */
};

struct trace_thread *trace_thread_self(void);
/* Reads the thread's name again, which may have changed. Costs a system call. */
void trace_thread_read_name(struct trace_thread *thread);
uint64_t trace_thread_random(struct trace_thread *thread);
/* Calls trace_thread_leave_all when the thread ends. */
void trace_thread_watch(struct trace_thread *thread);

/* Removes all current spans of THREAD. Defined in span.c. */
void trace_thread_leave_all(struct trace_thread *thread);

#endif
