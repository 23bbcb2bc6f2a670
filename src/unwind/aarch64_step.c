/* AArch64: from a frame to its caller. Signal-safe.
 *
 * A step by the frame pointer does not find the caller's SP: a frame record is anywhere in its frame. SP is then
 * unknown, and its value only a lower limit. The next rule that stores FP and the return address as one record finds SP
 * again, because compilers let FP point to that record before the first call.  SPDX-License-Identifier: MIT */
#include "unwind/machine_rules_private.h"

enum { KNOWN_AFTER_STEP = 1u << MACHINE_IP | 1u << MACHINE_SP | 1u << MACHINE_FP };

/* Reads the words below CFA that RULE names, the lowest first: if memory is copied in blocks that begin with the first
 * address, both are in one block. Nothing is in use below SP. */
static bool read_saved(const struct machine_rule *rule, uint64_t cfa, struct unwind_registers *caller,
                       struct unwind_memory *memory)
{
    uint64_t word = 0;
    if (rule->deepest_words > 0 && !unwind_read(memory, cfa - rule->deepest_words * (uint64_t)WORD, &word))
        return false;
    if (rule->fp_words > 0) {
        if (!unwind_read(memory, cfa - rule->fp_words * (uint64_t)WORD, &caller->values[MACHINE_FP])) return false;
        caller->known |= 1u << MACHINE_FP;
    }
    return rule->return_words == 0 ||
           unwind_read(memory, cfa - rule->return_words * (uint64_t)WORD, &caller->values[MACHINE_IP]);
}

static enum machine_step step_narrow(const struct machine_rule *rule, uint64_t cfa, struct unwind_registers *registers,
                                     struct unwind_memory *memory)
{
    struct unwind_registers caller = {.known = 1u << MACHINE_IP | 1u << MACHINE_SP};
    bool keeps_fp = !(rule->lost_mask & SAVED_FP) && machine_known(registers, MACHINE_FP);
    /* Other registers are used where a function changes stacks, and the other one may be anywhere. */
    bool may_leave_stack = rule->cfa_register > MACHINE_FP;
    if (cfa % WORD != 0 || (cfa < registers->values[MACHINE_SP] && !may_leave_stack)) return MACHINE_BAD_FRAME;
    if (rule->return_words == 0) {
        if (!machine_known(registers, MACHINE_LR)) return MACHINE_UNKNOWN_REGISTER;
        caller.values[MACHINE_IP] = registers->values[MACHINE_LR];
    } else if (cfa == registers->values[MACHINE_SP]) {
        return MACHINE_BAD_FRAME;
    }
    if (keeps_fp) {
        caller.values[MACHINE_FP] = registers->values[MACHINE_FP];
        caller.known |= 1u << MACHINE_FP;
    }
    if (!read_saved(rule, cfa, &caller, memory)) return MACHINE_BAD_MEMORY;
    registers->values[MACHINE_IP] = machine_code_address(caller.values[MACHINE_IP]);
    registers->values[MACHINE_SP] = cfa;
    registers->values[MACHINE_FP] = caller.values[MACHINE_FP];
    registers->known = caller.known;
    return MACHINE_STEPPED;
}

/* Finds the CFA of a frame whose SP is unknown. */
static bool cfa_of_frame_record(const struct machine_rule *rule, const struct unwind_registers *registers,
                                uint64_t *ret_cfa)
{
    bool has_record = rule->return_words > 0 && rule->fp_words == rule->return_words + 1;
    *ret_cfa = registers->values[MACHINE_FP] + rule->fp_words * (uint64_t)WORD;
    return rule->cfa_register == MACHINE_SP && has_record && machine_known(registers, MACHINE_FP);
}

enum machine_step machine_step(const struct frame_table *table, const struct machine_rule *rule,
                               struct unwind_registers *registers, struct unwind_memory *memory)
{
    uint64_t cfa = 0;
    switch ((enum rule_kind)rule->kind) {
    case RULE_REGISTER:
        if (machine_known(registers, rule->cfa_register))
            cfa = registers->values[rule->cfa_register] + (uint64_t)(int64_t)rule->value;
        else if (!cfa_of_frame_record(rule, registers, &cfa))
            return MACHINE_UNKNOWN_REGISTER;
        return step_narrow(rule, cfa, registers, memory);
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
    (void)memory;
    if (!machine_known(registers, MACHINE_LR)) return MACHINE_UNKNOWN_REGISTER;
    registers->values[MACHINE_IP] = machine_code_address(registers->values[MACHINE_LR]);
    registers->known &= KNOWN_AFTER_STEP;
    return MACHINE_STEPPED;
}

enum machine_step machine_step_by_frame_pointer(struct unwind_registers *registers, struct unwind_memory *memory)
{
    if (!machine_known(registers, MACHINE_FP)) return MACHINE_UNKNOWN_REGISTER;
    uint64_t fp = registers->values[MACHINE_FP];
    if (fp + MACHINE_RECORD_BELOW < registers->values[MACHINE_SP] || fp % WORD != 0) return MACHINE_BAD_FRAME;
    uint64_t caller_fp = 0, return_address = 0;
    if (!unwind_read(memory, fp, &caller_fp) || !unwind_read(memory, fp + WORD, &return_address))
        return MACHINE_BAD_MEMORY;
    registers->values[MACHINE_IP] = machine_code_address(return_address);
    registers->values[MACHINE_SP] = fp + 2 * WORD;
    registers->values[MACHINE_FP] = caller_fp;
    registers->known = 1u << MACHINE_IP | 1u << MACHINE_FP;
    return MACHINE_STEPPED;
}

/* The frame is a siginfo_t and a ucontext_t, in which the registers follow 176 bytes and the fault's address (the
 * kernel's struct rt_sigframe, asm/sigcontext.h). */
enum machine_step machine_step_from_signal_frame(struct unwind_registers *registers, struct unwind_memory *memory)
{
    enum { REGISTERS_AT = 128 + 176 + 8, SP_NUMBER = 31, PC_NUMBER = 32 };
    uint64_t first = registers->values[MACHINE_SP] + REGISTERS_AT;
    struct unwind_registers interrupted = {.known = MACHINE_ALL_KNOWN};
    if (!machine_known(registers, MACHINE_SP)) return MACHINE_UNKNOWN_REGISTER;
    if (first % WORD != 0) return MACHINE_BAD_FRAME;
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        unsigned number = i == MACHINE_IP ? PC_NUMBER : i == MACHINE_SP ? SP_NUMBER : dwarf_of_machine[i];
        if (!unwind_read(memory, first + number * (uint64_t)WORD, &interrupted.values[i])) return MACHINE_BAD_MEMORY;
    }
    *registers = interrupted;
    return MACHINE_STEPPED_EXACTLY;
}
