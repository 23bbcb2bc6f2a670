/* AArch64: from one row of call frame information to a rule. Signal-safe: nothing of libc is called.
 *
 * Sources: DWARF for AArch64 §4.1 (register numbers), DWARF 5 §6.4 (rules).  SPDX-License-Identifier: MIT */
#include "unwind/machine_rules_private.h"

enum {
    /* Bits of the second 8 bytes of a rule. */
    RETURN_SHIFT = 8 * (offsetof(struct machine_rule, return_words) - offsetof(struct machine_rule, fp_words)),
    DEEPEST_SHIFT = 8 * (offsetof(struct machine_rule, deepest_words) - offsetof(struct machine_rule, fp_words)),
};
_Static_assert(offsetof(struct machine_rule, fp_words) == 8, "machine_compile_registers relies on it");

/* Converts the place of a register to a distance below the CFA. Returns 0 if a narrow rule cannot express it. */
static uint64_t words_below_cfa(const struct cfi_rule *rule)
{
    int32_t words = -(rule->value / WORD);
    bool fits = rule->kind == CFI_OFFSET && rule->value % WORD == 0 && words > 0 && words <= UINT16_MAX;
    return fits ? (uint64_t)words : 0;
}

bool machine_compile_registers(const struct cfi_row *row, struct rule_words *ret_saved)
{
    const struct cfi_rule *fp = &row->registers[DWARF_FP], *link = &row->registers[DWARF_RETURN];
    uint64_t fp_words = words_below_cfa(fp), return_words = words_below_cfa(link);
    *ret_saved = (struct rule_words){.first = 0};
    if (row->registers[DWARF_SP].kind != CFI_SAME_VALUE) return false;
    if (return_words == 0 && link->kind != CFI_SAME_VALUE) return false;
    if (fp_words == 0 && fp->kind != CFI_SAME_VALUE && fp->kind != CFI_UNDEFINED) return false;
    uint64_t saved = (fp_words > 0 ? SAVED_FP : 0) | (return_words > 0 ? SAVED_RETURN : 0);
    uint64_t lost = fp->kind == CFI_UNDEFINED ? SAVED_FP : 0;
    ret_saved->first = saved << SAVED_MASK_SHIFT | lost << LOST_MASK_SHIFT;
    ret_saved->second =
        fp_words | return_words << RETURN_SHIFT | (fp_words > return_words ? fp_words : return_words) << DEEPEST_SHIFT;
    return true;
}

enum compiled machine_compile_narrow(const struct cfi_section *section, const struct cfi_fde *fde,
                                     const struct cfi_row *row, bool is_usual, const struct rule_words *saved,
                                     struct rule_words *ret_rule)
{
    (void)section;
    bool has_usual_return = fde->cie.return_register == DWARF_RETURN;
    if (!is_usual || !has_usual_return || fde->cie.is_signal_frame || row->cfa_is_expression)
        return COMPILED_NOT_NARROW;
    unsigned cfa_register = machine_of_dwarf(row->cfa_register);
    if (cfa_register == MACHINE_REGISTER_OTHER) return COMPILED_REJECTED;
    *ret_rule = rule_words(RULE_REGISTER, cfa_register, row->cfa_offset);
    ret_rule->first |= saved->first;
    ret_rule->second |= saved->second;
    return COMPILED_NARROW;
}

/* Knows no such code: glibc's clone is described from its first to its last instruction. */
bool machine_gap_rule(const struct machine_rule *before, const struct machine_rule *after, struct rule_words *ret_rule)
{
    (void)before;
    (void)after;
    (void)ret_rule;
    return false;
}

bool machine_saved_is_valid(const struct machine_rule *rule)
{
    bool fp_is_saved = rule->saved_mask & SAVED_FP, return_is_saved = rule->saved_mask & SAVED_RETURN;
    return fp_is_saved == (rule->fp_words > 0) && return_is_saved == (rule->return_words > 0) &&
           rule->fp_words <= rule->deepest_words && rule->return_words <= rule->deepest_words;
}
