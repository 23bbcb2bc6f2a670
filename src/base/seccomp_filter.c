/* SPDX-License-Identifier: MIT */
#include "base/seccomp_filter.h"

#include "base/descriptor_table.h"
#include "base/kernel.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static atomic_uint allowed; /* a bit for each enum filter_use */

bool filter_is_there(void)
{
    return kernel_call3(SYS_prctl, PR_GET_SECCOMP, 0, 0) != 0;
}

bool filter_allows(enum filter_use use)
{
    return !filter_is_there() || (atomic_load(&allowed) >> use & 1) != 0;
}

/* --- In a process that ends at once ------------------------------------------------------------------------------- */

static void try_descriptors(void)
{
    (void)descriptor_table_take(-1);
}

static void try_usage(void)
{
    struct rusage usage;
    uint64_t ns;
    (void)kernel_call3(SYS_gettid, 0, 0, 0);
    (void)kernel_call3(SYS_getrusage, RUSAGE_SELF, kernel_address(&usage), 0);
    (void)kernel_call3(SYS_getrusage, RUSAGE_THREAD, kernel_address(&usage), 0);
    (void)kernel_clock_ns(CLOCK_THREAD_CPUTIME_ID, &ns);
}

static void try_memory(void)
{
    uint64_t word = 0, copy;
    struct {
        const uint64_t *address;
        uint64_t size;
    } from = {&word, sizeof(word)}, to = {&copy, sizeof(copy)};
    long pid = kernel_call3(SYS_getpid, 0, 0, 0);
    (void)kernel_call6(SYS_process_vm_readv, pid, kernel_address(&to), 1, kernel_address(&from), 1, 0);
    (void)kernel_call6(SYS_process_vm_writev, pid, kernel_address(&from), 1, kernel_address(&to), 1, 0);
}

static void try_priority(void)
{
    (void)kernel_call3(SYS_getpriority, PRIO_PROCESS, 0, 0);
    (void)kernel_call3(SYS_sched_getscheduler, 0, 0, 0);
    (void)kernel_call3(SYS_sched_getparam, 0, 0, 0);
    (void)kernel_call3(SYS_sched_setattr, 0, 0, 0);
}

static void try_timers(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    struct itimerspec never = {0};
    struct timespec resolution;
    struct utsname system;
    int timer = -1;
    (void)kernel_call3(SYS_uname, kernel_address(&system), 0, 0);
    (void)kernel_call3(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, kernel_address(&resolution), 0);
    (void)kernel_call3(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, kernel_address(&event), kernel_address(&timer));
    (void)kernel_call4(SYS_timer_settime, timer, 0, kernel_address(&never), 0);
    (void)kernel_call3(SYS_timer_delete, timer, 0, 0);
}

static void try_perf(void)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = PERF_COUNT_SW_DUMMY,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    uint64_t count;
    long event = kernel_call6(SYS_perf_event_open, kernel_address(&attributes), 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
    if (event < 0) return;
    (void)kernel_call3(SYS_ioctl, event, PERF_EVENT_IOC_ENABLE, 0);
    (void)kernel_read((int)event, &count, sizeof(count));
}

/* Nothing of it succeeds: there is no file without a name. */
static void try_helper(void)
{
    const struct rlimit no_core = {0};
    (void)kernel_call4(SYS_prlimit64, 0, RLIMIT_CORE, kernel_address(&no_core), 0);
    (void)kernel_call4(SYS_wait4, -1, 0, WNOHANG, 0);
    (void)kernel_dup2(-1, -1);
    (void)kernel_call4(SYS_rt_sigprocmask, SIG_SETMASK, 0, 0, sizeof(uint64_t));
    (void)kernel_call3(SYS_execve, 0, 0, 0);
}

/* Ends by the signal if a filter kills it, without a trace of that. */
static void try_and_end(unsigned uses)
{
    static void (*const trials[FILTER_USES])(void) = {
        [FILTER_DESCRIPTORS] = try_descriptors, [FILTER_USAGE] = try_usage,   [FILTER_MEMORY] = try_memory,
        [FILTER_PRIORITY] = try_priority,       [FILTER_TIMERS] = try_timers, [FILTER_PERF] = try_perf,
        [FILTER_HELPER] = try_helper,
    };
    const struct rlimit no_core = {0};
    kernel_handle_as_usual(SIGSYS);
    (void)kernel_call4(SYS_prlimit64, 0, RLIMIT_CORE, kernel_address(&no_core), 0);
    atomic_store(&allowed, uses); /* in this process */
    for (unsigned use = 0; use < FILTER_USES; use++) {
        if (uses >> use & 1) trials[use]();
    }
    (void)kernel_call3(SYS_exit_group, 0, 0, 0);
}

/* Returns whether a child process survives the system calls of USES. The child does not share the program's memory: on
 * older kernels, its core dump would stop the program. It ends without a signal, so that no wait of the program finds
 * it.
 */
static bool survives(unsigned uses)
{
    int status = -1;
    long child = kernel_call6(SYS_clone, CLONE_VFORK | CLONE_UNTRACED, 0, 0, 0, 0, 0);
    if (child == 0) try_and_end(uses);
    if (child < 0) return false;
    while (kernel_call4(SYS_wait4, child, kernel_address(&status), __WCLONE, 0) == -EINTR) continue;
    return status == 0;
}

bool filter_try_use(enum filter_use use)
{
    if (filter_allows(use)) return true;
    if (survives(1u << use)) atomic_fetch_or(&allowed, 1u << use);
    return filter_allows(use);
}

/* Most filters kill for none, and one process is enough. */
void filter_try(void)
{
    unsigned all = (1u << FILTER_USES) - 1, survived = 0;
    if (!filter_is_there()) return;
    if (survives(all)) survived = all;
    for (unsigned use = 0; use < FILTER_USES && survived != all; use++) {
        if (survives(1u << use)) survived |= 1u << use;
    }
    atomic_store(&allowed, survived);
}
