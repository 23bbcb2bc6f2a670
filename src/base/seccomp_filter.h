/* Finds out which system calls a seccomp filter, as every container has one, lets our threads make in the profiled
 * process. Some filters kill the caller of a system call that they do not know, so a child process tries the unusual
 * calls and exits. A call that a filter only denies counts as allowed: it fails. Nothing here uses libc.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_SECCOMP_FILTER_H
#define OFFBEAT_BASE_SECCOMP_FILTER_H

#include <stdbool.h>

enum filter_use {
    FILTER_DESCRIPTORS, /* close_range, unshare: a table of descriptors (descriptor_table.h) */
    FILTER_USAGE,       /* getrusage, the clock of a thread's CPU time, gettid */
    FILTER_MEMORY,      /* process_vm_readv, process_vm_writev */
    FILTER_PRIORITY,    /* sched_setattr, getpriority, sched_getscheduler, sched_getparam */
    FILTER_TIMERS,      /* timer_create, timer_settime, timer_delete, clock_getres, uname */
    FILTER_PERF,        /* perf_event_open; ioctl and read of what it opens */
    FILTER_HELPER,      /* execve, and what comes before it in a child process */
    FILTER_USES,
};

/* True if the calling thread is under a filter. */
bool filter_is_there(void);

/* Tries all uses. Call it once, before the process has a second thread. A filter that the program adds comes later; our
 * threads have ended then. */
void filter_try(void);

/* True if no filter kills for USE. Under a filter for which it was not tried it is false. Any thread. */
bool filter_allows(enum filter_use use);
/* The same, after trying USE if it was not tried: a child process begins with a copy of the program's memory. */
bool filter_try_use(enum filter_use use);

#endif
