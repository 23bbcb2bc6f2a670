/* Reads the stacks of threads that are blocked, from outside (remote_unwind.h). SPDX-License-Identifier: MIT */
#include "sampler/source/interpreted_stacks.h"
#include "sampler/source/sources.h"
#include "sampler/source/walk_tables.h"

static struct remote_stack remote; /* the sampler thread's alone */

/* Walks the stack, and builds the tables that the walk waits for. */
static enum remote_unwind_result walk(struct source_tick *tick, struct source_thread *thread)
{
    for (unsigned i = 0; i < MODULES_MAX; i++) {
        enum remote_unwind_result result =
            remote_unwind(thread->files, thread->clock_ns, tick->modules->current, &remote);
        if (remote.awaits_signals) thread->no_signal_until_cpu_ns = thread->clock_ns + LEFT_ALONE_NS;
        if (result != REMOTE_PENDING) return result;
        enum modules_result table = walk_table_build(tick, remote.addresses, remote.count);
        if (table == MODULES_LATER) return REMOTE_PENDING;
        if (table != MODULES_NOTHING) continue;
        remote.outcome = UNWIND_NO_TABLE;
        return REMOTE_INCOMPLETE;
    }
    return REMOTE_PENDING;
}

static enum source_offer read_blocked(struct source_tick *tick, struct source_thread *thread, struct source_stack *ret)
{
    enum remote_unwind_result result = walk(tick, thread);
    if (result == REMOTE_INCOMPLETE || result == REMOTE_DENIED) tick->counters[RECORDING_BLOCKED_DENIED]++;
    if (result == REMOTE_PENDING) return SOURCE_WILL_HAVE;
    if (result == REMOTE_DENIED) return SOURCE_DENIED;
    if (result == REMOTE_RUNNING) return SOURCE_NO;
    tick->counters[RECORDING_BLOCKED_READ]++;
    if (!interpreted_stacks_add(tick, thread, &remote)) return SOURCE_NO;
    *ret = (struct source_stack){
        .kind = SOURCE_STACK_BLOCKED,
        .found = {remote.addresses, remote.count, (uint32_t)remote.outcome | RECORDING_WITHOUT_SIGNAL}};
    return SOURCE_HAS;
}

/* Takes the stack of THREAD unless it runs. In CPU mode little is written for a thread that does not run. */
static enum source_offer take(struct source_tick *tick, struct source_thread *thread, void *state,
                              struct source_stack *ret)
{
    (void)state;
    *ret = (struct source_stack){0};
    bool is_for_switching = timer_switching_ns(thread) >= tick->period_ns;
    if (tick->mode != RECORDING_CPU || is_for_switching) return read_blocked(tick, thread, ret);
    if (timer_asks_for_calls(thread)) return SOURCE_NO; /* whether it runs does not matter */
    return thread_is_running(thread->files) ? SOURCE_NO : SOURCE_HAS;
}

const struct source remote_source = {.sight = SOURCE_SEES_BLOCKED, .take = take};
