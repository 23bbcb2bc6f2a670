/* SPDX-License-Identifier: MIT */
#include "sampler/kernel/cpu_clock.h"

#include "base/kernel.h"

/* Computes the clock as pthread_getcpuclockid does. */
clockid_t thread_cpu_clock(pid_t tid)
{
    enum { PER_THREAD = 4, SCHEDULER_CLOCK = 2 };
    return (clockid_t)(~(unsigned)tid << 3 | PER_THREAD | SCHEDULER_CLOCK);
}

bool thread_cpu_ns(pid_t tid, uint64_t *ret_ns)
{
    return kernel_clock_ns(thread_cpu_clock(tid), ret_ns);
}

uint64_t thread_own_cpu_ns(void)
{
    uint64_t cpu_ns = 0;
    (void)kernel_clock_ns(CLOCK_THREAD_CPUTIME_ID, &cpu_ns);
    return cpu_ns;
}
