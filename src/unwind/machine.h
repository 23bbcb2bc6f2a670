/* What an unwinder must know of an instruction set: which registers it follows, how a row of call frame information
 * becomes a rule, and how a rule leads from a frame to its caller. The x86_64_….c are the one there is.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_MACHINE_H
#define OFFBEAT_UNWIND_MACHINE_H

#include "base/pages.h"
#include "unwind/cfi.h"
#include "unwind/frame_table.h"

/* Callee-saved registers come first: any caller's frame can need them. The others are known in the innermost frame
 * and where a signal interrupted: hand-written code and realigned stacks find their frames by them. */
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
};

struct unwind_registers {
    uint64_t values[MACHINE_REGISTERS];
    uint32_t known; /* bit 1 << MACHINE_…; IP and SP always are */
};

enum {
    MACHINE_ALL_KNOWN = (1 << MACHINE_REGISTERS) - 1,
    /* the arguments of a system call, which the kernel shows of a thread that is in one */
    MACHINE_ARGUMENTS =
        1 << MACHINE_RDI | 1 << MACHINE_RSI | 1 << MACHINE_RDX | 1 << MACHINE_R10 | 1 << MACHINE_R8 | 1 << MACHINE_R9,
    MACHINE_RED_ZONE = 128, /* bytes below SP that still mean something (System V ABI for AMD64 §3.2.2) */
};

static inline bool machine_known(const struct unwind_registers *registers, unsigned number)
{
    return number < MACHINE_REGISTERS && (registers->known >> number & 1);
}

/* Where to find the caller of a frame. The return address is right below the CFA, and so are the saved registers that
 * the callee must preserve; this describes all but a few of the rows that compilers emit. */
struct machine_rule {
    uint8_t kind; /* enum rule_kind */
    uint8_t cfa_register;
    uint8_t saved_mask; /* bit i: register MACHINE_FP + i is saved in memory */
    uint8_t lost_mask;  /* it cannot be restored */
    int32_t value;      /* CFA less register, in bytes; or the limit of a PLT rule; or the number of a wide rule */
    uint8_t saved_words[MACHINE_SURVIVING_REGISTERS - MACHINE_FP]; /* below the CFA; 0: in no memory */
    uint8_t deepest_words; /* the largest of them, at least the 1 of the return address */
    uint8_t unused;
};
_Static_assert(sizeof(struct machine_rule) == 16, "is written to files");

enum rule_kind {
    RULE_NONE, /* nothing is known */
    RULE_REGISTER,
    RULE_ROOT,
    RULE_PLT, /* CFA = SP + 8, and 8 more once the stub has pushed, which the low bits of IP show */
    RULE_WIDE,
    RULE_CLONE, /* in the caller of clone, CFA = SP + 8; the new thread, whose RAX is 0, begins here */
    RULE_KINDS,
};

/* For walks that meet frames of an earlier one: whether a step by RULE (NULL: by the frame pointer) needs no registers
 * but SP and FP. */
static inline bool machine_needs_sp_or_fp_only(const struct machine_rule *rule)
{
    if (!rule) return true;
    return rule->kind != RULE_WIDE && (rule->kind != RULE_REGISTER || rule->cfa_register <= MACHINE_FP);
}

/* Where such a step to SP has read IP. */
static inline uint64_t machine_ip_place(uint64_t sp)
{
    return sp - sizeof(uint64_t);
}

/* Where such a step by RULE to SP has read FP; 0: in no memory. */
static inline uint64_t machine_fp_place(const struct machine_rule *rule, uint64_t sp)
{
    if (!rule) return sp - 2 * sizeof(uint64_t);
    bool is_saved = rule->kind != RULE_WIDE && (rule->saved_mask & 1);
    return is_saved ? sp - rule->saved_words[0] * sizeof(uint64_t) : 0;
}

/* A rule that a struct machine_rule has no room for. */
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
_Static_assert(sizeof(struct wide_rule) == 12 + 8 * MACHINE_REGISTERS, "is written to files");

enum wide_cfa {
    WIDE_CFA_REGISTER,    /* register + value */
    WIDE_CFA_DEREFERENCE, /* what is at register + value */
    WIDE_CFA_EXPRESSION,
    WIDE_CFA_KINDS,
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
    WIDE_SAVED_KINDS,
};

/* A rule as two words, which is how it is put together and compared: written byte by byte and read back at once, it
 * would stall. */
struct rule_words {
    uint64_t first, second;
};

enum { RULE_INDEX_SIZE_MAX = 4 * FRAME_TABLE_RULES_MAX };

/* Collects what rows have in common while a table is built. In zeroed pages, few of which are touched for most modules;
 * before the first rule comes rule_builder_begin. */
struct rule_builder {
    const struct cfi_section *section; /* of the row that is compiled */
    struct pages_array wide;           /* of struct wide_rule */
    struct pages_array expressions;    /* of bytes */
    uint64_t registers_version;        /* of the row that the next two are of */
    bool is_usual;                     /* its registers fit into a narrow rule: */
    struct rule_words saved;
    uint32_t rejected_count;             /* rows whose rule did not fit any more, or cannot be followed */
    uint32_t rule_count, index_size;     /* how much of the arrays is used; the latter a power of two */
    uint16_t recent[512];                /* numbers by hash: what was found last, in less memory than the index */
    uint16_t index[RULE_INDEX_SIZE_MAX]; /* open addressing: numbers of rules plus one, 0: free */
    struct machine_rule rules[FRAME_TABLE_RULES_MAX];
};

void rule_builder_begin(struct rule_builder *builder);
void rule_builder_fini(struct rule_builder *builder);

/* The number of the rule for ROW of FDE; 0 (RULE_NONE) if it cannot be followed. Equal rows give equal numbers. */
uint32_t machine_compile_rule(const struct cfi_fde *fde, const struct cfi_row *row, struct rule_builder *builder);

/* The same without a builder: the rule is *RET_RULE, and where that is a wide one, it is number 0, *RET_WIDE, whose
 * expressions are where they are in SECTION. False if the row cannot be followed. Allocates nothing, signal-safe. */
bool machine_compile_one_rule(const struct cfi_section *section, const struct cfi_fde *fde, const struct cfi_row *row,
                              struct machine_rule *ret_rule, struct wide_rule *ret_wide);

/* The number of the rule for a few bytes of code between two FDEs, the last rule of one and the first of the other
 * being BEFORE and AFTER; RULE_NONE if it is nothing that is known. */
uint32_t machine_rule_between(uint32_t before, uint32_t after, struct rule_builder *builder);

/* Nothing in the rules of TABLE, which was read from a file, leads a step out of the table or of the memory it checks.
 */
bool machine_rules_are_valid(const struct frame_table *table);

/* Memory of the thread that is unwound. Words between LOW and HIGH are at ADDRESS + SHIFT; EXTEND makes more of them
 * readable, or says that there are none there. Signal-safe. */
struct frame_lookup_work;

struct unwind_memory {
    uint64_t low, high;
    uint64_t shift;
    bool (*extend)(struct unwind_memory *memory, uint64_t address);
    void *context;
    struct frame_lookup_work *work; /* to walk through modules without a complete table; NULL: they are pending */
    const struct unwind_code *code; /* to recognize code without rules by; NULL: it cannot be read */
};

/* What is between the variables of somebody's frame is for a sanitizer nothing that may be read. */
#define READS_A_STACK __attribute__((no_sanitize_address))

READS_A_STACK static inline bool unwind_read(struct unwind_memory *memory, uint64_t address, uint64_t *ret_word)
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

/* Follows RULE of TABLE, which holds at REGISTERS' IP, to the caller. REGISTERS are changed only by a step.
 * Signal-safe. */
enum machine_step machine_step(const struct frame_table *table, const struct machine_rule *rule,
                               struct unwind_registers *registers, struct unwind_memory *memory);

/* The same by the chain of frame pointers, for code that has no rules. */
enum machine_step machine_step_by_frame_pointer(struct unwind_registers *registers, struct unwind_memory *memory);

/* The same from the start of a stub in a PLT: nothing is on the stack but the return address. */
enum machine_step machine_step_from_stub(struct unwind_registers *registers, struct unwind_memory *memory);

/* In code that has no rules, which is hand-written: entry code marks the outermost frame by a frame pointer of zero
 * (System V ABI for AMD64 §3.4.1). */
static inline bool machine_is_outermost(const struct unwind_registers *registers)
{
    return machine_known(registers, MACHINE_FP) && registers->values[MACHINE_FP] == 0;
}

/* Evaluates a DWARF expression. FIRST, if not NULL, is on the stack at the start: the CFA, for expressions of saved
 * registers. False if it is broken or needs what is not known. Signal-safe. */
bool machine_evaluate(struct slice expression, const uint64_t *first, const struct unwind_registers *registers,
                      struct unwind_memory *memory, uint64_t *ret_value);

/* The register that call frame information gives the number DWARF. */
static inline unsigned machine_of_dwarf(uint64_t dwarf)
{
    static const uint8_t numbers[CFI_REGISTERS] = {
        MACHINE_RAX, MACHINE_RDX, MACHINE_RCX, MACHINE_RBX, MACHINE_RSI, MACHINE_RDI,
        MACHINE_FP,  MACHINE_SP,  MACHINE_R8,  MACHINE_R9,  MACHINE_R10, MACHINE_R11,
        MACHINE_R12, MACHINE_R13, MACHINE_R14, MACHINE_R15, MACHINE_IP,
    };
    return dwarf < CFI_REGISTERS ? numbers[dwarf] : MACHINE_REGISTER_OTHER;
}

#endif
