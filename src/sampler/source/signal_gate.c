/* SPDX-License-Identifier: MIT */
#include "sampler/source/signal_gate.h"

#include "base/kernel.h"
#include "sampler/sampler.h"
#include "sampler/kernel/vdso_clock.h"
#include "sampler/kernel/processor.h"
#include "sampler/source/signal_stacks.h"

static _Atomic pid_t asked;                /* thread that is being sent a signal at this moment; 0: none */
static _Atomic uint32_t handlers_changing; /* calls of sigaction and signal that are under way */
static _Atomic uint64_t exec_until_ns;     /* end of the time in which a thread may call exec, CLOCK_MONOTONIC */

void signal_gate_after_fork(void)
{
    atomic_store(&asked, 0);
    atomic_store(&handlers_changing, 0);
    atomic_store(&exec_until_ns, 0);
}

/* --- On the sampler thread ---------------------------------------------------------------------------------------- */

static void leave_gate(void)
{
    atomic_store(&asked, 0);
}

/* Returns true if THREAD may be sent a signal until leave_gate: until then it does not change to a small stack. */
static bool enter_gate(pid_t thread)
{
    atomic_store(&asked, thread);
    if (signal_stacks_have_room(thread) && atomic_load(&handlers_changing) == 0) return true;
    leave_gate();
    return false;
}

bool signal_gate_send(struct sample_request *request, int number)
{
    if (!enter_gate(request->thread)) return false;
    bool is_sent = signal_handler_is_ready(number) && sample_request_send(request, number);
    leave_gate();
    return is_sent;
}

bool signal_gate_arm(struct sample_request *request, int number, struct request_timing timing)
{
    if (!enter_gate(request->thread)) return false;
    bool may_arm = monotonic_ns() >= atomic_load(&exec_until_ns) && signal_handler_is_ready(number);
    bool is_armed = may_arm && sample_request_arm(request, number, timing);
    leave_gate();
    return is_armed;
}

/* --- On a thread of the program ----------------------------------------------------------------------------------- */

/* Waits until no signal is being sent to THREAD (0: to any thread), and stops its CPU clock's. A signal to the calling
 * thread that was sent before arrives at the end of one of the system calls. Their arguments are not those of a call
 * that adds a seccomp filter (signal_handler.c); the kernel ignores them. */
static void wait_for_signal(pid_t thread)
{
    enum { WAITS_MAX = 1000 };
    for (unsigned i = 0; i < WAITS_MAX; i++) {
        pid_t now = atomic_load(&asked);
        if (now == 0 || (thread != 0 && now != thread)) break;
        (void)kernel_call3(SYS_sched_yield, -1, -1, -1);
    }
    sample_requests_disarm(thread);
    (void)kernel_thread_id();
}

void sampler_expect_alternate_stack(void)
{
    signal_stacks_expect_small(kernel_thread_id());
    wait_for_signal(kernel_thread_id());
}

void sampler_note_coroutine_stack(size_t bytes)
{
    if (signal_stacks_note_coroutine(bytes)) wait_for_signal(0);
}

bool sampler_expect_handler(int number)
{
    enum { ARRIVAL_NS = 100000 };
    if ((number != SIGNAL_USUAL && number != SIGNAL_SUBSTITUTE) || !sampler_is_present()) return false;
    atomic_fetch_add(&handlers_changing, 1);
    wait_for_signal(0);
    /* Signals take 10 to 80 µs to arrive at threads that have a processor. Other threads may wait for one for long, and
     * yielding ours to them could take as long. */
    uint64_t until_ns = monotonic_ns() + ARRIVAL_NS;
    while (sample_requests_are_sent() && monotonic_ns() < until_ns) processor_relax();
    return true;
}

void sampler_note_handler(void)
{
    atomic_fetch_sub(&handlers_changing, 1);
}

void sampler_expect_exec(void)
{
    /* Linux 5.7 to 5.19 use timers of CPU clocks after they have freed them, if exec is called by a thread that is not
     * the first (CVE-2022-2585). */
    enum { MOMENT_NS = 100000000 };
    if (!sampler_is_present()) return;
    atomic_store(&exec_until_ns, monotonic_ns() + MOMENT_NS);
    wait_for_signal(0);
}
