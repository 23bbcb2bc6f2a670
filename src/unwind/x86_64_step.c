/* x86-64: from a frame to its caller. Signal-safe.  SPDX-License-Identifier: MIT */
#include "unwind/machine.h"

enum {
    WORD = 8,
    KNOWN_ALWAYS = 1u << MACHINE_IP | 1u << MACHINE_SP,
    SAVED_REGISTERS = MACHINE_SURVIVING_REGISTERS - MACHINE_FP
};

static enum machine_step wide_cfa(const struct frame_table *table, const struct wide_rule *wide,
                                  const struct unwind_registers *registers, struct unwind_memory *memory,
                                  uint64_t *ret_cfa)
{
    if (wide->cfa_kind == WIDE_CFA_EXPRESSION) {
        struct slice expression = slice_of(table->expressions + wide->cfa_value, wide->cfa_expression_size);
        return machine_evaluate(expression, NULL, registers, memory, ret_cfa) ? MACHINE_STEPPED : MACHINE_BAD_FRAME;
    }
    if (!machine_known(registers, wide->cfa_register)) return MACHINE_UNKNOWN_REGISTER;
    *ret_cfa = registers->values[wide->cfa_register] + (uint64_t)(int64_t)wide->cfa_value;
    if (wide->cfa_kind == WIDE_CFA_DEREFERENCE && !unwind_read(memory, *ret_cfa, ret_cfa)) return MACHINE_BAD_MEMORY;
    return MACHINE_STEPPED;
}

/* Finds the caller's register NUMBER. Returns false if it is lost or cannot be read. */
static bool wide_saved(const struct frame_table *table, const struct wide_rule *wide, unsigned number, uint64_t cfa,
                       const struct unwind_registers *registers, struct unwind_memory *memory, uint64_t *ret_value)
{
    int64_t value = wide->saved[number].value;
    unsigned other = wide->saved[number].register_number;
    struct slice expression = {0};
    uint64_t address = cfa;
    switch ((enum wide_saved)wide->saved[number].kind) {
    case WIDE_SAME:
        *ret_value = number == MACHINE_SP ? cfa : registers->values[number];
        return number == MACHINE_SP || (number < MACHINE_SURVIVING_REGISTERS && machine_known(registers, number));
    case WIDE_LOST:
        return false;
    case WIDE_AT_CFA:
        return unwind_read(memory, cfa + (uint64_t)value, ret_value);
    case WIDE_IS_CFA:
        *ret_value = cfa + (uint64_t)value;
        return true;
    case WIDE_AT_REGISTER:
        return machine_known(registers, other) &&
               unwind_read(memory, registers->values[other] + (uint64_t)value, ret_value);
    case WIDE_IN_REGISTER:
        if (!machine_known(registers, other)) return false;
        *ret_value = registers->values[other];
        return true;
    case WIDE_AT_EXPRESSION:
    case WIDE_IS_EXPRESSION:
    case WIDE_SAVED_KINDS:
        break;
    }
    expression = slice_of(table->expressions + value, wide->saved[number].expression_size);
    if (!machine_evaluate(expression, &cfa, registers, memory, &address)) return false;
    *ret_value = address;
    return wide->saved[number].kind == WIDE_IS_EXPRESSION || unwind_read(memory, address, ret_value);
}

static enum machine_step step_wide(const struct frame_table *table, const struct wide_rule *wide,
                                   struct unwind_registers *registers, struct unwind_memory *memory)
{
    if (wide->saved[MACHINE_IP].kind == WIDE_LOST) return MACHINE_ROOT;
    uint64_t cfa = 0;
    enum machine_step found = wide_cfa(table, wide, registers, memory, &cfa);
    if (found != MACHINE_STEPPED) return found;
    struct unwind_registers caller = {.known = 0};
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        if (wide_saved(table, wide, i, cfa, registers, memory, &caller.values[i])) caller.known |= 1u << i;
    }
    if (!machine_known(&caller, MACHINE_IP) || !machine_known(&caller, MACHINE_SP)) return MACHINE_BAD_MEMORY;
    /* A signal handler may run on its own stack, above or below the interrupted one; where longjmp has begun to
     * jump, SP is in a register, and its new value may be the current one already; and vfork keeps its return address
     * in a register, because its child overwrites the stack. */
    uint64_t sp = caller.values[MACHINE_SP];
    bool may_stay = wide->is_signal_frame || wide->saved[MACHINE_SP].kind == WIDE_IN_REGISTER ||
                    (wide->saved[MACHINE_IP].kind == WIDE_IN_REGISTER && sp == registers->values[MACHINE_SP]);
    if (sp % WORD != 0 || (sp <= registers->values[MACHINE_SP] && !may_stay)) return MACHINE_BAD_FRAME;
    *registers = caller;
    return wide->is_signal_frame ? MACHINE_STEPPED_EXACTLY : MACHINE_STEPPED;
}

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
        return step_wide(table, &table->wide[rule->value], registers, memory);
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
