/* From rows of call frame information to the numbers of rules. A module has some hundred different rules, however large
 * it is. SPDX-License-Identifier: MIT */
#include "unwind/machine_rules_private.h"

enum { INDEX_FIRST_SIZE = 2048, INDEX_PART = RULE_INDEX_SIZE_MAX / FRAME_TABLE_RULES_MAX };

void rule_builder_begin(struct rule_builder *builder)
{
    builder->index_size = INDEX_FIRST_SIZE;
    builder->rules[builder->rule_count++].kind = RULE_NONE;
}

void rule_builder_fini(struct rule_builder *builder)
{
    pages_array_fini(&builder->wide);
    pages_array_fini(&builder->expressions);
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

static uint32_t reject_row(struct rule_builder *builder)
{
    builder->rejected_count++;
    return RULE_NONE;
}

static uint64_t hash_of(struct rule_words rule)
{
    return (rule.first ^ rule.second * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
}

/* Returns the place of RULE in the index, or the free place for it. */
static uint16_t *rule_place(struct rule_builder *builder, struct rule_words rule)
{
    for (uint64_t place = hash_of(rule) >> 32;; place++) {
        uint16_t *number = &builder->index[place & (builder->index_size - 1)];
        if (*number == 0 || is_same_rule(words_of(&builder->rules[*number - 1]), rule)) return number;
    }
}

/* Returns the number of RULE in the index, and adds it if it is new. The index begins small and grows: most modules
 * have a few hundred rules, and each page that is touched costs a fault, and an interrupt of the program's threads if
 * it is read before it is written. */
static uint32_t indexed_number(struct rule_builder *builder, struct rule_words rule)
{
    uint16_t *number = rule_place(builder, rule);
    if (*number != 0) return *number - 1u;
    if (builder->rule_count == FRAME_TABLE_RULES_MAX) return reject_row(builder);
    memcpy(&builder->rules[builder->rule_count++], &rule, sizeof(rule));
    *number = (uint16_t)builder->rule_count;
    if (builder->rule_count > builder->index_size / INDEX_PART) {
        memset(builder->index, 0, builder->index_size * sizeof(builder->index[0]));
        builder->index_size *= 2;
        for (uint32_t i = 1; i < builder->rule_count; i++)
            *rule_place(builder, words_of(&builder->rules[i])) = (uint16_t)(i + 1);
    }
    return builder->rule_count - 1;
}

static uint32_t rule_number(struct rule_builder *builder, struct rule_words rule)
{
    enum { RECENT = sizeof(builder->recent) / sizeof(builder->recent[0]) };
    uint16_t *recent = &builder->recent[(hash_of(rule) >> 48) % RECENT];
    if (!is_same_rule(words_of(&builder->rules[*recent]), rule)) *recent = (uint16_t)indexed_number(builder, rule);
    return *recent;
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
    if (machine_compile_wide(builder->section, fde, row, &wide) && keep_expressions(builder, &wide) &&
        add_wide(builder, &wide, &number)) {
        return rule_number(builder, rule_words(RULE_WIDE, 0, number));
    }
    builder->expressions.count = expressions_before;
    return reject_row(builder);
}

uint32_t machine_compile_rule(const struct cfi_fde *fde, const struct cfi_row *row, struct rule_builder *builder)
{
    if (!machine_has_return_register(fde)) return reject_row(builder);
    if (row->registers[fde->cie.return_register].kind == CFI_UNDEFINED)
        return rule_number(builder, rule_words(RULE_ROOT, 0, 0));
    if (row->registers_version != builder->registers_version) { /* half of the rows change nothing but the CFA */
        builder->registers_version = row->registers_version;
        builder->is_usual = machine_compile_registers(row, &builder->saved);
    }
    struct rule_words rule;
    switch (machine_compile_narrow(builder->section, fde, row, builder->is_usual, &builder->saved, &rule)) {
    case COMPILED_NARROW:
        return rule_number(builder, rule);
    case COMPILED_NOT_NARROW:
        return wide_number(fde, row, builder);
    case COMPILED_REJECTED:
        break;
    }
    return reject_row(builder);
}

uint32_t machine_rule_between(uint32_t before, uint32_t after, struct rule_builder *builder)
{
    struct rule_words rule;
    bool is_known = machine_gap_rule(&builder->rules[before], &builder->rules[after], &rule);
    return is_known ? rule_number(builder, rule) : RULE_NONE;
}

static bool is_rule_valid(const struct frame_table *table, const struct machine_rule *rule)
{
    if (rule->kind >= RULE_KINDS || rule->cfa_register >= MACHINE_REGISTERS) return false;
    if (rule->kind == RULE_WIDE && (rule->value < 0 || (uint32_t)rule->value >= table->wide_count)) return false;
    return machine_saved_is_valid(rule);
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
