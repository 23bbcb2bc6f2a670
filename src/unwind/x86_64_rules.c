/* x86-64: from rows of call frame information to rules. A module has some hundred different ones, however large it is.
 *
 * Sources: System V ABI for AMD64 §3.6 (register numbers), DWARF 5 §6.4 (rules), the PLT's expression as the linkers
 * write it. SPDX-License-Identifier: MIT */
#include "unwind/expression_private.h"
#include "unwind/machine.h"

#include <stddef.h>

enum {
    WORD = 8,
    DWARF_RBP = 6,
    DWARF_RSP = 7,
    DWARF_RETURN = 16,
    SAVED_WORDS_MAX = UINT8_MAX,
    RULE_INDEX_SIZE = 4 * FRAME_TABLE_RULES_MAX,

    /* Bits of the first and the second 8 bytes of a struct machine_rule. */
    SAVED_MASK_SHIFT = 8 * offsetof(struct machine_rule, saved_mask),
    LOST_MASK_SHIFT = 8 * offsetof(struct machine_rule, lost_mask),
    DEEPEST_SHIFT = 8 * (offsetof(struct machine_rule, deepest_words) - offsetof(struct machine_rule, saved_words)),
};
_Static_assert(offsetof(struct machine_rule, cfa_register) == 1 && offsetof(struct machine_rule, value) == 4 &&
                   offsetof(struct machine_rule, saved_words) == 8,
               "rule_words relies on it");

static const uint8_t dwarf_of_machine[MACHINE_REGISTERS] = {
    [MACHINE_IP] = DWARF_RETURN, [MACHINE_SP] = DWARF_RSP, [MACHINE_FP] = DWARF_RBP, [MACHINE_RBX] = 3,
    [MACHINE_R12] = 12,          [MACHINE_R13] = 13,       [MACHINE_R14] = 14,       [MACHINE_R15] = 15,
    [MACHINE_RAX] = 0,           [MACHINE_RDX] = 1,        [MACHINE_RCX] = 2,        [MACHINE_RSI] = 4,
    [MACHINE_RDI] = 5,           [MACHINE_R8] = 8,         [MACHINE_R9] = 9,         [MACHINE_R10] = 10,
    [MACHINE_R11] = 11,
};

bool rule_builder_init(struct rule_builder *builder)
{
    *builder = (struct rule_builder){.section = NULL};
    builder->index = pages_allocate(RULE_INDEX_SIZE * sizeof(builder->index[0]));
    struct machine_rule *none = pages_array_add(&builder->rules, sizeof(*none), FRAME_TABLE_RULES_MAX);
    if (none) *none = (struct machine_rule){.kind = RULE_NONE};
    return builder->index && none;
}

void rule_builder_fini(struct rule_builder *builder)
{
    pages_free(builder->index, RULE_INDEX_SIZE * sizeof(builder->index[0]));
    pages_array_fini(&builder->rules);
    pages_array_fini(&builder->wide);
    pages_array_fini(&builder->expressions);
    *builder = (struct rule_builder){0};
}

static struct rule_words words_of(const struct machine_rule *rule)
{
    struct rule_words words;
    memcpy(&words, rule, sizeof(words));
    return words;
}

static bool is_same_rule(struct rule_words a, struct rule_words b)
{
    return a.first == b.first && a.second == b.second;
}

static struct rule_words rule_words(enum rule_kind kind, unsigned cfa_register, int32_t value)
{
    return (struct rule_words){.first = (uint64_t)kind | (uint64_t)cfa_register << 8 | (uint64_t)(uint32_t)value << 32};
}

/* The number of RULE in the index, where it is added unless it is there already. */
static uint32_t indexed_number(struct rule_builder *builder, struct rule_words rule, uint64_t hash)
{
    const struct machine_rule *rules = builder->rules.items;
    for (uint64_t place = hash >> 32;; place++) {
        uint16_t *number = &builder->index[place % RULE_INDEX_SIZE];
        if (*number != 0 && !is_same_rule(words_of(&rules[*number - 1]), rule)) continue;
        if (*number == 0) {
            struct machine_rule *added = pages_array_add(&builder->rules, sizeof(*added), FRAME_TABLE_RULES_MAX);
            if (!added) {
                builder->refused_count++;
                return RULE_NONE;
            }
            memcpy(added, &rule, sizeof(*added));
            *number = (uint16_t)builder->rules.count;
        }
        return *number - 1u;
    }
}

static uint32_t rule_number(struct rule_builder *builder, struct rule_words rule)
{
    enum { RECENT = sizeof(builder->recent) / sizeof(builder->recent[0]) };
    uint64_t hash = (rule.first ^ rule.second * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
    uint16_t *recent = &builder->recent[(hash >> 48) % RECENT];
    const struct machine_rule *rules = builder->rules.items;
    if (!is_same_rule(words_of(&rules[*recent]), rule)) *recent = (uint16_t)indexed_number(builder, rule, hash);
    return *recent;
}

static uint32_t refuse(struct rule_builder *builder)
{
    builder->refused_count++;
    return RULE_NONE;
}

static struct slice expression_of(const struct cfi_section *section, int32_t offset, uint16_t size)
{
    return slice_of(section->bytes.data + offset, size);
}

/* "SP + 8 + ((IP & 15) >= limit) << 3", the linkers' description of a whole PLT; 0 if it is something else. */
static uint32_t plt_limit(struct slice expression)
{
    static const uint8_t before[] = {OP_BREG0 + DWARF_RSP, 8, OP_BREG16, 0, OP_LIT0 + 15, OP_AND};
    static const uint8_t after[] = {OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS};
    if (expression.size != sizeof(before) + 1 + sizeof(after)) return 0;
    if (memcmp(expression.data, before, sizeof(before)) != 0) return 0;
    if (memcmp(expression.data + sizeof(before) + 1, after, sizeof(after)) != 0) return 0;
    uint8_t literal = expression.data[sizeof(before)];
    return literal > OP_LIT0 && literal <= OP_LIT0 + 15 ? literal - OP_LIT0 : 0;
}

/* "register + offset", and a dereference behind it if WITH_DEREFERENCE. */
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

static bool add_wide(struct rule_builder *builder, const struct wide_rule *wide, int32_t *ret_number)
{
    /* Nearly always one of the last few again. Rules with kept expressions are never equal: their places differ. */
    const struct wide_rule *rules = builder->wide.items;
    size_t count = builder->wide.count;
    for (size_t i = count; i > 0 && i + 64 > count; i--) {
        if (memcmp(&rules[i - 1], wide, sizeof(*wide)) != 0) continue;
        *ret_number = (int32_t)i - 1;
        return true;
    }
    struct wide_rule *added = pages_array_add(&builder->wide, sizeof(*added), FRAME_TABLE_WIDE_MAX);
    if (!added) return false;
    *added = *wide;
    *ret_number = (int32_t)count;
    return true;
}

static bool compile_wide(const struct cfi_section *section, const struct cfi_fde *fde, const struct cfi_row *row,
                         struct wide_rule *ret_wide)
{
    memset(ret_wide, 0, sizeof(*ret_wide));
    ret_wide->is_signal_frame = fde->cie.is_signal_frame;
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        compile_wide_saved(section, &row->registers[dwarf_of_machine[i]], ret_wide, i);
    }
    return compile_wide_cfa(section, row, ret_wide);
}

static bool keep_expression(struct rule_builder *builder, struct slice expression, int32_t *ret_place)
{
    *ret_place = (int32_t)builder->expressions.count;
    for (size_t i = 0; i < expression.size; i++) {
        uint8_t *byte = pages_array_add(&builder->expressions, 1, FRAME_TABLE_EXPRESSIONS_MAX);
        if (!byte) return false;
        *byte = expression.data[i];
    }
    return true;
}

/* Copies the expressions of WIDE from the section into the table's. */
static bool keep_expressions(struct rule_builder *builder, struct wide_rule *wide)
{
    const struct cfi_section *section = builder->section;
    if (wide->cfa_kind == WIDE_CFA_EXPRESSION) {
        struct slice expression = expression_of(section, wide->cfa_value, wide->cfa_expression_size);
        if (!keep_expression(builder, expression, &wide->cfa_value)) return false;
    }
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        uint8_t kind = wide->saved[i].kind;
        if (kind != WIDE_AT_EXPRESSION && kind != WIDE_IS_EXPRESSION) continue;
        struct slice expression = expression_of(section, wide->saved[i].value, wide->saved[i].expression_size);
        if (!keep_expression(builder, expression, &wide->saved[i].value)) return false;
    }
    return true;
}

static uint32_t wide_number(const struct cfi_fde *fde, const struct cfi_row *row, struct rule_builder *builder)
{
    struct wide_rule wide;
    int32_t number = 0;
    size_t expressions_before = builder->expressions.count;
    if (compile_wide(builder->section, fde, row, &wide) && keep_expressions(builder, &wide) &&
        add_wide(builder, &wide, &number)) {
        return rule_number(builder, rule_words(RULE_WIDE, 0, number));
    }
    builder->expressions.count = expressions_before;
    return refuse(builder);
}

/* Where the surviving registers are, if that fits into a narrow rule: the masks and the second word. */
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

/* The part of a narrow rule that tells of the registers. False if they do not fit into one. */
static bool compile_registers(const struct cfi_row *row, struct rule_words *ret_saved)
{
    const struct cfi_rule *return_rule = &row->registers[DWARF_RETURN];
    *ret_saved = (struct rule_words){.first = 0};
    return return_rule->kind == CFI_OFFSET && return_rule->value == -WORD &&
           row->registers[DWARF_RSP].kind == CFI_SAME_VALUE && compile_saved(row, ret_saved);
}

enum compiled {
    COMPILED_NARROW,
    COMPILED_NOT_NARROW,
    COMPILED_REFUSED,
};

/* SAVED is what compile_registers gave, if IS_USUAL. */
static enum compiled compile_narrow(const struct cfi_section *section, const struct cfi_fde *fde,
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
        if (cfa_register == MACHINE_REGISTER_OTHER) return COMPILED_REFUSED;
        *ret_rule = rule_words(RULE_REGISTER, cfa_register, row->cfa_offset);
    }
    ret_rule->first |= saved->first;
    ret_rule->second |= saved->second;
    return COMPILED_NARROW;
}

uint32_t machine_compile_rule(const struct cfi_fde *fde, const struct cfi_row *row, struct rule_builder *builder)
{
    if (fde->cie.return_register != DWARF_RETURN) return refuse(builder);
    if (row->registers[DWARF_RETURN].kind == CFI_UNDEFINED) return rule_number(builder, rule_words(RULE_ROOT, 0, 0));
    if (row->registers_version != builder->registers_version) { /* half of the rows change nothing but the CFA */
        builder->registers_version = row->registers_version;
        builder->is_usual = compile_registers(row, &builder->saved);
    }
    struct rule_words rule;
    switch (compile_narrow(builder->section, fde, row, builder->is_usual, &builder->saved, &rule)) {
    case COMPILED_NARROW:
        return rule_number(builder, rule);
    case COMPILED_NOT_NARROW:
        return wide_number(fde, row, builder);
    case COMPILED_REFUSED:
        break;
    }
    return refuse(builder);
}

bool machine_compile_one_rule(const struct cfi_section *section, const struct cfi_fde *fde, const struct cfi_row *row,
                              struct machine_rule *ret_rule, struct wide_rule *ret_wide)
{
    struct rule_words saved, rule = rule_words(RULE_ROOT, 0, 0);
    if (fde->cie.return_register != DWARF_RETURN) return false;
    if (row->registers[DWARF_RETURN].kind != CFI_UNDEFINED) {
        bool is_usual = compile_registers(row, &saved);
        enum compiled compiled = compile_narrow(section, fde, row, is_usual, &saved, &rule);
        if (compiled == COMPILED_REFUSED) return false;
        if (compiled == COMPILED_NOT_NARROW) {
            if (!compile_wide(section, fde, row, ret_wide)) return false;
            rule = rule_words(RULE_WIDE, 0, 0);
        }
    }
    memcpy(ret_rule, &rule, sizeof(rule));
    return true;
}

/* glibc leaves the system call in clone and clone3, and what follows until it is clear which thread this is, without
 * frame information: one FDE ends before it, with nothing but the return address on the stack, and behind it begins one
 * that says that this is the outermost frame. */
uint32_t machine_rule_between(uint32_t before, uint32_t behind, struct rule_builder *builder)
{
    const struct machine_rule *rules = builder->rules.items, *leaf = &rules[before];
    bool is_leaf = leaf->kind == RULE_REGISTER && leaf->cfa_register == MACHINE_SP && leaf->value == WORD;
    if (!is_leaf || leaf->saved_mask != 0 || rules[behind].kind != RULE_ROOT) return RULE_NONE;
    struct rule_words rule = rule_words(RULE_CLONE, 0, 0);
    rule.second = (uint64_t)1 << DEEPEST_SHIFT;
    return rule_number(builder, rule);
}

static bool is_rule_valid(const struct frame_table *table, const struct machine_rule *rule)
{
    if (rule->kind >= RULE_KINDS || rule->cfa_register >= MACHINE_REGISTERS) return false;
    if (rule->kind == RULE_WIDE && (rule->value < 0 || (uint32_t)rule->value >= table->wide_count)) return false;
    bool has_words = rule->kind == RULE_REGISTER;
    if (has_words && rule->deepest_words == 0) return false;
    for (unsigned i = 0; i < sizeof(rule->saved_words); i++) {
        bool is_saved = rule->saved_mask >> i & 1;
        if (is_saved != (rule->saved_words[i] > 0) || rule->saved_words[i] > rule->deepest_words) return false;
    }
    return true;
}

static bool is_expression_valid(const struct frame_table *table, int32_t place, uint16_t size)
{
    return place >= 0 && (uint32_t)place <= table->expression_bytes &&
           size <= table->expression_bytes - (uint32_t)place;
}

static bool is_wide_rule_valid(const struct frame_table *table, const struct wide_rule *wide)
{
    if (wide->cfa_kind >= WIDE_CFA_KINDS) return false;
    if (wide->cfa_kind == WIDE_CFA_EXPRESSION &&
        !is_expression_valid(table, wide->cfa_value, wide->cfa_expression_size)) {
        return false;
    }
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        uint8_t kind = wide->saved[i].kind;
        if (kind >= WIDE_SAVED_KINDS) return false;
        if (kind != WIDE_AT_EXPRESSION && kind != WIDE_IS_EXPRESSION) continue;
        if (!is_expression_valid(table, wide->saved[i].value, wide->saved[i].expression_size)) return false;
    }
    return true;
}

bool machine_rules_are_valid(const struct frame_table *table)
{
    for (uint32_t i = 0; i < table->rule_count; i++) {
        if (!is_rule_valid(table, &table->rules[i])) return false;
    }
    for (uint32_t i = 0; i < table->wide_count; i++) {
        if (!is_wide_rule_valid(table, &table->wide[i])) return false;
    }
    return table->rules[0].kind == RULE_NONE;
}
