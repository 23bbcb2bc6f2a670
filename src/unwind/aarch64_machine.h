/* AArch64: registers, and the rules of usual frames. Included by unwind/chosen_machine.h.
 *
 * Sources: Procedure Call Standard for AArch64 §6.1, DWARF for AArch64 §4.1.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_AARCH64_MACHINE_H
#define OFFBEAT_UNWIND_AARCH64_MACHINE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_NAME "aarch64"

/* FP (x29) is the only register that is followed through callers: no function finds its frame by x19 to x28. The link
 * register (x30) and the others are known in the innermost frame and in an interrupted one. x16 to x18 belong to
 * linkers and platforms. */
enum machine_register {
    MACHINE_IP,
    MACHINE_SP,
    MACHINE_FP,
    MACHINE_SURVIVING_REGISTERS,
    MACHINE_LR = MACHINE_SURVIVING_REGISTERS,
    MACHINE_X0,
    MACHINE_X15 = MACHINE_X0 + 15,
    MACHINE_X19,
    MACHINE_X28 = MACHINE_X19 + 9,
    MACHINE_REGISTERS,
    MACHINE_REGISTER_OTHER = 0xff,
    MACHINE_LINK_REGISTER = MACHINE_LR,
};

enum {
    MACHINE_ELF = EM_AARCH64,
    MACHINE_RED_ZONE = 0,     /* nothing below SP is in use */
    MACHINE_RECORD_BELOW = 8, /* bytes below SP at which a frame record may begin: in code of Go, x29 is SP - 8 */
    MACHINE_ALL_KNOWN = (1 << MACHINE_REGISTERS) - 1,
    MACHINE_KEPT_IN_CALL = MACHINE_ALL_KNOWN,
    MACHINE_ARGUMENTS = 0x3f << MACHINE_X0, /* arguments of a system call, which the kernel shows */
};

/* A rule to find the caller of a frame: 99.8 % of the rows that compilers emit. */
struct machine_rule {
    uint8_t kind; /* enum rule_kind */
    uint8_t cfa_register;
    uint8_t saved_mask;     /* bits of enum saved_register: the register is saved in memory */
    uint8_t lost_mask;      /* SAVED_FP: FP cannot be restored */
    int32_t value;          /* CFA less register, bytes; or the number of a wide rule */
    uint16_t fp_words;      /* distance of the saved FP below the CFA, words; 0: not in memory */
    uint16_t return_words;  /* distance of the saved return address; 0: it is in LR */
    uint16_t deepest_words; /* the larger one of both */
    uint16_t unused;
};
_Static_assert(sizeof(struct machine_rule) == 16, "is written to files");

enum saved_register { SAVED_FP = 1, SAVED_RETURN = 2 };

enum rule_kind {
    RULE_NONE, /* unknown code */
    RULE_REGISTER,
    RULE_ROOT,
    RULE_WIDE,
    RULE_KINDS,
};

/* Returns true if a step by RULE (NULL: by the frame pointer) needs only the registers SP and FP, and reads the return
 * address directly above FP: machine_ip_place relies on it. */
static inline bool machine_needs_sp_or_fp_only(const struct machine_rule *rule)
{
    return rule && rule->kind == RULE_REGISTER && rule->cfa_register <= MACHINE_FP && rule->return_words > 0 &&
           rule->fp_words == rule->return_words + 1;
}

/* Returns the address at which such a step to SP has read IP. FP_PLACE: where it has read FP. */
static inline uint64_t machine_ip_place(uint64_t sp, uint64_t fp_place)
{
    (void)sp;
    return fp_place + sizeof(uint64_t);
}

/* Returns the address at which such a step by RULE to SP has read FP; 0: it has not. */
static inline uint64_t machine_fp_place(const struct machine_rule *rule, uint64_t sp)
{
    return machine_needs_sp_or_fp_only(rule) ? sp - rule->fp_words * sizeof(uint64_t) : 0;
}

/* Returns the address at which a function with RULE, which has saved it, and frame CFA has its return address. */
static inline uint64_t machine_return_place(const struct machine_rule *rule, uint64_t cfa)
{
    return cfa - rule->return_words * sizeof(uint64_t);
}

/* Returns true if a call of ADDRESS enters the function whose rules begin at START: system calls of glibc have a nop
 * before. */
static inline bool machine_is_entry_of(uint64_t address, uint64_t start)
{
    return address == start || address + 4 == start;
}

/* Unconditional branches that contain their distance: their first 6 bits. */
enum branch { BRANCH = 0x14000000, BRANCH_AND_LINK = -0x6c000000 };

/* Returns where INSTRUCTION at ADDRESS branches to; 0 if it is no such BRANCH. */
uint64_t machine_branch_target(uint32_t instruction, enum branch branch, uint64_t address);

enum {
    CFI_REGISTERS = 32,
    DWARF_FP = 29,
    DWARF_RETURN = 30,
    DWARF_SP = 31,
};

/* Returns the register that has the number DWARF in call frame information. */
static inline unsigned machine_of_dwarf(uint64_t dwarf)
{
    if (dwarf <= 15) return MACHINE_X0 + (unsigned)dwarf;
    if (dwarf >= 19 && dwarf <= 28) return MACHINE_X19 + (unsigned)dwarf - 19;
    if (dwarf == DWARF_FP) return MACHINE_FP;
    if (dwarf == DWARF_RETURN) return MACHINE_LR;
    return dwarf == DWARF_SP ? MACHINE_SP : MACHINE_REGISTER_OTHER;
}

/* The return address is in the register to which a function returns. */
static const uint8_t dwarf_of_machine[MACHINE_REGISTERS] = {
    DWARF_RETURN, DWARF_SP, DWARF_FP, DWARF_RETURN, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
    11,           12,       13,       14,           15, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
};

/* Registers in the order of their numbers in asm/perf_regs.h, in which a record of perf holds those of the mask. */
enum { PERF_SP = 31, PERF_IP = 32, PERF_REGISTERS = MACHINE_REGISTERS };
static const uint64_t perf_registers_mask = 0x1fff8ffff; /* without x16 to x18 */
static const uint8_t machine_of_perf[PERF_REGISTERS] = {
    MACHINE_X0,      MACHINE_X0 + 1,  MACHINE_X0 + 2,  MACHINE_X0 + 3,  MACHINE_X0 + 4,  MACHINE_X0 + 5,
    MACHINE_X0 + 6,  MACHINE_X0 + 7,  MACHINE_X0 + 8,  MACHINE_X0 + 9,  MACHINE_X0 + 10, MACHINE_X0 + 11,
    MACHINE_X0 + 12, MACHINE_X0 + 13, MACHINE_X0 + 14, MACHINE_X15,     MACHINE_X19,     MACHINE_X19 + 1,
    MACHINE_X19 + 2, MACHINE_X19 + 3, MACHINE_X19 + 4, MACHINE_X19 + 5, MACHINE_X19 + 6, MACHINE_X19 + 7,
    MACHINE_X19 + 8, MACHINE_X28,     MACHINE_FP,      MACHINE_LR,      MACHINE_SP,      MACHINE_IP,
};

/* Registers of the arguments of a system call, in the order of /proc/TID/syscall. */
static const uint8_t machine_arguments[] = {MACHINE_X0,     MACHINE_X0 + 1, MACHINE_X0 + 2,
                                            MACHINE_X0 + 3, MACHINE_X0 + 4, MACHINE_X0 + 5};

/* Returns the address of code in WORD, which a function has stored: without the signature of pointer authentication,
 * which needs no knowledge of whether there is one. Addresses of programs have 48 bits. */
static inline uint64_t machine_code_address(uint64_t word)
{
    return word & (((uint64_t)1 << 48) - 1);
}

#endif
