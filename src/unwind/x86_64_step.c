/* x86-64: from a frame to its caller. Signal-safe.  SPDX-License-Identifier: MIT */
#include "unwind/machine_rules_private.h"

enum { KNOWN_ALWAYS = 1u << MACHINE_IP | 1u << MACHINE_SP, SAVED_REGISTERS = MACHINE_SURVIVING_REGISTERS - MACHINE_FP };

/* Returns true if ADDRESS is in the red zone below SP: a register that was saved there has just been popped. Copies of
 * a stack need not reach there. */
static bool is_taken_off(uint64_t address, uint64_t sp)
{
    return address < sp && address >= sp - MACHINE_RED_ZONE;
}

/* Reads the words below CFA that RULE names, one by one, the lowest first: if memory is copied in blocks that begin
 * with the first address, all of them are in one block. */
static bool read_saved(const struct machine_rule *rule, uint64_t cfa, struct unwind_registers *registers,
                       struct unwind_memory *memory)
{
    uint64_t sp = registers->values[MACHINE_SP], lowest = cfa - rule->deepest_words * (uint64_t)WORD, word = 0;
    if (!unwind_read(memory, lowest, &word) && !is_taken_off(lowest, sp)) return false;
    for (unsigned i = 0; i < SAVED_REGISTERS; i++) {
        if (!(rule->saved_mask >> i & 1)) continue;
        uint64_t address = cfa - rule->saved_words[i] * (uint64_t)WORD;
        if (unwind_read(memory, address, &registers->values[MACHINE_FP + i])) continue;
        if (!is_taken_off(address, sp) || !machine_known(registers, MACHINE_FP + i)) return false;
    }
    return unwind_read(memory, cfa - WORD, &registers->values[MACHINE_IP]);
}

/* Reads the same words if all of them can be read, without branches that depend on the rule. */
READS_A_STACK static void load_saved(const struct machine_rule *rule, uint64_t cfa, struct unwind_registers *registers,
                                     uint64_t shift)
{
    const uint64_t *words = (const uint64_t *)(uintptr_t)(cfa + shift);
    for (unsigned i = 0; i < SAVED_REGISTERS; i++) {
        const uint64_t *from = &words[-(ptrdiff_t)rule->saved_words[i]];
        if (rule->saved_words[i] == 0) from = &registers->values[MACHINE_FP + i];
        registers->values[MACHINE_FP + i] = *from;
    }
    registers->values[MACHINE_IP] = words[-1];
}

static enum machine_step step_narrow(const struct machine_rule *rule, uint64_t cfa, struct unwind_registers *registers,
                                     struct unwind_memory *memory)
{
    uint64_t lowest = cfa - rule->deepest_words * (uint64_t)WORD;
    if (cfa % WORD != 0) return MACHINE_BAD_FRAME;
    if (lowest >= memory->low && cfa <= memory->high && lowest < cfa) {
        load_saved(rule, cfa, registers, memory->shift);
    } else {
        struct unwind_registers caller = *registers;
        if (!read_saved(rule, cfa, &caller, memory)) return MACHINE_BAD_MEMORY;
        *registers = caller;
    }
    uint32_t saved = (uint32_t)rule->saved_mask << MACHINE_FP, lost = (uint32_t)rule->lost_mask << MACHINE_FP;
    registers->values[MACHINE_SP] = cfa;
    registers->known = ((registers->known & ((1u << MACHINE_SURVIVING_REGISTERS) - 1) & ~lost) | saved) | KNOWN_ALWAYS;
    return MACHINE_STEPPED;
}

enum machine_step machine_step(const struct frame_table *table, const struct machine_rule *rule,
                               struct unwind_registers *registers, struct unwind_memory *memory)
{
    uint64_t sp = registers->values[MACHINE_SP];
    uint64_t cfa = 0;
    switch ((enum rule_kind)rule->kind) {
    case RULE_REGISTER:
        if (!machine_known(registers, rule->cfa_register)) return MACHINE_UNKNOWN_REGISTER;
        cfa = registers->values[rule->cfa_register] + (uint64_t)(int64_t)rule->value;
        /* Other registers are used where a function changes stacks, and the other one may be anywhere. */
        if (cfa <= sp && rule->cfa_register <= MACHINE_FP) return MACHINE_BAD_FRAME;
        return step_narrow(rule, cfa, registers, memory);
    case RULE_PLT:
        cfa = sp + WORD + ((registers->values[MACHINE_IP] & 15) >= (uint64_t)rule->value ? WORD : 0);
        return step_narrow(rule, cfa, registers, memory);
    case RULE_CLONE:
        if (machine_known(registers, MACHINE_RAX) && registers->values[MACHINE_RAX] == 0) return MACHINE_ROOT;
        return step_narrow(rule, sp + WORD, registers, memory);
    case RULE_ROOT:
        return MACHINE_ROOT;
    case RULE_WIDE:
        return machine_step_wide(table, &table->wide[rule->value], registers, memory);
    case RULE_NONE:
    case RULE_KINDS:
        break;
    }
    return MACHINE_NO_RULE;
}

enum machine_step machine_step_from_stub(struct unwind_registers *registers, struct unwind_memory *memory)
{
    uint64_t return_address = 0;
    if (!unwind_read(memory, registers->values[MACHINE_SP], &return_address)) return MACHINE_BAD_MEMORY;
    registers->values[MACHINE_IP] = return_address;
    registers->values[MACHINE_SP] += WORD;
    return MACHINE_STEPPED;
}

enum machine_step machine_step_by_frame_pointer(struct unwind_registers *registers, struct unwind_memory *memory)
{
    if (!machine_known(registers, MACHINE_FP)) return MACHINE_UNKNOWN_REGISTER;
    uint64_t fp = registers->values[MACHINE_FP];
    if (fp < registers->values[MACHINE_SP] || fp % WORD != 0) return MACHINE_BAD_FRAME;
    uint64_t caller_fp = 0, return_address = 0;
    if (!unwind_read(memory, fp, &caller_fp) || !unwind_read(memory, fp + WORD, &return_address))
        return MACHINE_BAD_MEMORY;
    registers->values[MACHINE_IP] = return_address;
    registers->values[MACHINE_SP] = fp + 2 * WORD;
    registers->values[MACHINE_FP] = caller_fp;
    registers->known = KNOWN_ALWAYS | 1u << MACHINE_FP;
    return MACHINE_STEPPED;
}

enum machine_step machine_step_from_signal_frame(struct unwind_registers *registers, struct unwind_memory *memory)
{
    (void)registers;
    (void)memory;
    return MACHINE_NO_RULE;
}
