/* x86-64: from one row of call frame information to a rule. Signal-safe: nothing of libc is called.
 *
 * Sources: System V ABI for AMD64 §3.6 (register numbers), DWARF 5 §6.4 (rules), the PLT's expression as the linkers
 * write it. SPDX-License-Identifier: MIT */
#include "unwind/expression_private.h"
#include "unwind/machine_rules_private.h"

enum {
    SAVED_WORDS_MAX = UINT8_MAX,
    /* Bits of the second 8 bytes of a rule. */
    DEEPEST_SHIFT = 8 * (offsetof(struct machine_rule, deepest_words) - offsetof(struct machine_rule, saved_words)),
};
_Static_assert(offsetof(struct machine_rule, saved_words) == 8, "compile_saved relies on it");

static bool is_equal(const uint8_t *bytes, const uint8_t *expected, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != expected[i]) return false;
    }
    return true;
}

/* Returns the limit in "SP + 8 + ((IP & 15) >= limit) << 3", the linkers' description of an entire PLT; 0 for any other
 * expression. */
static uint32_t plt_limit(struct slice expression)
{
    static const uint8_t before[] = {OP_BREG0 + DWARF_SP, 8, OP_BREG16, 0, OP_LIT0 + 15, OP_AND};
    static const uint8_t after[] = {OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS};
    if (expression.size != sizeof(before) + 1 + sizeof(after)) return 0;
    if (!is_equal(expression.data, before, sizeof(before))) return 0;
    if (!is_equal(expression.data + sizeof(before) + 1, after, sizeof(after))) return 0;
    uint8_t literal = expression.data[sizeof(before)];
    return literal > OP_LIT0 && literal <= OP_LIT0 + 15 ? literal - OP_LIT0 : 0;
}

/* Compiles the places of the surviving registers, the masks and the second word. Returns false if they do not fit into
 * a narrow rule.
 */
static bool compile_saved(const struct cfi_row *row, struct rule_words *rule)
{
    int32_t deepest = 1;
    for (unsigned i = 0; i < MACHINE_SURVIVING_REGISTERS - MACHINE_FP; i++) {
        const struct cfi_rule *saved = &row->registers[dwarf_of_machine[MACHINE_FP + i]];
        if (saved->kind == CFI_SAME_VALUE) continue;
        if (saved->kind == CFI_UNDEFINED) {
            rule->first |= 1u << i << LOST_MASK_SHIFT;
            continue;
        }
        int32_t words = -(saved->value / WORD);
        if (saved->kind != CFI_OFFSET || saved->value % WORD != 0 || words <= 0 || words > SAVED_WORDS_MAX)
            return false;
        rule->first |= 1u << i << SAVED_MASK_SHIFT;
        rule->second |= (uint64_t)words << (8 * i);
        if (words > deepest) deepest = words;
    }
    rule->second |= (uint64_t)deepest << DEEPEST_SHIFT;
    return true;
}

bool machine_compile_registers(const struct cfi_row *row, struct rule_words *ret_saved)
{
    const struct cfi_rule *return_rule = &row->registers[DWARF_RETURN];
    *ret_saved = (struct rule_words){.first = 0};
    return return_rule->kind == CFI_OFFSET && return_rule->value == -WORD &&
           row->registers[DWARF_SP].kind == CFI_SAME_VALUE && compile_saved(row, ret_saved);
}

enum compiled machine_compile_narrow(const struct cfi_section *section, const struct cfi_fde *fde,
                                     const struct cfi_row *row, bool is_usual, const struct rule_words *saved,
                                     struct rule_words *ret_rule)
{
    if (!is_usual || fde->cie.is_signal_frame) return COMPILED_NOT_NARROW;
    if (row->cfa_is_expression) {
        uint32_t limit = plt_limit(expression_of(section, row->cfa_expression, row->cfa_expression_size));
        if (limit == 0 || saved->first != 0) return COMPILED_NOT_NARROW;
        *ret_rule = rule_words(RULE_PLT, 0, (int32_t)limit);
    } else {
        unsigned cfa_register = machine_of_dwarf(row->cfa_register);
        if (cfa_register == MACHINE_REGISTER_OTHER) return COMPILED_REJECTED;
        *ret_rule = rule_words(RULE_REGISTER, cfa_register, row->cfa_offset);
    }
    ret_rule->first |= saved->first;
    ret_rule->second |= saved->second;
    return COMPILED_NARROW;
}

/* Recognizes the system call in glibc's clone and clone3, and the code that follows until it is clear which thread this
 * is, which have no frame information: one FDE ends before it, with only the return address on the stack, and after it
 * begins one for the outermost frame. */
bool machine_gap_rule(const struct machine_rule *before, const struct machine_rule *after, struct rule_words *ret_rule)
{
    bool is_leaf = before->kind == RULE_REGISTER && before->cfa_register == MACHINE_SP && before->value == WORD;
    *ret_rule = rule_words(RULE_CLONE, 0, 0);
    ret_rule->second = (uint64_t)1 << DEEPEST_SHIFT;
    return is_leaf && before->saved_mask == 0 && after->kind == RULE_ROOT;
}

bool machine_saved_is_valid(const struct machine_rule *rule)
{
    bool has_words = rule->kind == RULE_REGISTER;
    if (has_words && rule->deepest_words == 0) return false;
    for (unsigned i = 0; i < sizeof(rule->saved_words); i++) {
        bool is_saved = rule->saved_mask >> i & 1;
        if (is_saved != (rule->saved_words[i] > 0) || rule->saved_words[i] > rule->deepest_words) return false;
    }
    return true;
}
