/* SPDX-License-Identifier: MIT */
#include "sampler/source/signal_stacks.h"

#include "base/kernel.h"
#include "sampler/sampler.h"
#include "sampler/kernel/processor.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

enum { SMALL_STACKS_MAX = 256 };

static struct {
    _Atomic pid_t threads[SMALL_STACKS_MAX]; /* threads with a small alternate stack; 0: a free place */
    _Atomic uint32_t count;
    atomic_bool has_more;      /* true if there are too few places, so any thread may have a small stack */
    atomic_bool in_coroutines; /* true if a stack of makecontext is small: any thread may be on it */
} small;

/* --- How much a signal needs -------------------------------------------------------------------------------------- */

/* Returns true if BYTES are enough for two frames: ours may come on top of the frame and the handler of another signal.
 */
static bool has_room(size_t bytes)
{
    return bytes >= 2 * processor_signal_frame_bytes();
}

/* --- Threads with small ones -------------------------------------------------------------------------------------- */

static bool replace_thread(pid_t old, pid_t new)
{
    for (size_t i = 0; i < SMALL_STACKS_MAX; i++) {
        pid_t expected = old;
        if (atomic_compare_exchange_strong(&small.threads[i], &expected, new)) return true;
    }
    return false;
}

static void forget_ended(void)
{
    for (size_t i = 0; i < SMALL_STACKS_MAX; i++) {
        pid_t thread = atomic_load(&small.threads[i]);
        bool has_ended = thread != 0 && kernel_call3(SYS_tgkill, kernel_process_id(), thread, 0) == -ESRCH;
        if (has_ended && atomic_compare_exchange_strong(&small.threads[i], &thread, 0))
            atomic_fetch_sub(&small.count, 1);
    }
}

static bool is_listed(pid_t thread)
{
    if (atomic_load(&small.count) == 0) return false;
    for (size_t i = 0; i < SMALL_STACKS_MAX; i++) {
        if (atomic_load(&small.threads[i]) == thread) return true;
    }
    return false;
}

void signal_stacks_expect_small(pid_t thread)
{
    if (is_listed(thread)) return;
    atomic_fetch_add(&small.count, 1); /* first, so that IS_LISTED never misses it */
    if (replace_thread(0, thread)) return;
    forget_ended();
    if (replace_thread(0, thread)) return;
    atomic_fetch_sub(&small.count, 1);
    atomic_store(&small.has_more, true);
}

void sampler_note_alternate_stack(void)
{
    stack_t present = {0};
    pid_t thread = kernel_thread_id();
    if (kernel_call3(SYS_sigaltstack, 0, kernel_address(&present), 0) != 0) return;
    bool has_alternate = !(present.ss_flags & SS_DISABLE); /* a thread's own stack has room */
    if (has_alternate && !has_room(present.ss_size))
        signal_stacks_expect_small(thread);
    else if (is_listed(thread) && replace_thread(thread, 0))
        atomic_fetch_sub(&small.count, 1);
}

bool signal_stacks_note_coroutine(size_t bytes)
{
    return !has_room(bytes) && !atomic_exchange(&small.in_coroutines, true);
}

void signal_stacks_after_fork(void)
{
    for (size_t i = 0; i < SMALL_STACKS_MAX; i++) atomic_store(&small.threads[i], 0);
    atomic_store(&small.count, 0);
    atomic_store(&small.has_more, false);
    sampler_note_alternate_stack();
}

bool signal_stacks_have_room(pid_t thread)
{
    return !atomic_load(&small.in_coroutines) && !atomic_load(&small.has_more) && !is_listed(thread);
}
