/* AArch64: from a frame to its caller, as unwind/aarch64_step.c does it. Stubs, signal frames and the vdso, which have
 * no rules, are left to user space.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_STEP_AARCH64_BPF_H
#define OFFBEAT_RECORDER_BPF_STEP_AARCH64_BPF_H

#include "recorder/bpf/table_rules.bpf.h"

/* Reads what WALK's rule has in memory below CFA. Nearly always that is one record of FP and the return address. */
static bool read_saved(struct walk *walk, uint64_t cfa)
{
    uint64_t fp_words = walk->rule.fp_words, return_words = walk->rule.return_words, word = 0;
    if (return_words > 0 && fp_words == return_words + 1) {
        if (bpf_probe_read_user(walk->words, 2 * WORD, (const void *)(cfa - fp_words * WORD)) != 0) return false;
        walk->registers[MACHINE_FP] = walk->words[0];
        walk->registers[MACHINE_IP] = walk->words[1];
        return true;
    }
    if (fp_words > 0) {
        if (!read_word(cfa - fp_words * WORD, &word)) return false;
        walk->registers[MACHINE_FP] = word;
    }
    if (return_words > 0) {
        if (!read_word(cfa - return_words * WORD, &word)) return false;
        walk->registers[MACHINE_IP] = word;
    }
    return true;
}

static enum machine_step step_narrow(struct walk *walk, uint64_t cfa)
{
    uint64_t sp = walk->registers[MACHINE_SP];
    bool may_leave_stack = walk->rule.cfa_register > MACHINE_FP;
    bool keeps_fp = !(walk->rule.lost_mask & SAVED_FP) && register_known(walk, MACHINE_FP);
    if (cfa % WORD != 0 || (cfa < sp && !may_leave_stack)) return MACHINE_BAD_FRAME;
    if (walk->rule.return_words == 0) {
        if (!register_known(walk, MACHINE_LR)) return MACHINE_UNKNOWN_REGISTER;
        walk->registers[MACHINE_IP] = walk->registers[MACHINE_LR];
    } else if (cfa == sp) {
        return MACHINE_BAD_FRAME;
    }
    if (!read_saved(walk, cfa)) return MACHINE_BAD_MEMORY;
    walk->registers[MACHINE_IP] = machine_code_address(walk->registers[MACHINE_IP]);
    walk->registers[MACHINE_SP] = cfa;
    walk->known = KNOWN_ALWAYS | (keeps_fp || walk->rule.fp_words > 0 ? 1 << MACHINE_FP : 0);
    return MACHINE_STEPPED;
}

/* Follows WALK's rule to the caller. If SP is unknown, a rule that stores a frame record finds it by FP. */
static enum machine_step step_by_rule(struct walk *walk)
{
    uint32_t number = walk->rule.cfa_register;
    switch (walk->rule.kind) {
    case RULE_REGISTER:
        if (register_known(walk, number)) {
            uint64_t value = (uint64_t)(int64_t)walk->rule.value;
            return step_narrow(walk, walk->registers[number & (REGISTERS_ROOM - 1)] + value);
        }
        bool has_record = walk->rule.return_words > 0 && walk->rule.fp_words == walk->rule.return_words + 1;
        if (number != MACHINE_SP || !has_record || !register_known(walk, MACHINE_FP)) return MACHINE_UNKNOWN_REGISTER;
        return step_narrow(walk, walk->registers[MACHINE_FP] + walk->rule.fp_words * (uint64_t)WORD);
    case RULE_ROOT:
        return MACHINE_ROOT;
    case RULE_WIDE:
        return step_wide(walk);
    default:
        return MACHINE_NO_RULE;
    }
}

/* Steps from code without a rule. The innermost function may not have stored its return address; if it has called
 * another one, the link register holds an address of its own module. */
static enum machine_step step_without_rule(struct walk *walk)
{
    if (walk->module_code == BPF_CODE_TABLE) {
        walk->needs_user_space = 1;
        return MACHINE_NO_RULE;
    }
    uint64_t link = machine_code_address(walk->registers[MACHINE_LR]);
    bool is_outside = link - 1 < walk->module_start || link - 1 >= walk->module_end;
    if (walk->is_after_call || walk->module_code != BPF_CODE_FRAME_POINTERS || !is_outside ||
        !register_known(walk, MACHINE_LR))
        return step_by_frame_pointer(walk);
    walk->registers[MACHINE_IP] = link;
    walk->known = KNOWN_ALWAYS | 1 << MACHINE_FP;
    return MACHINE_STEPPED;
}

/* Returns true if the instruction before ADDRESS jumps through a register. */
static __always_inline bool is_after_jump(uint64_t address)
{
    enum { INSTRUCTION = 4, BR_MASK = 0xfffffc1f, BR = 0xd61f0000 };
    uint32_t code = 0;
    return bpf_probe_read_user(&code, INSTRUCTION, (const void *)(address - INSTRUCTION)) == 0 &&
           (code & BR_MASK) == BR;
}

#endif
