/* SPDX-License-Identifier: MIT */
#include "sampler/source/sample_walk.h"

#include "sampler/kernel/stack_reader.h"
#include "sampler/source/walk_tables.h"

/* Walks once. Returns false if the kernel has overwritten the copy. */
static bool walk_once(struct source_tick *tick, const struct perf_timer_sample *sample, uint64_t *addresses,
                      struct sample_walk *ret)
{
    static struct stack_reader reader; /* the sampler thread's alone */
    struct unwind_registers registers = sample->registers;
    struct unwind_memory live = stack_reader_memory(&reader);
    ret->copy = (struct copied_stack){
        .start = registers.values[MACHINE_SP], .words = sample->stack, .size = sample->stack_bytes};
    ret->outside = 0;
    ret->found.flags =
        (uint32_t)unwind_walk_copied_stack(tick->modules->current, &registers, &ret->copy, &live, addresses,
                                           RECORDING_FRAMES_MAX, &ret->found.count, &ret->outside);
    ret->end = registers.values[MACHINE_SP];
    return perf_timer_holds(sample->timer);
}

bool sample_walk(struct source_tick *tick, struct source_thread *thread, const struct perf_timer_sample *sample,
                 struct sample_walk *ret)
{
    static uint64_t addresses[RECORDING_FRAMES_MAX]; /* the sampler thread's alone */
    *ret = (struct sample_walk){.found = {.addresses = addresses, .flags = UNWIND_PENDING}};
    if (sample_requests_hold_stack(sample->registers.values[MACHINE_SP])) return false;
    for (unsigned i = 0; !ret->has_table && i < MODULES_MAX; i++) {
        if (!walk_once(tick, sample, addresses, ret)) return false;
        ret->has_table = ret->found.flags != UNWIND_PENDING;
        if (ret->has_table) break;
        enum modules_result table = walk_table_build(tick, addresses, ret->found.count);
        if (table == MODULES_NOTHING) break;
        if (table != MODULES_LATER) continue;
        walk_table_wait(tick, thread, thread->account.cpu_ns);
        return false;
    }
    if (!ret->has_table) ret->found.flags = UNWIND_NO_TABLE; /* without memory there will never be one */
    tick->counters[RECORDING_TIMER_STACKS]++;
    ret->found.flags |= RECORDING_WITHOUT_SIGNAL;
    return true;
}
