/* What a seccomp filter, as every container has one, lets our threads do in somebody else's process. Some filters kill
 * who makes a system call that they do not know, so a process that ends at once tries the calls that are out of the
 * ordinary. A call that a filter only denies is allowed here: it fails. Nothing here uses libc.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_SECCOMP_FILTER_H
#define OFFBEAT_BASE_SECCOMP_FILTER_H

#include <stdbool.h>

enum filter_use {
    FILTER_DESCRIPTORS, /* close_range, unshare: a table of descriptors (descriptor_table.h) */
    FILTER_USAGE,       /* getrusage, the clock of a thread's CPU time, gettid */
    FILTER_MEMORY,      /* process_vm_readv */
    FILTER_PRIORITY,    /* sched_setattr, getpriority, sched_getscheduler */
    FILTER_TIMERS,      /* timer_create, timer_settime, timer_delete, clock_getres, uname */
    FILTER_PERF,        /* perf_event_open; ioctl and read of what it opens */
    FILTER_USES,
};

/* True if the calling thread is under a filter. */
bool filter_is_there(void);

/* Once, before the process has a second thread. The program's own filters come later; our threads have ended then. */
void filter_try(void);

/* True if no filter kills for USE. Under a filter for which it was not tried it is false. Any thread. */
bool filter_allows(enum filter_use use);

#endif
