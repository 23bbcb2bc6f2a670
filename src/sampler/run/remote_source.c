/* SPDX-License-Identifier: MIT */
#include "sampler/run/remote_source.h"

#include "sampler/run/interpreted_threads.h"
#include "sampler/run/policy.h"
#include "sampler/run/walk_tables.h"
#include "sampler/run/thread_time.h"
#include "sampler/run/timer.h"

/* Returns REMOTE_WALKED if the stack was read and written, REMOTE_PENDING if it needs a table that is being built. */
static enum remote_unwind_result read_blocked(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    static struct remote_stack remote; /* the sampler thread's alone */
    enum remote_unwind_result result = REMOTE_PENDING;
    for (unsigned i = 0; result == REMOTE_PENDING && i < MODULES_MAX; i++) {
        result = remote_unwind(&thread->files, cpu_ns, sampler->modules.current, &remote);
        if (remote.awaits_signals) thread->signal.none_until_cpu_ns = cpu_ns + LEFT_ALONE_NS;
        if (result != REMOTE_PENDING) break;
        enum modules_result table = walk_table_build(sampler, remote.addresses, remote.count);
        if (table == MODULES_LATER) return REMOTE_PENDING;
        if (table != MODULES_NOTHING) continue;
        result = REMOTE_INCOMPLETE;
        remote.outcome = UNWIND_NO_TABLE;
    }
    if (result == REMOTE_INCOMPLETE || result == REMOTE_DENIED) sampler->counters[RECORDING_BLOCKED_DENIED]++;
    if (result != REMOTE_WALKED && result != REMOTE_INCOMPLETE) return result;
    sampler->counters[RECORDING_BLOCKED_READ]++;
    if (!interpreted_threads_add(sampler, thread, cpu_ns, &remote)) return REMOTE_RUNNING;
    struct found_stack stack = {remote.addresses, remote.count, remote.outcome | RECORDING_WITHOUT_SIGNAL};
    thread_time_credit_blocked(sampler, thread, false, &stack);
    return REMOTE_WALKED;
}

enum remote_unwind_result remote_source_read(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    bool is_for_switching = timer_switching_ns(thread) >= sampler->tick.period_ns;
    if (!sampler_is_cpu_mode(sampler) || is_for_switching) return read_blocked(sampler, thread, cpu_ns);
    if (policy_asks_for_calls(thread)) return REMOTE_RUNNING; /* whether it runs does not matter */
    return thread_is_running(&thread->files) ? REMOTE_RUNNING : REMOTE_WALKED;
}
