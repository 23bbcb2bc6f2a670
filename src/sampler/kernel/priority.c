/* SPDX-License-Identifier: MIT */
#include "sampler/kernel/priority.h"

#include "base/kernel.h"
#include "base/seccomp_filter.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static bool set_scheduling(pid_t tid, const struct scheduling *scheduling)
{
    return kernel_call3(SYS_sched_setattr, tid, kernel_address(scheduling), 0) == 0;
}

/* Sets NICE, and a shorter slice than others have, which lets a thread preempt them (from Linux 6.12 on). */
static bool schedule(int32_t nice)
{
    enum { SLICE_NS = 100000 };
    struct scheduling scheduling = {
        .size = sizeof(scheduling), .policy = SCHED_OTHER, .nice = nice, .runtime = SLICE_NS};
    return set_scheduling(0, &scheduling);
}

static int32_t usual_nice;
static atomic_bool is_urgent, may_precede;

uint32_t thread_real_time_priority(pid_t tid)
{
    int32_t priority = 0; /* struct sched_param; 0 for a thread that is not real-time */
    bool is_known =
        filter_allows(FILTER_PRIORITY) && kernel_call3(SYS_sched_getparam, tid, kernel_address(&priority), 0) == 0;
    return is_known && priority > 0 ? (uint32_t)priority : 0;
}

void thread_precede(pid_t tid, uint32_t priority)
{
    enum { PRIORITY_MAX = 99 };
    struct scheduling scheduling = {.size = sizeof(scheduling),
                                    .policy = SCHED_FIFO,
                                    .priority = priority < PRIORITY_MAX ? priority + 1 : PRIORITY_MAX};
    if (may_precede && filter_allows(FILTER_PRIORITY) && set_scheduling(tid, &scheduling)) is_urgent = true;
}

void thread_allow_urgency(bool may_be_urgent)
{
    is_urgent = false;
    may_precede = may_be_urgent;
}

void thread_wake_promptly(void)
{
    enum { NICE_OF_ZERO = 20, NICE_MOST_URGENT = -20 };
    if (!filter_allows(FILTER_PRIORITY)) return;
    long nice = kernel_call3(SYS_getpriority, PRIO_PROCESS, 0, 0);
    if (nice < 0 || kernel_call3(SYS_sched_getscheduler, 0, 0, 0) != SCHED_OTHER) return;
    usual_nice = (int32_t)(NICE_OF_ZERO - nice);
    is_urgent = may_precede && schedule(NICE_MOST_URGENT);
    if (!is_urgent) (void)schedule(usual_nice);
}

bool thread_is_urgent(void)
{
    return is_urgent;
}

void thread_end_urgency(void)
{
    if (is_urgent && filter_allows(FILTER_PRIORITY)) (void)schedule(usual_nice);
    is_urgent = may_precede = false;
}
