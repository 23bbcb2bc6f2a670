/* SPDX-License-Identifier: MIT */
#include "sampler/signal_stacks.h"

#include "base/kernel.h"
#include "sampler/sampler.h"
#include "sampler/self.h"
#include "sampler/slots.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>

enum { SMALL_STACKS_MAX = 256, WAITS_MAX = 1000 };

static struct {
    _Atomic pid_t threads[SMALL_STACKS_MAX]; /* that have a small alternate stack; 0: a free place */
    _Atomic uint32_t count;
    atomic_bool has_more;      /* than there are places, so any thread may have a small one */
    atomic_bool in_coroutines; /* a stack of makecontext is small: any thread may be on it */
    _Atomic pid_t asked;       /* is being sent a signal at this moment */
} small;

static _Atomic uint32_t handlers_changing; /* calls of the program that are under way */
static _Atomic uint64_t exec_until_ns;     /* a thread is about to call exec, or it has failed */

static pid_t own_tid(void)
{
    return (pid_t)kernel_call3(SYS_gettid, 0, 0, 0);
}

/* --- How much a signal needs -------------------------------------------------------------------------------------- */

/* AT_MINSIGSTKSZ counts the tiles of AMX for every process. The kernel writes them only for one that asked for them,
 * and denies that as long as a thread's alternate stack is too small for them (Documentation/arch/x86/xstate.rst). */
static size_t frame_bytes(void)
{
    enum { GET_PERMITTED = 0x1022 /* ARCH_GET_XCOMP_PERM */, TILES_BIT = 18, TILES_BYTES = 8192, OLDER_KERNEL = 2048 };
    uint64_t permitted = 0;
    size_t bytes = getauxval(AT_MINSIGSTKSZ);
    bool has_tiles = kernel_call3(SYS_arch_prctl, GET_PERMITTED, kernel_address(&permitted), 0) != 0 ||
                     (permitted >> TILES_BIT & 1) != 0;
    if (bytes == 0) return OLDER_KERNEL;
    return bytes > TILES_BYTES && !has_tiles ? bytes - TILES_BYTES : bytes;
}

/* Twice a frame: ours may come on top of the frame and the handler of another signal. */
static bool has_room(size_t bytes)
{
    return bytes >= 2 * frame_bytes();
}

/* --- On a thread of the program ----------------------------------------------------------------------------------- */

static bool put(pid_t old, pid_t new)
{
    for (size_t i = 0; i < SMALL_STACKS_MAX; i++) {
        pid_t expected = old;
        if (atomic_compare_exchange_strong(&small.threads[i], &expected, new)) return true;
    }
    return false;
}

static bool has_ended(pid_t thread)
{
    return kernel_call3(SYS_tgkill, self_pid(), thread, 0) == -ESRCH;
}

static void forget_ended(void)
{
    for (size_t i = 0; i < SMALL_STACKS_MAX; i++) {
        pid_t thread = atomic_load(&small.threads[i]);
        if (thread != 0 && has_ended(thread) && atomic_compare_exchange_strong(&small.threads[i], &thread, 0))
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

static void add(pid_t thread)
{
    if (is_listed(thread)) return;
    atomic_fetch_add(&small.count, 1); /* first, so that IS_LISTED never misses it */
    if (put(0, thread)) return;
    forget_ended();
    if (put(0, thread)) return;
    atomic_fetch_sub(&small.count, 1);
    atomic_store(&small.has_more, true);
}

static void take_out(pid_t thread)
{
    if (is_listed(thread) && put(thread, 0)) atomic_fetch_sub(&small.count, 1);
}

static bool is_being_asked(pid_t thread)
{
    pid_t asked = atomic_load(&small.asked);
    return asked != 0 && (thread == 0 || asked == thread);
}

/* A signal that was sent before arrives at the end of one of the calls. One that is still to come from a CPU clock does
 * not come. THREAD 0: no thread's. */
static void wait_for_signal(pid_t thread)
{
    for (unsigned i = 0; i < WAITS_MAX && is_being_asked(thread); i++) (void)kernel_call3(SYS_sched_yield, 0, 0, 0);
    slots_disarm(thread);
    (void)own_tid();
}

/* As if it were a small one: an address that the program gives is read by the kernel only. */
void sampler_expect_alternate_stack(void)
{
    add(own_tid());
    wait_for_signal(own_tid());
}

void sampler_note_alternate_stack(void)
{
    stack_t present = {0};
    if (kernel_call3(SYS_sigaltstack, 0, kernel_address(&present), 0) != 0) return;
    if ((present.ss_flags & SS_DISABLE) || has_room(present.ss_size))
        take_out(own_tid()); /* without one, the frame is written to the thread's own stack, which has room */
    else
        add(own_tid());
}

void sampler_note_coroutine_stack(size_t bytes)
{
    if (has_room(bytes) || atomic_exchange(&small.in_coroutines, true)) return;
    wait_for_signal(0);
}

bool sampler_expect_handler(int number)
{
    if ((number != SIGNAL_USUAL && number != SIGNAL_SUBSTITUTE) || !sampler_is_present()) return false;
    atomic_fetch_add(&handlers_changing, 1);
    wait_for_signal(0);
    return true;
}

void sampler_note_handler(void)
{
    atomic_fetch_sub(&handlers_changing, 1);
}

/* Linux 5.7 to 5.19 use timers of CPU clocks after they have freed them, if exec is called by a thread that is not the
 * first (CVE-2022-2585). */
void sampler_expect_exec(void)
{
    enum { MOMENT_NS = 100000000 };
    if (!sampler_is_present()) return;
    atomic_store(&exec_until_ns, self_monotonic_ns() + MOMENT_NS);
    wait_for_signal(0);
}

void signal_stacks_after_fork(void)
{
    for (size_t i = 0; i < SMALL_STACKS_MAX; i++) atomic_store(&small.threads[i], 0);
    atomic_store(&small.count, 0);
    atomic_store(&small.has_more, false);
    atomic_store(&small.asked, 0);
    atomic_store(&handlers_changing, 0);
    atomic_store(&exec_until_ns, 0);
    sampler_note_alternate_stack();
}

/* --- On the sampler thread ---------------------------------------------------------------------------------------- */

bool signal_stacks_have_room(pid_t thread)
{
    return !atomic_load(&small.in_coroutines) && !atomic_load(&small.has_more) && !is_listed(thread);
}

bool signal_stacks_before_sending(pid_t thread)
{
    atomic_store(&small.asked, thread);
    if (signal_stacks_have_room(thread) && atomic_load(&handlers_changing) == 0) return true;
    signal_stacks_sent();
    return false;
}

bool signal_stacks_expect_exec(void)
{
    return self_monotonic_ns() < atomic_load(&exec_until_ns);
}

void signal_stacks_sent(void)
{
    atomic_store(&small.asked, 0);
}
