/* x86-64: registers, and the rules of usual frames. Included by unwind/chosen_machine.h.
 *
 * Sources: System V ABI for AMD64 §3.2.2, §3.6.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_X86_64_MACHINE_H
#define OFFBEAT_UNWIND_X86_64_MACHINE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_NAME "x86_64"

/* Callee-saved registers come first: any caller's frame can need them. The others are known in the innermost frame and
 * in an interrupted one: hand-written code and realigned stacks find their frames by them. */
enum machine_register {
    MACHINE_IP,
    MACHINE_SP,
    MACHINE_FP,
    MACHINE_RBX,
    MACHINE_R12,
    MACHINE_R13,
    MACHINE_R14,
    MACHINE_R15,
    MACHINE_SURVIVING_REGISTERS,
    MACHINE_RAX = MACHINE_SURVIVING_REGISTERS,
    MACHINE_RDX,
    MACHINE_RCX,
    MACHINE_RSI,
    MACHINE_RDI,
    MACHINE_R8,
    MACHINE_R9,
    MACHINE_R10,
    MACHINE_R11,
    MACHINE_REGISTERS,
    MACHINE_REGISTER_OTHER = 0xff,
    MACHINE_LINK_REGISTER = MACHINE_REGISTER_OTHER, /* calls store the return address in memory */
};

enum {
    MACHINE_ELF = EM_X86_64,
    MACHINE_ALL_KNOWN = (1 << MACHINE_REGISTERS) - 1,
    /* arguments of a system call, which the kernel shows for a thread that is in one */
    MACHINE_ARGUMENTS =
        1 << MACHINE_RDI | 1 << MACHINE_RSI | 1 << MACHINE_RDX | 1 << MACHINE_R10 | 1 << MACHINE_R8 | 1 << MACHINE_R9,
    /* registers of a thread that is in a system call, which the kernel has stored */
    MACHINE_KEPT_IN_CALL = MACHINE_ALL_KNOWN & ~(1 << MACHINE_RAX | 1 << MACHINE_RCX | 1 << MACHINE_R11),
    MACHINE_RED_ZONE = 128, /* bytes below SP that are in use (System V ABI for AMD64 §3.2.2) */
    MACHINE_RECORD_BELOW = 0,
};

/* A rule to find the caller of a frame. The return address is right below the CFA, and so are the saved registers that
 * the callee must preserve; this describes all but a few of the rows that compilers emit. */
struct machine_rule {
    uint8_t kind; /* enum rule_kind */
    uint8_t cfa_register;
    uint8_t saved_mask; /* bit i: register MACHINE_FP + i is saved in memory */
    uint8_t lost_mask;  /* bit i: register MACHINE_FP + i cannot be restored */
    int32_t value;      /* CFA less register, bytes; or the limit of a PLT rule; or the number of a wide rule */
    uint8_t
        saved_words[MACHINE_SURVIVING_REGISTERS - MACHINE_FP]; /* distances below the CFA, words; 0: not in memory */
    uint8_t deepest_words; /* largest distance, at least 1, that of the return address */
    uint8_t unused;
};
_Static_assert(sizeof(struct machine_rule) == 16, "is written to files");

enum rule_kind {
    RULE_NONE, /* unknown code */
    RULE_REGISTER,
    RULE_ROOT,
    RULE_PLT, /* CFA = SP + 8, and 8 more once the stub has pushed, which the low bits of IP show */
    RULE_WIDE,
    RULE_CLONE, /* in the caller of clone, CFA = SP + 8; the new thread, whose RAX is 0, begins here */
    RULE_KINDS,
};

/* Returns true if a step by RULE (NULL: by the frame pointer) needs only the registers SP and FP. A walk can then
 * continue with frames of an earlier walk. */
static inline bool machine_needs_sp_or_fp_only(const struct machine_rule *rule)
{
    if (!rule) return true;
    return rule->kind != RULE_WIDE && (rule->kind != RULE_REGISTER || rule->cfa_register <= MACHINE_FP);
}

/* Returns the address at which such a step to SP has read IP. FP_PLACE: where it has read FP. */
static inline uint64_t machine_ip_place(uint64_t sp, uint64_t fp_place)
{
    (void)fp_place;
    return sp - sizeof(uint64_t);
}

/* Returns the address at which such a step by RULE to SP has read FP; 0: it has not. */
static inline uint64_t machine_fp_place(const struct machine_rule *rule, uint64_t sp)
{
    if (!rule) return sp - 2 * sizeof(uint64_t);
    bool is_saved = rule->kind != RULE_WIDE && (rule->saved_mask & 1);
    return is_saved ? sp - rule->saved_words[0] * sizeof(uint64_t) : 0;
}

/* Returns the address at which a function with RULE and frame CFA has its return address. */
static inline uint64_t machine_return_place(const struct machine_rule *rule, uint64_t cfa)
{
    (void)rule;
    return cfa - sizeof(uint64_t);
}

/* Returns true if a call of ADDRESS enters the function whose rules begin at START. */
static inline bool machine_is_entry_of(uint64_t address, uint64_t start)
{
    return address == start;
}

enum {
    CFI_REGISTERS = 17, /* registers 0 to 16 of DWARF's numbering cover all that the unwinder follows */
    DWARF_RBP = 6,
    DWARF_SP = 7,
    DWARF_RETURN = 16,
};

/* Returns the register that has the number DWARF in call frame information. */
static inline unsigned machine_of_dwarf(uint64_t dwarf)
{
    static const uint8_t numbers[CFI_REGISTERS] = {
        MACHINE_RAX, MACHINE_RDX, MACHINE_RCX, MACHINE_RBX, MACHINE_RSI, MACHINE_RDI,
        MACHINE_FP,  MACHINE_SP,  MACHINE_R8,  MACHINE_R9,  MACHINE_R10, MACHINE_R11,
        MACHINE_R12, MACHINE_R13, MACHINE_R14, MACHINE_R15, MACHINE_IP,
    };
    return dwarf < CFI_REGISTERS ? numbers[dwarf] : MACHINE_REGISTER_OTHER;
}

static const uint8_t dwarf_of_machine[MACHINE_REGISTERS] = {
    [MACHINE_IP] = DWARF_RETURN, [MACHINE_SP] = DWARF_SP, [MACHINE_FP] = DWARF_RBP, [MACHINE_RBX] = 3,
    [MACHINE_R12] = 12,          [MACHINE_R13] = 13,      [MACHINE_R14] = 14,       [MACHINE_R15] = 15,
    [MACHINE_RAX] = 0,           [MACHINE_RDX] = 1,       [MACHINE_RCX] = 2,        [MACHINE_RSI] = 4,
    [MACHINE_RDI] = 5,           [MACHINE_R8] = 8,        [MACHINE_R9] = 9,         [MACHINE_R10] = 10,
    [MACHINE_R11] = 11,
};

/* Registers in the order of their numbers in asm/perf_regs.h, in which a record of perf holds those of the mask. */
enum { PERF_SP = 7, PERF_IP = 8, PERF_REGISTERS = 17 };
static const uint64_t perf_registers_mask = 0x1ff | 0xff0000; /* without flags and segments */
static const uint8_t machine_of_perf[PERF_REGISTERS] = {
    MACHINE_RAX, MACHINE_RBX, MACHINE_RCX, MACHINE_RDX, MACHINE_RSI, MACHINE_RDI, MACHINE_FP,  MACHINE_SP,  MACHINE_IP,
    MACHINE_R8,  MACHINE_R9,  MACHINE_R10, MACHINE_R11, MACHINE_R12, MACHINE_R13, MACHINE_R14, MACHINE_R15,
};

/* Registers of the arguments of a system call, in the order of /proc/TID/syscall. */
static const uint8_t machine_arguments[] = {MACHINE_RDI, MACHINE_RSI, MACHINE_RDX, MACHINE_R10, MACHINE_R8, MACHINE_R9};

/* Returns the address of code in WORD, which a call has stored. */
static inline uint64_t machine_code_address(uint64_t word)
{
    return word;
}

#endif
