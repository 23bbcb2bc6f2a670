/* The parts of an unwinder that depend on the instruction set: the registers that it follows, how a row of call frame
 * information becomes a rule, and how a rule leads from a frame to its caller. The files x86_64_… and aarch64_… are the
 * variants. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_MACHINE_H
#define OFFBEAT_UNWIND_MACHINE_H

#include "base/pages.h"
#include "unwind/cfi.h"
#include "unwind/frame_table.h"

struct unwind_registers {
    uint64_t values[MACHINE_REGISTERS];
    uint32_t known; /* set of bits 1 << MACHINE_…, always with IP; without SP, its value is a lower limit */
};

static inline bool machine_known(const struct unwind_registers *registers, unsigned number)
{
    return number < MACHINE_REGISTERS && (registers->known >> number & 1);
}

/* A rule that a struct machine_rule has no room for. */
struct wide_rule {
    uint8_t cfa_kind; /* enum wide_cfa */
    uint8_t cfa_register;
    uint8_t is_signal_frame; /* true if a signal interrupted the caller: the caller's address is exact */
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
    WIDE_CFA_DEREFERENCE, /* word at register + value */
    WIDE_CFA_EXPRESSION,
    WIDE_CFA_KINDS,
};

enum wide_saved {
    WIDE_SAME,
    WIDE_LOST, /* undefined; for IP: this is the root */
    WIDE_AT_CFA,
    WIDE_IS_CFA, /* is CFA + value */
    WIDE_AT_REGISTER,
    WIDE_IN_REGISTER,
    WIDE_AT_EXPRESSION,
    WIDE_IS_EXPRESSION,
    WIDE_SAVED_KINDS,
};

/* A rule as two words, to compose and compare it: written byte by byte and read back at once, it would stall. */
struct rule_words {
    uint64_t first, second;
};

enum { RULE_INDEX_SIZE_MAX = 4 * FRAME_TABLE_RULES_MAX };

/* Rules that rows share while a table is built, in zeroed pages, few of which are touched for most modules.
 * rule_builder_begin precedes the first rule. */
struct rule_builder {
    const struct cfi_section *section;   /* section of the row that is compiled */
    struct pages_array wide;             /* struct wide_rule */
    struct pages_array expressions;      /* bytes */
    uint64_t registers_version;          /* version of the row to which IS_USUAL and SAVED belong */
    bool is_usual;                       /* true if that row's registers fit into a narrow rule */
    struct rule_words saved;             /* part of that rule which describes the registers */
    uint32_t rejected_count;             /* rows for which there is no room, or that cannot be followed */
    uint32_t rule_count, index_size;     /* used parts of the arrays; INDEX_SIZE is a power of two */
    uint16_t recent[512];                /* numbers of the last rules by hash, in less memory than the index */
    uint16_t index[RULE_INDEX_SIZE_MAX]; /* numbers of rules plus one, by open addressing; 0: free */
    struct machine_rule rules[FRAME_TABLE_RULES_MAX];
};

void rule_builder_begin(struct rule_builder *builder);
void rule_builder_fini(struct rule_builder *builder);

/* Returns the number of the rule for ROW of FDE; 0 (RULE_NONE) if it cannot be followed. Equal rows give equal numbers.
 */
uint32_t machine_compile_rule(const struct cfi_fde *fde, const struct cfi_row *row, struct rule_builder *builder);

/* Compiles ROW without a builder: the rule is *RET_RULE, and if that is a wide one, it is number 0, *RET_WIDE, whose
 * expressions stay in SECTION. Returns false if the row cannot be followed. Allocates nothing, signal-safe. */
bool machine_compile_one_rule(const struct cfi_section *section, const struct cfi_fde *fde, const struct cfi_row *row,
                              struct machine_rule *ret_rule, struct wide_rule *ret_wide);

/* Returns the number of the rule for a few bytes of code between two FDEs, where BEFORE is the last rule of the first
 * and AFTER the first rule of the second; RULE_NONE if the code is unknown. */
uint32_t machine_rule_between(uint32_t before, uint32_t after, struct rule_builder *builder);

/* Returns true if no rule of TABLE, which was read from a file, leads a step out of the table or of the memory that it
 * checks. */
bool machine_rules_are_valid(const struct frame_table *table);

struct frame_lookup_work;

struct unwind_module;
struct unwind_modules;

/* Memory of the thread that is unwound. Words between LOW and HIGH are at ADDRESS + SHIFT; EXTEND makes the word at
 * ADDRESS readable, or returns false. Signal-safe. */
struct unwind_memory {
    uint64_t low, high;
    uint64_t shift;
    bool (*extend)(struct unwind_memory *memory, uint64_t address);
    void *context;
    struct frame_lookup_work
        *work; /* memory to walk through modules without a complete table; NULL: they are pending */
    const struct unwind_code *code; /* reader that recognizes code without rules; NULL: code cannot be read */
    uint64_t *stack_pointers;       /* receives the stack pointer in each frame of a walk; NULL: not wanted */
    /* Steps from code of MODULE without rules (cross_code.h); NULL: only frame pointers do. */
    bool (*cross)(const struct unwind_modules *modules, const struct unwind_module *module,
                  struct unwind_registers *registers, struct unwind_memory *memory);
};

/* Marks functions that read frames of other functions, which a sanitizer forbids. */
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
    MACHINE_STEPPED,         /* the caller is reached: its IP is a return address */
    MACHINE_STEPPED_EXACTLY, /* an interrupted frame is reached: its IP is the instruction that it was about to execute
                              */
    MACHINE_ROOT,
    MACHINE_NO_RULE,
    MACHINE_BAD_MEMORY,
    MACHINE_BAD_FRAME,        /* the stack would not shrink, or is misaligned */
    MACHINE_UNKNOWN_REGISTER, /* the rule needs an unknown register */
};

/* Follows RULE of TABLE, which holds at REGISTERS' IP, to the caller. REGISTERS are changed only by a step.
 * Signal-safe. */
enum machine_step machine_step(const struct frame_table *table, const struct machine_rule *rule,
                               struct unwind_registers *registers, struct unwind_memory *memory);

/* Follows the chain of frame pointers, for code that has no rules. */
enum machine_step machine_step_by_frame_pointer(struct unwind_registers *registers, struct unwind_memory *memory);

/* Steps from a stub in a PLT, which has changed neither the stack nor the return address. */
enum machine_step machine_step_from_stub(struct unwind_registers *registers, struct unwind_memory *memory);

/* Steps from the code that is_signal_return recognizes to the frame that the signal interrupted. */
enum machine_step machine_step_from_signal_frame(struct unwind_registers *registers, struct unwind_memory *memory);

/* Returns true for the outermost frame of code without rules: hand-written entry code marks it by a frame pointer of
 * zero (System V ABI for AMD64 §3.4.1, Procedure Call Standard for AArch64 §6.4.6). */
static inline bool machine_is_outermost(const struct unwind_registers *registers)
{
    return machine_known(registers, MACHINE_FP) && registers->values[MACHINE_FP] == 0;
}

/* Evaluates a DWARF expression. FIRST, if not NULL, is on the stack at the start: the CFA, for expressions of saved
 * registers. Returns false if the expression is broken or needs an unknown register or memory. Signal-safe. */
bool machine_evaluate(struct slice expression, const uint64_t *first, const struct unwind_registers *registers,
                      struct unwind_memory *memory, uint64_t *ret_value);

#endif
