/* SPDX-License-Identifier: MIT */
#include "sampler/source/reply_stack.h"

#include "sampler/source/interpreted_stacks.h"
#include "sampler/source/walk_tables.h"

bool reply_stack_read(struct source_tick *tick, struct source_thread *thread, struct sample_reply *reply,
                      uint64_t cpu_ns, struct found_stack *ret_stack)
{
    interpreted_stacks_finish(tick, reply);
    *ret_stack = (struct found_stack){reply->addresses, reply->address_count, reply->outcome};
    tick->counters[RECORDING_ANSWERS]++;
    tick->counters[RECORDING_ANSWERS_IN_CALL] += registers_are_in_call(&reply->registers);
    if (ret_stack->flags != UNWIND_PENDING) return true;
    enum modules_result table = walk_table_build(tick, ret_stack->addresses, ret_stack->count);
    if (table != MODULES_NOTHING) walk_table_wait(tick, thread, cpu_ns);
    thread->ticks_without_table++;
    walk_tables_build_ahead(tick, thread);
    ret_stack->flags = UNWIND_NO_TABLE;
    return table == MODULES_NOTHING;
}
