/* x86-64: from a frame to its caller, as unwind/x86_64_step.c does it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_STEP_X86_64_BPF_H
#define OFFBEAT_RECORDER_BPF_STEP_X86_64_BPF_H

#include "recorder/bpf/table_rules.bpf.h"

enum { SAVED_REGISTERS = MACHINE_SURVIVING_REGISTERS - MACHINE_FP };

/* Reads the saved registers below CFA, each with a read of its own. */
static enum machine_step step_far(struct walk *walk, uint64_t cfa)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < SAVED_REGISTERS; i++) {
        uint64_t distance = walk->rule.saved_words[i];
        if (distance == 0) continue;
        if (!read_word(cfa - distance * WORD, &word)) return MACHINE_BAD_MEMORY;
        walk->registers[MACHINE_FP + i] = word;
    }
    if (!read_word(cfa - WORD, &word)) return MACHINE_BAD_MEMORY;
    walk->registers[MACHINE_IP] = word;
    return MACHINE_STEPPED;
}

static enum machine_step step_narrow(struct walk *walk, uint64_t cfa)
{
    if (cfa % WORD != 0) return MACHINE_BAD_FRAME;
    uint32_t deepest = walk->rule.deepest_words;
    if (deepest == 0) return MACHINE_BAD_FRAME;
    if (deepest > WORDS_AT_ONCE) {
        enum machine_step step = step_far(walk, cfa);
        if (step != MACHINE_STEPPED) return step;
    } else {
        uint64_t lowest = cfa - (uint64_t)deepest * WORD;
        if (bpf_probe_read_user(walk->words, deepest * WORD, (const void *)lowest) != 0) return MACHINE_BAD_MEMORY;
        for (uint32_t i = 0; i < SAVED_REGISTERS; i++) {
            uint32_t distance = walk->rule.saved_words[i];
            if (distance == 0) continue;
            walk->registers[MACHINE_FP + i] = walk->words[(deepest - distance) & (WORDS_AT_ONCE - 1)];
        }
        walk->registers[MACHINE_IP] = walk->words[(deepest - 1) & (WORDS_AT_ONCE - 1)];
    }
    uint32_t saved = (uint32_t)walk->rule.saved_mask << MACHINE_FP, lost = (uint32_t)walk->rule.lost_mask << MACHINE_FP;
    walk->registers[MACHINE_SP] = cfa;
    walk->known = ((walk->known & ((1u << MACHINE_SURVIVING_REGISTERS) - 1) & ~lost) | saved) | KNOWN_ALWAYS;
    return MACHINE_STEPPED;
}

/* Follows WALK's rule to the caller. */
static enum machine_step step_by_rule(struct walk *walk)
{
    uint64_t sp = walk->registers[MACHINE_SP], cfa = 0, value = (uint64_t)(int64_t)walk->rule.value;
    uint32_t number = walk->rule.cfa_register;
    switch (walk->rule.kind) {
    case RULE_REGISTER:
        if (!register_known(walk, number)) return MACHINE_UNKNOWN_REGISTER;
        cfa = walk->registers[number & (REGISTERS_ROOM - 1)] + value;
        if (cfa <= sp && number <= MACHINE_FP) return MACHINE_BAD_FRAME;
        return step_narrow(walk, cfa);
    case RULE_PLT:
        return step_narrow(walk, sp + WORD + ((walk->registers[MACHINE_IP] & 15) >= value ? WORD : 0));
    case RULE_CLONE:
        if (register_known(walk, MACHINE_RAX) && walk->registers[MACHINE_RAX] == 0) return MACHINE_ROOT;
        return step_narrow(walk, sp + WORD);
    case RULE_ROOT:
        return MACHINE_ROOT;
    case RULE_WIDE:
        return step_wide(walk);
    default:
        return MACHINE_NO_RULE;
    }
}

/* Returns true if the code at WALK's address is a stub of a PLT: "[endbr64] [bnd] jmp *slot(%rip)". */
static __always_inline bool is_plt_stub(struct walk *walk)
{
    enum { ENDBR64 = 0xfa1e0ff3, BND = 0xf2, JUMP = 0x25ff };
    if (bpf_probe_read_user(walk->words, WORD, (const void *)walk->lookup) != 0) return false;
    uint64_t code = walk->words[0];
    if ((uint32_t)code == ENDBR64) code >>= 32;
    if ((code & 0xff) == BND) code >>= 8;
    return (code & 0xffff) == JUMP;
}

/* Steps from code without a rule. */
static enum machine_step step_without_rule(struct walk *walk)
{
    uint64_t word = 0;
    bool may_cross = walk->module_code == BPF_CODE_TABLE || walk->module_code == BPF_CODE_UNKNOWN;
    if (walk->is_after_call || walk->module_code != BPF_CODE_TABLE || !is_plt_stub(walk)) {
        if (!may_cross) return step_by_frame_pointer(walk);
        walk->needs_user_space = 1; /* user space searches for the caller (unwind/cross_code.h) */
        return MACHINE_NO_RULE;
    }
    if (!read_word(walk->registers[MACHINE_SP], &word)) return MACHINE_BAD_MEMORY;
    walk->registers[MACHINE_IP] = word;
    walk->registers[MACHINE_SP] += WORD;
    return MACHINE_STEPPED;
}

/* Returns true if the instruction before ADDRESS jumps through a register. */
static __always_inline bool is_after_jump(uint64_t address)
{
    enum { JUMP = 0xff, THROUGH_REGISTER = 0xe0, REGISTER_MASK = 0xf8 };
    uint64_t code = 0;
    bool is_read = bpf_probe_read_user(&code, 2, (const void *)(address - 2)) == 0;
    return is_read && (code & 0xff) == JUMP && (code >> 8 & REGISTER_MASK) == THROUGH_REGISTER;
}

#endif
