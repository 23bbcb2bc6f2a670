/* Evaluates DWARF expressions: a stack machine with bounds on its stack and its steps.  SPDX-License-Identifier: MIT */
#include "unwind/expression_private.h"
#include "unwind/machine.h"

enum { EXPRESSION_STACK_MAX = 16, EXPRESSION_STEPS_MAX = 128 };

struct evaluation {
    uint64_t stack[EXPRESSION_STACK_MAX];
    unsigned depth;
    bool failed;
};

static void push(struct evaluation *evaluation, uint64_t value)
{
    if (evaluation->depth == EXPRESSION_STACK_MAX)
        evaluation->failed = true;
    else
        evaluation->stack[evaluation->depth++] = value;
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
    case OP_AND:
        return left & right;
    case OP_OR:
        return left | right;
    case OP_XOR:
        return left ^ right;
    case OP_PLUS:
        return left + right;
    case OP_MINUS:
        return left - right;
    case OP_MUL:
        return left * right;
    case OP_SHL:
        return right < 64 ? left << right : 0;
    case OP_SHR:
        return right < 64 ? left >> right : 0;
    case OP_SHRA:
        return (uint64_t)(signed_left >> (right < 64 ? right : 63));
    case OP_EQ:
        return left == right;
    case OP_NE:
        return left != right;
    case OP_GE:
        return signed_left >= signed_right;
    case OP_GT:
        return signed_left > signed_right;
    case OP_LE:
        return signed_left <= signed_right;
    default:
        return signed_left < signed_right; /* OP_LT */
    }
}

static void push_constant(struct evaluation *evaluation, uint8_t code, struct cursor *cursor)
{
    switch (code) {
    case OP_CONST1U:
        push(evaluation, cursor_u8(cursor));
        break;
    case OP_CONST1S:
        push(evaluation, (uint64_t)(int64_t)(int8_t)cursor_u8(cursor));
        break;
    case OP_CONST2U:
        push(evaluation, cursor_u16(cursor));
        break;
    case OP_CONST2S:
        push(evaluation, (uint64_t)(int64_t)(int16_t)cursor_u16(cursor));
        break;
    case OP_CONST4U:
        push(evaluation, cursor_u32(cursor));
        break;
    case OP_CONST4S:
        push(evaluation, (uint64_t)(int64_t)(int32_t)cursor_u32(cursor));
        break;
    case OP_CONSTU:
        push(evaluation, cursor_uleb128(cursor));
        break;
    case OP_CONSTS:
        push(evaluation, (uint64_t)cursor_sleb128(cursor));
        break;
    default:
        push(evaluation, cursor_u64(cursor));
        break; /* OP_CONST8U, OP_CONST8S */
    }
}

static void jump(struct cursor *cursor, bool taken)
{
    int16_t distance = (int16_t)cursor_u16(cursor);
    if (!taken || cursor->failed) return;
    ptrdiff_t target = (cursor->position - cursor->start) + distance;
    if (target < 0 || target > cursor->end - cursor->start)
        cursor->failed = true;
    else
        cursor->position = cursor->start + target;
}

static void evaluate_operation(struct evaluation *evaluation, uint8_t code, struct cursor *cursor,
                               const struct unwind_registers *registers, struct unwind_memory *memory)
{
    uint64_t value = 0, second = 0;
    if (code >= OP_LIT0 && code <= OP_LIT31) {
        push(evaluation, code - OP_LIT0);
        return;
    }
    if (code >= OP_BREG0 && code < OP_BREG0 + CFI_REGISTERS) {
        unsigned number = machine_of_dwarf(code - OP_BREG0);
        int64_t offset = cursor_sleb128(cursor);
        if (machine_known(registers, number))
            push(evaluation, registers->values[number] + (uint64_t)offset);
        else
            evaluation->failed = true;
        return;
    }
    if (code >= OP_CONST1U && code <= OP_CONSTS) {
        push_constant(evaluation, code, cursor);
        return;
    }
    switch (code) {
    case OP_NOP:
        break;
    case OP_DEREF:
        if (unwind_read(memory, pop(evaluation), &value))
            push(evaluation, value);
        else
            evaluation->failed = true;
        break;
    case OP_DUP:
        value = pop(evaluation);
        push(evaluation, value);
        push(evaluation, value);
        break;
    case OP_DROP:
        (void)pop(evaluation);
        break;
    case OP_OVER:
        if (evaluation->depth < 2)
            evaluation->failed = true;
        else
            push(evaluation, evaluation->stack[evaluation->depth - 2]);
        break;
    case OP_SWAP:
        value = pop(evaluation);
        second = pop(evaluation);
        push(evaluation, value);
        push(evaluation, second);
        break;
    case OP_NEG:
        push(evaluation, -pop(evaluation));
        break;
    case OP_NOT:
        push(evaluation, ~pop(evaluation));
        break;
    case OP_PLUS_UCONST:
        push(evaluation, pop(evaluation) + cursor_uleb128(cursor));
        break;
    case OP_SKIP:
        jump(cursor, true);
        break;
    case OP_BRA:
        jump(cursor, pop(evaluation) != 0);
        break;
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
    default:
        evaluation->failed = true;
        break;
    }
}

/* FIRST, if not NULL, is on the stack at the start: the CFA, for expressions of saved registers. */
bool machine_evaluate(struct slice expression, const uint64_t *first, const struct unwind_registers *registers,
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
