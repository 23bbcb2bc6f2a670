/* A register that a frame needs, and no inner frame has saved, is recovered from the stack and the code, if calls prove
 * it: x86_64_recover.c and aarch64_recover.c.  SPDX-License-Identifier: MIT */
#include "unwind/recover_private.h"

enum { CALL_ALIGNMENT = 16, CALLERS_MAX = 4 };

/* Returns the frame that called through a pointer and continues at RETURN_ADDRESS, with the FP that was saved below
 * CFA. */
static struct unwind_registers caller_of(const struct frame_search *search, uint64_t return_address, uint64_t cfa)
{
    struct unwind_registers registers = {.known = 1u << MACHINE_IP | 1u << MACHINE_SP};
    uint64_t place = machine_fp_place(&search->rule, cfa);
    registers.values[MACHINE_IP] = return_address - 1;
    registers.values[MACHINE_SP] = cfa;
    if (place != 0 && unwind_read(search->memory, place, &registers.values[MACHINE_FP]))
        registers.known |= 1u << MACHINE_FP;
    return registers;
}

/* Returns true if the frame that continues at RETURN_ADDRESS, whose callee has the frame CFA of SEARCH, was called
 * directly, or through pointers by one that was, or if the root is there. */
static bool is_caller_proven(const struct frame_search *search, uint64_t return_address, uint64_t cfa)
{
    uint64_t addresses[CALLERS_MAX], start = 0;
    size_t count = 0;
    struct unwind_registers registers = caller_of(search, return_address, cfa);
    uint64_t *stack_pointers = search->memory->stack_pointers; /* the walk that searches has them */
    search->memory->stack_pointers = NULL;
    enum unwind_outcome outcome =
        unwind_walk_recovering(search->modules, &registers, search->memory, NULL, addresses, CALLERS_MAX, &count);
    search->memory->stack_pointers = stack_pointers;
    if (outcome == UNWIND_ROOT) return true;
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t inside = addresses[i] - (i > 0);
        if (!called_function(search->modules, inside, search->memory->work, &start)) return false;
        if (call_site_calls(search->memory->code, addresses[i + 1], start)) return true;
        if (!call_site_is_indirect(search->memory->code, addresses[i + 1])) return false;
    }
    return false;
}

void try_cfa(struct frame_search *search, uint64_t cfa)
{
    uint64_t return_address = 0;
    if (cfa % CALL_ALIGNMENT != 0 || (search->found_count > 0 && cfa == search->found_cfa)) return;
    if (!unwind_read(search->memory, machine_return_place(&search->rule, cfa), &return_address)) return;
    return_address = machine_code_address(return_address);
    if (!call_site_calls(search->memory->code, return_address, search->start) &&
        !(call_site_is_indirect(search->memory->code, return_address) &&
          is_caller_proven(search, return_address, cfa))) {
        return;
    }
    search->found_cfa = cfa;
    search->found_count++;
}

bool find_function(const struct unwind_module *module, uint64_t lookup, struct unwind_memory *memory,
                   struct machine_rule *ret_rule, uint64_t *ret_start)
{
    const struct frame_table *table = module->table;
    if (table) {
        uint32_t pc = (uint32_t)(lookup - module->base), start = 0;
        *ret_rule = table->rules[frame_table_rule_at(table, pc)];
        if (!frame_table_function_start(table, pc, &start)) return false;
        *ret_start = module->base + start;
        return true;
    }
    if (!module->lookup || !memory->work || !frame_lookup_find(module->lookup, lookup, memory->work)) return false;
    *ret_rule = memory->work->rule;
    *ret_start = memory->work->fde.start;
    return true;
}

/* Finds FP of the frame REGISTERS, whose code at LOOKUP finds its caller by FP. */
static bool recover_frame_pointer(struct frame_search *search, uint64_t lookup, struct unwind_registers *registers)
{
    const struct machine_rule *rule = &search->rule;
    if (machine_known(registers, MACHINE_FP)) return false; /* the step needs another register */
    if (rule->kind != RULE_REGISTER || rule->cfa_register != MACHINE_FP || rule->value < 0) return false;
    machine_try_cfas(search, lookup, registers->values[MACHINE_SP]);
    if (search->found_count != 1) return false;
    registers->values[MACHINE_FP] = search->found_cfa - (uint64_t)rule->value;
    registers->known |= 1u << MACHINE_FP;
    return true;
}

static bool recover(struct unwind_recovery *recovery, const struct unwind_module *module, uint64_t lookup,
                    struct unwind_registers *registers, struct unwind_memory *memory)
{
    struct frame_search search = {.modules = recovery->modules, .memory = memory};
    if (!find_function(module, lookup, memory, &search.rule, &search.start)) return false;
    bool is_innermost = lookup == recovery->innermost;
    bool is_found =
        recover_frame_pointer(&search, lookup, registers) || (is_innermost && machine_recover_link(&search, registers));
    recovery->count += is_found;
    recovery->pending = search.pending;
    return is_found;
}

enum unwind_outcome unwind_walk_without_registers(const struct unwind_modules *modules,
                                                  struct unwind_registers *registers, struct unwind_memory *memory,
                                                  uint64_t *addresses, size_t addresses_max, size_t *ret_count,
                                                  size_t *ret_recovered_count)
{
    struct unwind_recovery recovery = {
        .recover = recover, .modules = modules, .innermost = registers->values[MACHINE_IP]};
    registers->known = 1u << MACHINE_IP | 1u << MACHINE_SP | (registers->known & MACHINE_ARGUMENTS);
    enum unwind_outcome outcome =
        unwind_walk_recovering(modules, registers, memory, &recovery, addresses, addresses_max, ret_count);
    *ret_recovered_count = recovery.count;
    return outcome;
}
