/* Compiles one row, for a table or for a single lookup.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_X86_64_RULES_PRIVATE_H
#define OFFBEAT_UNWIND_X86_64_RULES_PRIVATE_H

#include "unwind/machine.h"

#include <stddef.h>

enum {
    WORD = 8,
    DWARF_RBP = 6,
    DWARF_RSP = 7,
    DWARF_RETURN = 16,

    /* Bits of the first and the second 8 bytes of a struct machine_rule. */
    SAVED_MASK_SHIFT = 8 * offsetof(struct machine_rule, saved_mask),
    LOST_MASK_SHIFT = 8 * offsetof(struct machine_rule, lost_mask),
    DEEPEST_SHIFT = 8 * (offsetof(struct machine_rule, deepest_words) - offsetof(struct machine_rule, saved_words)),
};
_Static_assert(offsetof(struct machine_rule, cfa_register) == 1 && offsetof(struct machine_rule, value) == 4 &&
                   offsetof(struct machine_rule, saved_words) == 8,
               "rule_words relies on it");

static inline struct rule_words rule_words(enum rule_kind kind, unsigned cfa_register, int32_t value)
{
    return (struct rule_words){.first = (uint64_t)kind | (uint64_t)cfa_register << 8 | (uint64_t)(uint32_t)value << 32};
}

static inline struct slice expression_of(const struct cfi_section *section, int32_t offset, uint16_t size)
{
    return slice_of(section->bytes.data + offset, size);
}

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

#endif
