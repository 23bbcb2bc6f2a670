/* What an unwinder must know of an instruction set: which registers it follows, how a row of call frame information
 * becomes a 4-byte rule, and how a rule leads from a frame to its caller. x86_64.c is the one there is.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_MACHINE_H
#define OFFBEAT_UNWIND_MACHINE_H

#include "base/pages.h"
#include "unwind/cfi.h"
#include "unwind/frame_table.h"

/* The registers that survive calls, and so can matter to a caller's frame; and R10, by which the compilers realign a
 * stack. */
enum machine_register {
    MACHINE_IP,
    MACHINE_SP,
    MACHINE_FP,
    MACHINE_RBX,
    MACHINE_R12,
    MACHINE_R13,
    MACHINE_R14,
    MACHINE_R15,
    MACHINE_R10,
    MACHINE_REGISTERS,
    MACHINE_REGISTER_OTHER = 0xff,
};

struct unwind_registers {
    uint64_t values[MACHINE_REGISTERS];
    uint32_t known; /* bit 1 << MACHINE_…; IP and SP always are */
};

static inline bool machine_known(const struct unwind_registers *registers, unsigned number)
{
    return number < MACHINE_REGISTERS && (registers->known >> number & 1);
}

enum { RULE_NONE = 0 };

/* A rule that does not fit into 4 bytes. */
struct wide_rule {
    uint8_t cfa_kind; /* enum wide_cfa */
    uint8_t cfa_register;
    uint8_t is_signal_frame; /* its caller was interrupted, not calling: the caller's address is exact */
    uint8_t unused;
    uint16_t cfa_expression_size;
    uint16_t unused_too;
    int32_t cfa_value; /* offset, or place in the table's expressions */
    struct {
        uint8_t kind; /* enum wide_saved */
        uint8_t register_number;
        uint16_t expression_size;
        int32_t value; /* offset, or place in the table's expressions */
    } saved[MACHINE_REGISTERS];
};

enum wide_cfa {
    WIDE_CFA_REGISTER,   /* register + value */
    WIDE_CFA_DEREFERENCE, /* what lies at register + value */
    WIDE_CFA_EXPRESSION,
};

enum wide_saved {
    WIDE_SAME,
    WIDE_LOST, /* undefined; of IP: this is the root */
    WIDE_AT_CFA,
    WIDE_IS_CFA, /* is CFA + value */
    WIDE_AT_REGISTER,
    WIDE_IN_REGISTER,
    WIDE_AT_EXPRESSION,
    WIDE_IS_EXPRESSION,
};

/* Collects wide rules and expressions while a table is built. */
struct rule_builder {
    const struct cfi_section *section;
    struct pages_array wide;        /* of struct wide_rule */
    struct pages_array expressions; /* of bytes */
};

/* The rule for ROW of FDE; RULE_NONE if it cannot be followed. Equal rows give equal rules. */
uint32_t machine_compile_rule(const struct cfi_fde *fde, const struct cfi_row *row, struct rule_builder *builder);

/* Memory of the thread that is unwound. Words between LOW and HIGH are at ADDRESS + SHIFT; EXTEND makes more of them
 * readable, or says that there are none there. Signal-safe. */
struct unwind_memory {
    uint64_t low, high;
    uint64_t shift;
    bool (*extend)(struct unwind_memory *memory, uint64_t address);
    void *context;
};

static inline bool unwind_read(struct unwind_memory *memory, uint64_t address, uint64_t *ret_word)
{
    if (address < memory->low || address > memory->high - 8 || memory->high < 8) {
        if (address > UINT64_MAX - 8 || !memory->extend(memory, address)) return false;
    }
    memcpy(ret_word, (const void *)(uintptr_t)(address + memory->shift), 8);
    return true;
}

enum machine_step {
    MACHINE_STEPPED,         /* to the caller: its IP is a return address */
    MACHINE_STEPPED_EXACTLY, /* to a frame that was interrupted: its IP is what it was about to execute */
    MACHINE_ROOT,
    MACHINE_NO_RULE,
    MACHINE_BAD_MEMORY,
    MACHINE_BAD_FRAME,        /* the stack would not shrink, or is misaligned */
    MACHINE_UNKNOWN_REGISTER, /* the rule needs a register that is not known */
};

/* Follows RULE, which holds at REGISTERS' IP, to the caller. REGISTERS are changed only by a step. */
enum machine_step machine_step(const struct frame_table *table, uint32_t rule, struct unwind_registers *registers,
                               struct unwind_memory *memory);

/* The same by the chain of frame pointers, for code that has no rules. */
enum machine_step machine_step_by_frame_pointer(struct unwind_registers *registers, struct unwind_memory *memory);

#endif
