/* x86-64: rules and steps.
 *
 * A 4-byte rule says: the CFA is SP or FP plus a multiple of 8, the return address lies below it, and FP is unchanged,
 * lost, or saved so many words below the CFA. That is all but a few of the rows that compilers make.
 *
 *   bits 0-2   kind
 *   bits 3-19  CFA offset in words, or the limit of a PLT rule, or the number of a wide rule
 *   bits 20-31 how many words below the CFA FP is saved; 0: unchanged; FP_LOST: undefined
 *
 * Sources: System V ABI for AMD64 §3.6 (register numbers), DWARF 5 §2.5 and §6.4 (expressions, rules), the PLT's
 * expression as the linkers write it. SPDX-License-Identifier: MIT */
#include "unwind/machine.h"

enum rule_kind {
    KIND_NONE = RULE_NONE,
    KIND_SP,
    KIND_FP,
    KIND_ROOT,
    KIND_PLT, /* CFA = SP + 8, and 8 more once the stub has pushed, which the low bits of IP tell */
    KIND_WIDE,
};

enum {
    VALUE_SHIFT = 3,
    VALUE_BITS = 17,
    VALUE_MAX = (1 << VALUE_BITS) - 1,
    FP_SHIFT = 20,
    FP_LOST = 0xfff,
    WORD = 8,
    DWARF_RBP = 6,
    DWARF_RSP = 7,
    DWARF_RETURN = 16,
    EXPRESSION_STACK_MAX = 16,
    EXPRESSION_STEPS_MAX = 128,
};

static const uint8_t machine_of_dwarf[CFI_REGISTERS] = {
    [0] = MACHINE_REGISTER_OTHER, [1] = MACHINE_REGISTER_OTHER, [2] = MACHINE_REGISTER_OTHER,
    [3] = MACHINE_RBX,            [4] = MACHINE_REGISTER_OTHER, [5] = MACHINE_REGISTER_OTHER,
    [DWARF_RBP] = MACHINE_FP,     [DWARF_RSP] = MACHINE_SP,     [8] = MACHINE_REGISTER_OTHER,
    [9] = MACHINE_REGISTER_OTHER, [10] = MACHINE_R10,           [11] = MACHINE_REGISTER_OTHER,
    [12] = MACHINE_R12,           [13] = MACHINE_R13,           [14] = MACHINE_R14,
    [15] = MACHINE_R15,           [DWARF_RETURN] = MACHINE_IP,
};

static const uint8_t dwarf_of_machine[MACHINE_REGISTERS] = {
    [MACHINE_IP] = DWARF_RETURN, [MACHINE_SP] = DWARF_RSP, [MACHINE_FP] = DWARF_RBP,
    [MACHINE_RBX] = 3,           [MACHINE_R12] = 12,       [MACHINE_R13] = 13,
    [MACHINE_R14] = 14,          [MACHINE_R15] = 15,       [MACHINE_R10] = 10,
};

/* --- Compiling ---------------------------------------------------------------------------------------------------- */

enum {
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_SWAP = 0x16,
    OP_AND = 0x1a,
    OP_MINUS = 0x1c,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG16 = 0x80,
    OP_NOP = 0x96,
};

static struct slice expression_of(const struct rule_builder *builder, int32_t offset, uint16_t size)
{
    return slice_of(builder->section->bytes.data + offset, size);
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
static bool is_register_offset(struct slice expression, bool with_dereference, uint8_t *ret_register, int32_t *ret_offset)
{
    struct cursor cursor = cursor_of(expression);
    uint8_t code = cursor_u8(&cursor);
    int64_t offset = cursor_sleb128(&cursor);
    if (with_dereference && cursor_u8(&cursor) != OP_DEREF) return false;
    if (cursor.failed || !cursor_at_end(&cursor) || code < OP_BREG0 || code > OP_BREG16) return false;
    if (offset != (int32_t)offset) return false;
    *ret_register = machine_of_dwarf[code - OP_BREG0];
    *ret_offset = (int32_t)offset;
    return *ret_register != MACHINE_REGISTER_OTHER;
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

static bool compile_wide_cfa(const struct cfi_row *row, struct rule_builder *builder, struct wide_rule *wide)
{
    if (!row->cfa_is_expression) {
        wide->cfa_kind = WIDE_CFA_REGISTER;
        wide->cfa_register = row->cfa_register < CFI_REGISTERS ? machine_of_dwarf[row->cfa_register] : MACHINE_REGISTER_OTHER;
        wide->cfa_value = row->cfa_offset;
        return wide->cfa_register != MACHINE_REGISTER_OTHER;
    }
    struct slice expression = expression_of(builder, row->cfa_offset, row->cfa_expression_size);
    if (is_register_offset(expression, true, &wide->cfa_register, &wide->cfa_value)) {
        wide->cfa_kind = WIDE_CFA_DEREFERENCE;
        return true;
    }
    wide->cfa_kind = WIDE_CFA_EXPRESSION;
    wide->cfa_expression_size = row->cfa_expression_size;
    return keep_expression(builder, expression, &wide->cfa_value);
}

static bool compile_wide_saved(const struct cfi_rule *rule, struct rule_builder *builder, struct wide_rule *wide,
                               unsigned number)
{
    struct slice expression = {0};
    wide->saved[number].value = rule->value;
    switch ((enum cfi_rule_kind)rule->kind) {
    case CFI_SAME_VALUE: wide->saved[number].kind = WIDE_SAME; return true;
    case CFI_UNDEFINED: wide->saved[number].kind = WIDE_LOST; return true;
    case CFI_OFFSET: wide->saved[number].kind = WIDE_AT_CFA; return true;
    case CFI_VALUE_OFFSET: wide->saved[number].kind = WIDE_IS_CFA; return true;
    case CFI_REGISTER:
        wide->saved[number].kind = WIDE_IN_REGISTER;
        wide->saved[number].register_number =
            rule->value >= 0 && rule->value < CFI_REGISTERS ? machine_of_dwarf[rule->value] : MACHINE_REGISTER_OTHER;
        return true;
    case CFI_EXPRESSION:
    case CFI_VALUE_EXPRESSION: break;
    }
    expression = expression_of(builder, rule->value, rule->expression_size);
    bool is_value = rule->kind == CFI_VALUE_EXPRESSION;
    if (!is_value && is_register_offset(expression, false, &wide->saved[number].register_number, &wide->saved[number].value)) {
        wide->saved[number].kind = WIDE_AT_REGISTER;
        return true;
    }
    wide->saved[number].kind = is_value ? WIDE_IS_EXPRESSION : WIDE_AT_EXPRESSION;
    wide->saved[number].expression_size = rule->expression_size;
    return keep_expression(builder, expression, &wide->saved[number].value);
}

static uint32_t compile_wide(const struct cfi_fde *fde, const struct cfi_row *row, struct rule_builder *builder)
{
    struct wide_rule wide;
    memset(&wide, 0, sizeof(wide));
    wide.is_signal_frame = fde->cie.is_signal_frame;
    size_t expressions_before = builder->expressions.count;
    bool compiled = compile_wide_cfa(row, builder, &wide);
    for (unsigned i = 0; i < MACHINE_REGISTERS && compiled; i++) {
        compiled = compile_wide_saved(&row->registers[dwarf_of_machine[i]], builder, &wide, i);
    }
    if (!compiled) {
        builder->expressions.count = expressions_before;
        return RULE_NONE;
    }
    /* Nearly always one of the last few again. Rules with kept expressions are never equal: their places differ. */
    const struct wide_rule *rules = builder->wide.items;
    size_t count = builder->wide.count;
    for (size_t i = count; i > 0 && i + 64 > count; i--) {
        if (memcmp(&rules[i - 1], &wide, sizeof(wide)) == 0) return (uint32_t)(KIND_WIDE | (i - 1) << VALUE_SHIFT);
    }
    struct wide_rule *added = pages_array_add(&builder->wide, sizeof(*added), FRAME_TABLE_WIDE_MAX);
    if (!added) return RULE_NONE;
    *added = wide;
    return (uint32_t)(KIND_WIDE | count << VALUE_SHIFT);
}

uint32_t machine_compile_rule(const struct cfi_fde *fde, const struct cfi_row *row, struct rule_builder *builder)
{
    const struct cfi_rule *return_rule = &row->registers[DWARF_RETURN];
    const struct cfi_rule *fp_rule = &row->registers[DWARF_RBP];
    if (fde->cie.return_register != DWARF_RETURN) return RULE_NONE;
    if (return_rule->kind == CFI_UNDEFINED) return KIND_ROOT;
    if (fde->cie.is_signal_frame || return_rule->kind != CFI_OFFSET || return_rule->value != -WORD) {
        return compile_wide(fde, row, builder);
    }

    uint32_t fp = 0;
    if (fp_rule->kind == CFI_UNDEFINED) fp = FP_LOST;
    else if (fp_rule->kind == CFI_OFFSET && fp_rule->value < 0 && fp_rule->value % WORD == 0 &&
             -(fp_rule->value / WORD) < FP_LOST) fp = (uint32_t)-(fp_rule->value / WORD);
    else if (fp_rule->kind != CFI_SAME_VALUE) return compile_wide(fde, row, builder);

    if (row->cfa_is_expression) {
        uint32_t limit = plt_limit(expression_of(builder, row->cfa_offset, row->cfa_expression_size));
        if (limit && fp == 0) return KIND_PLT | limit << VALUE_SHIFT;
        return compile_wide(fde, row, builder);
    }
    bool from_sp = row->cfa_register == DWARF_RSP, from_fp = row->cfa_register == DWARF_RBP;
    int32_t words = row->cfa_offset / WORD;
    if ((!from_sp && !from_fp) || row->cfa_offset % WORD != 0 || words <= 0 || words > VALUE_MAX) {
        return compile_wide(fde, row, builder);
    }
    return (from_sp ? KIND_SP : KIND_FP) | (uint32_t)words << VALUE_SHIFT | fp << FP_SHIFT;
}

/* --- Stepping: signal-safe ---------------------------------------------------------------------------------------- */

struct evaluation {
    uint64_t stack[EXPRESSION_STACK_MAX];
    unsigned depth;
    bool failed;
};

static void push(struct evaluation *evaluation, uint64_t value)
{
    if (evaluation->depth == EXPRESSION_STACK_MAX) evaluation->failed = true;
    else evaluation->stack[evaluation->depth++] = value;
}

static uint64_t pop(struct evaluation *evaluation)
{
    if (evaluation->depth == 0) {
        evaluation->failed = true;
        return 0;
    }
    return evaluation->stack[--evaluation->depth];
}

static uint64_t binary_operation(uint8_t code, uint64_t left, uint64_t right)
{
    int64_t signed_left = (int64_t)left, signed_right = (int64_t)right;
    switch (code) {
    case OP_AND: return left & right;
    case OP_OR: return left | right;
    case OP_XOR: return left ^ right;
    case OP_PLUS: return left + right;
    case OP_MINUS: return left - right;
    case OP_MUL: return left * right;
    case OP_SHL: return right < 64 ? left << right : 0;
    case OP_SHR: return right < 64 ? left >> right : 0;
    case OP_SHRA: return (uint64_t)(signed_left >> (right < 64 ? right : 63));
    case OP_EQ: return left == right;
    case OP_NE: return left != right;
    case OP_GE: return signed_left >= signed_right;
    case OP_GT: return signed_left > signed_right;
    case OP_LE: return signed_left <= signed_right;
    default: return signed_left < signed_right; /* OP_LT */
    }
}

static void push_constant(struct evaluation *evaluation, uint8_t code, struct cursor *cursor)
{
    switch (code) {
    case OP_CONST1U: push(evaluation, cursor_u8(cursor)); break;
    case OP_CONST1S: push(evaluation, (uint64_t)(int64_t)(int8_t)cursor_u8(cursor)); break;
    case OP_CONST2U: push(evaluation, cursor_u16(cursor)); break;
    case OP_CONST2S: push(evaluation, (uint64_t)(int64_t)(int16_t)cursor_u16(cursor)); break;
    case OP_CONST4U: push(evaluation, cursor_u32(cursor)); break;
    case OP_CONST4S: push(evaluation, (uint64_t)(int64_t)(int32_t)cursor_u32(cursor)); break;
    case OP_CONSTU: push(evaluation, cursor_uleb128(cursor)); break;
    case OP_CONSTS: push(evaluation, (uint64_t)cursor_sleb128(cursor)); break;
    default: push(evaluation, cursor_u64(cursor)); break; /* OP_CONST8U, OP_CONST8S */
    }
}

static void jump(struct cursor *cursor, bool taken)
{
    int16_t distance = (int16_t)cursor_u16(cursor);
    if (!taken || cursor->failed) return;
    ptrdiff_t target = (cursor->position - cursor->start) + distance;
    if (target < 0 || target > cursor->end - cursor->start) cursor->failed = true;
    else cursor->position = cursor->start + target;
}

static void evaluate_operation(struct evaluation *evaluation, uint8_t code, struct cursor *cursor,
                               const struct unwind_registers *registers, struct unwind_memory *memory)
{
    uint64_t value = 0, second = 0;
    if (code >= OP_LIT0 && code <= OP_LIT31) {
        push(evaluation, code - OP_LIT0);
        return;
    }
    if (code >= OP_BREG0 && code <= OP_BREG16) {
        unsigned number = machine_of_dwarf[code - OP_BREG0];
        int64_t offset = cursor_sleb128(cursor);
        if (machine_known(registers, number)) push(evaluation, registers->values[number] + (uint64_t)offset);
        else evaluation->failed = true;
        return;
    }
    if (code >= OP_CONST1U && code <= OP_CONSTS) {
        push_constant(evaluation, code, cursor);
        return;
    }
    switch (code) {
    case OP_NOP: break;
    case OP_DEREF:
        if (unwind_read(memory, pop(evaluation), &value)) push(evaluation, value);
        else evaluation->failed = true;
        break;
    case OP_DUP:
        value = pop(evaluation);
        push(evaluation, value);
        push(evaluation, value);
        break;
    case OP_DROP: (void)pop(evaluation); break;
    case OP_OVER:
        if (evaluation->depth < 2) evaluation->failed = true;
        else push(evaluation, evaluation->stack[evaluation->depth - 2]);
        break;
    case OP_SWAP:
        value = pop(evaluation);
        second = pop(evaluation);
        push(evaluation, value);
        push(evaluation, second);
        break;
    case OP_NEG: push(evaluation, -pop(evaluation)); break;
    case OP_NOT: push(evaluation, ~pop(evaluation)); break;
    case OP_PLUS_UCONST: push(evaluation, pop(evaluation) + cursor_uleb128(cursor)); break;
    case OP_SKIP: jump(cursor, true); break;
    case OP_BRA: jump(cursor, pop(evaluation) != 0); break;
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_PLUS:
    case OP_MINUS:
    case OP_MUL:
    case OP_SHL:
    case OP_SHR:
    case OP_SHRA:
    case OP_EQ:
    case OP_NE:
    case OP_GE:
    case OP_GT:
    case OP_LE:
    case OP_LT:
        second = pop(evaluation);
        value = pop(evaluation);
        push(evaluation, binary_operation(code, value, second));
        break;
    default: evaluation->failed = true; break;
    }
}

/* FIRST, if not NULL, is on the stack at the start: the CFA, for expressions of saved registers. */
static bool evaluate(struct slice expression, const uint64_t *first, const struct unwind_registers *registers,
                     struct unwind_memory *memory, uint64_t *ret_value)
{
    struct evaluation evaluation;
    evaluation.depth = 0;
    evaluation.failed = false;
    if (first) push(&evaluation, *first);
    struct cursor cursor = cursor_of(expression);
    for (unsigned steps = 0; !cursor_at_end(&cursor) && !evaluation.failed; steps++) {
        if (steps == EXPRESSION_STEPS_MAX) return false;
        evaluate_operation(&evaluation, cursor_u8(&cursor), &cursor, registers, memory);
    }
    *ret_value = pop(&evaluation);
    return !evaluation.failed && !cursor.failed;
}

static enum machine_step wide_cfa(const struct frame_table *table, const struct wide_rule *wide,
                                  const struct unwind_registers *registers, struct unwind_memory *memory, uint64_t *ret_cfa)
{
    if (wide->cfa_kind == WIDE_CFA_EXPRESSION) {
        struct slice expression = slice_of(table->expressions + wide->cfa_value, wide->cfa_expression_size);
        return evaluate(expression, NULL, registers, memory, ret_cfa) ? MACHINE_STEPPED : MACHINE_BAD_FRAME;
    }
    if (!machine_known(registers, wide->cfa_register)) return MACHINE_UNKNOWN_REGISTER;
    *ret_cfa = registers->values[wide->cfa_register] + (uint64_t)(int64_t)wide->cfa_value;
    if (wide->cfa_kind == WIDE_CFA_DEREFERENCE && !unwind_read(memory, *ret_cfa, ret_cfa)) return MACHINE_BAD_MEMORY;
    return MACHINE_STEPPED;
}

/* The caller's register NUMBER. False if it is lost or cannot be had. */
static bool wide_saved(const struct frame_table *table, const struct wide_rule *wide, unsigned number, uint64_t cfa,
                       const struct unwind_registers *registers, struct unwind_memory *memory, uint64_t *ret_value)
{
    int64_t value = wide->saved[number].value;
    unsigned other = wide->saved[number].register_number;
    struct slice expression = {0};
    uint64_t address = cfa;
    switch ((enum wide_saved)wide->saved[number].kind) {
    case WIDE_SAME:
        *ret_value = number == MACHINE_SP ? cfa : registers->values[number];
        return number == MACHINE_SP || (machine_known(registers, number) && number != MACHINE_R10);
    case WIDE_LOST: return false;
    case WIDE_AT_CFA: return unwind_read(memory, cfa + (uint64_t)value, ret_value);
    case WIDE_IS_CFA: *ret_value = cfa + (uint64_t)value; return true;
    case WIDE_AT_REGISTER:
        return machine_known(registers, other) && unwind_read(memory, registers->values[other] + (uint64_t)value, ret_value);
    case WIDE_IN_REGISTER:
        if (!machine_known(registers, other)) return false;
        *ret_value = registers->values[other];
        return true;
    case WIDE_AT_EXPRESSION:
    case WIDE_IS_EXPRESSION: break;
    }
    expression = slice_of(table->expressions + value, wide->saved[number].expression_size);
    if (!evaluate(expression, &cfa, registers, memory, &address)) return false;
    *ret_value = address;
    return wide->saved[number].kind == WIDE_IS_EXPRESSION || unwind_read(memory, address, ret_value);
}

static enum machine_step step_wide(const struct frame_table *table, const struct wide_rule *wide,
                                   struct unwind_registers *registers, struct unwind_memory *memory)
{
    if (wide->saved[MACHINE_IP].kind == WIDE_LOST) return MACHINE_ROOT;
    uint64_t cfa = 0;
    enum machine_step found = wide_cfa(table, wide, registers, memory, &cfa);
    if (found != MACHINE_STEPPED) return found;
    /* A signal handler may run on a stack of its own, above or below the interrupted one. */
    if (!wide->is_signal_frame && (cfa <= registers->values[MACHINE_SP] || cfa % WORD != 0)) return MACHINE_BAD_FRAME;

    struct unwind_registers caller = {.known = 0};
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        if (wide_saved(table, wide, i, cfa, registers, memory, &caller.values[i])) caller.known |= 1u << i;
    }
    if (!machine_known(&caller, MACHINE_IP) || !machine_known(&caller, MACHINE_SP)) return MACHINE_BAD_MEMORY;
    *registers = caller;
    return wide->is_signal_frame ? MACHINE_STEPPED_EXACTLY : MACHINE_STEPPED;
}

enum { KNOWN_ALWAYS = 1u << MACHINE_IP | 1u << MACHINE_SP };

enum machine_step machine_step(const struct frame_table *table, uint32_t rule, struct unwind_registers *registers,
                               struct unwind_memory *memory)
{
    uint32_t value = rule >> VALUE_SHIFT & VALUE_MAX;
    uint32_t fp_words = rule >> FP_SHIFT;
    uint64_t sp = registers->values[MACHINE_SP];
    uint64_t cfa = 0;
    switch ((enum rule_kind)(rule & 7)) {
    case KIND_NONE: return MACHINE_NO_RULE;
    case KIND_ROOT: return MACHINE_ROOT;
    case KIND_SP: cfa = sp + value * (uint64_t)WORD; break;
    case KIND_PLT: cfa = sp + WORD + ((registers->values[MACHINE_IP] & 15) >= value ? WORD : 0); break;
    case KIND_FP:
        if (!machine_known(registers, MACHINE_FP)) return MACHINE_UNKNOWN_REGISTER;
        cfa = registers->values[MACHINE_FP] + value * (uint64_t)WORD;
        break;
    case KIND_WIDE: return value < table->wide_count ? step_wide(table, &table->wide[value], registers, memory) : MACHINE_NO_RULE;
    }
    if (cfa <= sp || cfa % WORD != 0) return MACHINE_BAD_FRAME;

    uint64_t return_address = 0, fp = registers->values[MACHINE_FP];
    if (!unwind_read(memory, cfa - WORD, &return_address)) return MACHINE_BAD_MEMORY;
    uint32_t known = KNOWN_ALWAYS;
    if (fp_words == 0) known |= registers->known & 1u << MACHINE_FP;
    else if (fp_words != FP_LOST) {
        if (!unwind_read(memory, cfa - fp_words * (uint64_t)WORD, &fp)) return MACHINE_BAD_MEMORY;
        known |= 1u << MACHINE_FP;
    }
    registers->values[MACHINE_IP] = return_address;
    registers->values[MACHINE_SP] = cfa;
    registers->values[MACHINE_FP] = fp;
    registers->known = known;
    return MACHINE_STEPPED;
}

enum machine_step machine_step_by_frame_pointer(struct unwind_registers *registers, struct unwind_memory *memory)
{
    if (!machine_known(registers, MACHINE_FP)) return MACHINE_UNKNOWN_REGISTER;
    uint64_t fp = registers->values[MACHINE_FP];
    if (fp < registers->values[MACHINE_SP] || fp % WORD != 0) return MACHINE_BAD_FRAME;
    uint64_t caller_fp = 0, return_address = 0;
    if (!unwind_read(memory, fp, &caller_fp) || !unwind_read(memory, fp + WORD, &return_address)) return MACHINE_BAD_MEMORY;
    registers->values[MACHINE_IP] = return_address;
    registers->values[MACHINE_SP] = fp + 2 * WORD;
    registers->values[MACHINE_FP] = caller_fp;
    registers->known = KNOWN_ALWAYS | 1u << MACHINE_FP;
    return MACHINE_STEPPED;
}
