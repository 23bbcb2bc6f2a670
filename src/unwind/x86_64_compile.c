/* x86-64: from one row of call frame information to a rule. Signal-safe: nothing of libc is called.
 *
 * Sources: System V ABI for AMD64 §3.6 (register numbers), DWARF 5 §6.4 (rules), the PLT's expression as the linkers
 * write it. SPDX-License-Identifier: MIT */
#include "unwind/expression_private.h"
#include "unwind/x86_64_rules_private.h"

enum { SAVED_WORDS_MAX = UINT8_MAX };

static const uint8_t dwarf_of_machine[MACHINE_REGISTERS] = {
    [MACHINE_IP] = DWARF_RETURN, [MACHINE_SP] = DWARF_RSP, [MACHINE_FP] = DWARF_RBP, [MACHINE_RBX] = 3,
    [MACHINE_R12] = 12,          [MACHINE_R13] = 13,       [MACHINE_R14] = 14,       [MACHINE_R15] = 15,
    [MACHINE_RAX] = 0,           [MACHINE_RDX] = 1,        [MACHINE_RCX] = 2,        [MACHINE_RSI] = 4,
    [MACHINE_RDI] = 5,           [MACHINE_R8] = 8,         [MACHINE_R9] = 9,         [MACHINE_R10] = 10,
    [MACHINE_R11] = 11,
};

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
    static const uint8_t before[] = {OP_BREG0 + DWARF_RSP, 8, OP_BREG16, 0, OP_LIT0 + 15, OP_AND};
    static const uint8_t after[] = {OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS};
    if (expression.size != sizeof(before) + 1 + sizeof(after)) return 0;
    if (!is_equal(expression.data, before, sizeof(before))) return 0;
    if (!is_equal(expression.data + sizeof(before) + 1, after, sizeof(after))) return 0;
    uint8_t literal = expression.data[sizeof(before)];
    return literal > OP_LIT0 && literal <= OP_LIT0 + 15 ? literal - OP_LIT0 : 0;
}

/* Parses "register + offset", and a dereference after it if WITH_DEREFERENCE. */
static bool is_register_offset(struct slice expression, bool with_dereference, uint8_t *ret_register,
                               int32_t *ret_offset)
{
    struct cursor cursor = cursor_of(expression);
    uint8_t code = cursor_u8(&cursor);
    int64_t offset = cursor_sleb128(&cursor);
    if (with_dereference && cursor_u8(&cursor) != OP_DEREF) return false;
    if (cursor.failed || !cursor_at_end(&cursor) || code < OP_BREG0 || code > OP_BREG16) return false;
    if (offset != (int32_t)offset) return false;
    *ret_register = (uint8_t)machine_of_dwarf(code - OP_BREG0);
    *ret_offset = (int32_t)offset;
    return *ret_register != MACHINE_REGISTER_OTHER;
}

/* Expressions stay where they are in the section. */
static bool compile_wide_cfa(const struct cfi_section *section, const struct cfi_row *row, struct wide_rule *wide)
{
    if (!row->cfa_is_expression) {
        wide->cfa_kind = WIDE_CFA_REGISTER;
        wide->cfa_register = (uint8_t)machine_of_dwarf(row->cfa_register);
        wide->cfa_value = row->cfa_offset;
        return wide->cfa_register != MACHINE_REGISTER_OTHER;
    }
    struct slice expression = expression_of(section, row->cfa_expression, row->cfa_expression_size);
    if (is_register_offset(expression, true, &wide->cfa_register, &wide->cfa_value)) {
        wide->cfa_kind = WIDE_CFA_DEREFERENCE;
        return true;
    }
    wide->cfa_kind = WIDE_CFA_EXPRESSION;
    wide->cfa_expression_size = row->cfa_expression_size;
    wide->cfa_value = row->cfa_expression;
    return true;
}

static void compile_wide_saved(const struct cfi_section *section, const struct cfi_rule *rule, struct wide_rule *wide,
                               unsigned number)
{
    struct slice expression = {0};
    uint8_t *other = &wide->saved[number].register_number;
    int32_t *value = &wide->saved[number].value;
    *value = rule->value;
    switch ((enum cfi_rule_kind)rule->kind) {
    case CFI_SAME_VALUE:
        wide->saved[number].kind = WIDE_SAME;
        return;
    case CFI_UNDEFINED:
        wide->saved[number].kind = WIDE_LOST;
        return;
    case CFI_OFFSET:
        wide->saved[number].kind = WIDE_AT_CFA;
        return;
    case CFI_VALUE_OFFSET:
        wide->saved[number].kind = WIDE_IS_CFA;
        return;
    case CFI_REGISTER:
        wide->saved[number].kind = WIDE_IN_REGISTER;
        *other = (uint8_t)machine_of_dwarf((uint64_t)rule->value);
        return;
    case CFI_EXPRESSION:
    case CFI_VALUE_EXPRESSION:
        break;
    }
    expression = expression_of(section, rule->value, rule->expression_size);
    bool is_value = rule->kind == CFI_VALUE_EXPRESSION;
    if (!is_value && is_register_offset(expression, false, other, value)) {
        wide->saved[number].kind = WIDE_AT_REGISTER;
        return;
    }
    wide->saved[number].kind = is_value ? WIDE_IS_EXPRESSION : WIDE_AT_EXPRESSION;
    wide->saved[number].expression_size = rule->expression_size;
}

bool machine_compile_wide(const struct cfi_section *section, const struct cfi_fde *fde, const struct cfi_row *row,
                          struct wide_rule *ret_wide)
{
    memset(ret_wide, 0, sizeof(*ret_wide));
    ret_wide->is_signal_frame = fde->cie.is_signal_frame;
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        compile_wide_saved(section, &row->registers[dwarf_of_machine[i]], ret_wide, i);
    }
    return compile_wide_cfa(section, row, ret_wide);
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
           row->registers[DWARF_RSP].kind == CFI_SAME_VALUE && compile_saved(row, ret_saved);
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

bool machine_compile_one_rule(const struct cfi_section *section, const struct cfi_fde *fde, const struct cfi_row *row,
                              struct machine_rule *ret_rule, struct wide_rule *ret_wide)
{
    struct rule_words saved, rule = rule_words(RULE_ROOT, 0, 0);
    if (fde->cie.return_register != DWARF_RETURN) return false;
    if (row->registers[DWARF_RETURN].kind != CFI_UNDEFINED) {
        bool is_usual = machine_compile_registers(row, &saved);
        enum compiled compiled = machine_compile_narrow(section, fde, row, is_usual, &saved, &rule);
        if (compiled == COMPILED_REJECTED) return false;
        if (compiled == COMPILED_NOT_NARROW) {
            if (!machine_compile_wide(section, fde, row, ret_wide)) return false;
            rule = rule_words(RULE_WIDE, 0, 0);
        }
    }
    memcpy(ret_rule, &rule, sizeof(rule));
    return true;
}
