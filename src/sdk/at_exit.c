/* The end of the process. exit may be called by a signal handler that interrupted malloc, or one of our own
 * functions: the thread that exits then holds locks that it will never give up. So it takes none and allocates
 * nothing. A thread that was started in advance ends the library; the exiting thread waits for it, at most as
 * long as promised. SPDX-License-Identifier: MIT */
#include "base/futex.h"
#include "base/kernel.h"
#include "sdk/locks.h"
#include "sdk/sdk_private.h"

#define GRACE_NS (3 * SECOND_NS) /* time to store pending envelopes and for TLS; <offbeat.h> promises it */

enum order { NO_THREAD, WAIT, LEAVE, END };

static _Atomic uint32_t order, has_ended; /* futexes */

static void *wait_for_order(void *unused)
{
    own_threads_begin("offbeat-end");
    own_threads_take_descriptors();
    for (;;) {
        uint32_t leave = LEAVE, now = atomic_load(&order);
        if (now == LEAVE && atomic_compare_exchange_strong(&order, &leave, NO_THREAD)) {
            own_threads_end_one();
            return NULL;
        }
        if (now == END) break;
        if (now == WAIT) futex_wait(&order, WAIT, 0);
    }
    sdk_end_at_exit();
    atomic_store(&has_ended, 1);
    futex_wake(&has_ended);
    own_threads_end_one();
    return NULL;
}

bool at_exit_prepare(void)
{
    uint32_t leave = LEAVE, none = NO_THREAD;
    if (atomic_compare_exchange_strong(&order, &leave, WAIT)) return true; /* it is about to leave, but stays */
    if (!atomic_compare_exchange_strong(&order, &none, WAIT)) return true;
    if (thread_start(wait_for_order, NULL)) return true;
    atomic_store(&order, NO_THREAD);
    return false;
}

bool at_exit_is_there(void)
{
    return atomic_load(&order) == WAIT;
}

void at_exit_leave(void)
{
    uint32_t wait = WAIT;
    if (atomic_compare_exchange_strong(&order, &wait, LEAVE)) futex_wake(&order);
}

void at_exit_forget(void)
{
    atomic_store(&order, NO_THREAD);
    atomic_store(&has_ended, 0);
}

void at_exit_run(void)
{
    uint32_t wait = WAIT;
    uint64_t now_ns = 0, deadline_ns;
    /* Checked first: under a seccomp filter, where the library has ended, any system call may kill. */
    if (!atomic_load(&library.is_on) || lock_any_is_held()) return;
    if (!sdk_is_ours() || kernel_call3(SYS_getpid, 0, 0, 0) != atomic_load(&library.pid)) return;
    if (atomic_compare_exchange_strong(&order, &wait, END)) futex_wake(&order);
    if (atomic_load(&order) != END || !kernel_clock_ns(CLOCK_MONOTONIC, &now_ns)) return;
    deadline_ns = now_ns + atomic_load(&library.shutdown_timeout_ms) * MILLISECOND_NS + GRACE_NS;
    while (!atomic_load(&has_ended) && kernel_clock_ns(CLOCK_MONOTONIC, &now_ns) && now_ns < deadline_ns)
        futex_wait(&has_ended, 0, deadline_ns);
}
