/* Compiles one row, for a table or for a single lookup.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_MACHINE_RULES_PRIVATE_H
#define OFFBEAT_UNWIND_MACHINE_RULES_PRIVATE_H

#include "unwind/machine.h"

#include <stddef.h>

enum { WORD = 8 };
_Static_assert(offsetof(struct machine_rule, kind) == 0 && offsetof(struct machine_rule, cfa_register) == 1 &&
                   offsetof(struct machine_rule, saved_mask) == 2 && offsetof(struct machine_rule, lost_mask) == 3 &&
                   offsetof(struct machine_rule, value) == 4 && sizeof(struct machine_rule) == 16,
               "struct rule_words relies on it");

enum {
    /* Bits of the first 8 bytes of a struct machine_rule. */
    SAVED_MASK_SHIFT = 8 * offsetof(struct machine_rule, saved_mask),
    LOST_MASK_SHIFT = 8 * offsetof(struct machine_rule, lost_mask),
};

static inline struct rule_words rule_words(enum rule_kind kind, unsigned cfa_register, int32_t value)
{
    return (struct rule_words){.first = (uint64_t)kind | (uint64_t)cfa_register << 8 | (uint64_t)(uint32_t)value << 32};
}

static inline struct slice expression_of(const struct cfi_section *section, int32_t offset, uint16_t size)
{
    return slice_of(section->bytes.data + offset, size);
}

/* Returns true if rules can express the register in which FDE has its return address. */
static inline bool machine_has_return_register(const struct cfi_fde *fde)
{
    return fde->cie.return_register == DWARF_RETURN || MACHINE_LINK_REGISTER != MACHINE_REGISTER_OTHER;
}

/* Returns true if RULE, which was read from a file, is a narrow one whose words are inside the memory that a step
 * checks. */
bool machine_saved_is_valid(const struct machine_rule *rule);

/* Compiles the part of a narrow rule that describes the registers. Returns false if they do not fit into one. */
bool machine_compile_registers(const struct cfi_row *row, struct rule_words *ret_saved);

enum compiled {
    COMPILED_NARROW,
    COMPILED_NOT_NARROW, /* a wide rule may do */
    COMPILED_REJECTED,
};

/* Compiles a narrow rule. SAVED is the result of machine_compile_registers; it counts only if IS_USUAL. */
enum compiled machine_compile_narrow(const struct cfi_section *section, const struct cfi_fde *fde,
                                     const struct cfi_row *row, bool is_usual, const struct rule_words *saved,
                                     struct rule_words *ret_rule);

/* Compiles a wide rule, whose expressions stay in the section. Returns false if the row cannot be followed. */
bool machine_compile_wide(const struct cfi_section *section, const struct cfi_fde *fde, const struct cfi_row *row,
                          struct wide_rule *ret_wide);

/* Compiles the rule for a few bytes of code between two FDEs, where BEFORE is the last rule of the first and AFTER the
 * first rule of the second. Returns false if the code is unknown. */
bool machine_gap_rule(const struct machine_rule *before, const struct machine_rule *after, struct rule_words *ret_rule);

/* Follows WIDE to the caller, as machine_step does. */
enum machine_step machine_step_wide(const struct frame_table *table, const struct wide_rule *wide,
                                    struct unwind_registers *registers, struct unwind_memory *memory);

#endif
