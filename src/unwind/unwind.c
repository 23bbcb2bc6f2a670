/* The loop of an unwinder: find the rule for the address, follow it, until the root.  SPDX-License-Identifier: MIT */
#include "unwind/unwind_private.h"

const struct unwind_module *unwind_find_module(const struct unwind_modules *modules, uint64_t address)
{
    size_t low = 0, high = modules->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (modules->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= modules->items[low - 1].end) return NULL;
    return &modules->items[low - 1];
}

static enum unwind_outcome outcome_of(enum machine_step step)
{
    switch (step) {
    case MACHINE_STEPPED:
    case MACHINE_STEPPED_EXACTLY:
    case MACHINE_ROOT:
        return UNWIND_ROOT;
    case MACHINE_NO_RULE:
        return UNWIND_NO_TABLE;
    case MACHINE_BAD_MEMORY:
        return UNWIND_BAD_MEMORY;
    case MACHINE_BAD_FRAME:
        return UNWIND_BAD_FRAME;
    case MACHINE_UNKNOWN_REGISTER:
        return UNWIND_UNKNOWN_REGISTER;
    }
    return UNWIND_NO_TABLE;
}

static enum machine_step step_from(const struct unwind_module *module, uint64_t lookup,
                                   struct unwind_registers *registers, struct unwind_memory *memory)
{
    if (module && module->table) {
        const struct frame_table *table = module->table;
        uint32_t rule = frame_table_rule_at(table, (uint32_t)(lookup - module->base));
        if (rule != RULE_NONE) return machine_step(table, &table->rules[rule], registers, memory);
        if (machine_is_outermost(registers)) return MACHINE_ROOT;
    }
    enum machine_step step = machine_step_by_frame_pointer(registers, memory);
    return step == MACHINE_STEPPED ? step : MACHINE_NO_RULE;
}

enum unwind_outcome unwind_walk_recovering(const struct unwind_modules *modules, struct unwind_registers *registers,
                                           struct unwind_memory *memory, struct unwind_recovery *recovery,
                                           uint64_t *addresses, size_t addresses_max, size_t *ret_count)
{
    const struct unwind_module *module = NULL;
    uint64_t lookup = registers->values[MACHINE_IP];
    size_t count = 0;
    addresses[count++] = lookup;
    enum unwind_outcome outcome = UNWIND_ROOT;
    for (;;) {
        if (!module || lookup < module->start || lookup >= module->end) module = unwind_find_module(modules, lookup);
        if (module ? module->is_pending : modules->is_new_code && modules->is_new_code(lookup)) {
            outcome = UNWIND_PENDING;
            break;
        }
        enum machine_step step = step_from(module, lookup, registers, memory);
        if (step > MACHINE_STEPPED_EXACTLY) {
            bool may_recover = step == MACHINE_UNKNOWN_REGISTER && recovery;
            if (may_recover && recovery->recover(recovery, module, lookup, registers, memory)) continue;
            outcome = outcome_of(step);
            break;
        }
        uint64_t address = registers->values[MACHINE_IP];
        if (address == 0) break; /* how hand-written entry code marks the root */
        if (count == addresses_max) {
            outcome = UNWIND_TOO_DEEP;
            break;
        }
        lookup = step == MACHINE_STEPPED_EXACTLY ? address : address - 1;
        addresses[count++] = lookup + 1;
    }
    *ret_count = count;
    return outcome;
}

enum unwind_outcome unwind_walk(const struct unwind_modules *modules, struct unwind_registers *registers,
                                struct unwind_memory *memory, uint64_t *addresses, size_t addresses_max,
                                size_t *ret_count)
{
    return unwind_walk_recovering(modules, registers, memory, NULL, addresses, addresses_max, ret_count);
}
