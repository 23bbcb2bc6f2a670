/* Rules that a struct machine_rule has no room for: from one row of call frame information to a rule, and by it from a
 * frame to its caller. Signal-safe: nothing of libc is called.  SPDX-License-Identifier: MIT */
#include "unwind/expression_private.h"
#include "unwind/machine_rules_private.h"

enum { KNOWN_ALWAYS = 1u << MACHINE_IP | 1u << MACHINE_SP };

/* Parses "register + offset", and a dereference after it if WITH_DEREFERENCE. */
static bool is_register_offset(struct slice expression, bool with_dereference, uint8_t *ret_register,
                               int32_t *ret_offset)
{
    struct cursor cursor = cursor_of(expression);
    uint8_t code = cursor_u8(&cursor);
    int64_t offset = cursor_sleb128(&cursor);
    if (with_dereference && cursor_u8(&cursor) != OP_DEREF) return false;
    if (cursor.failed || !cursor_at_end(&cursor) || code < OP_BREG0 || code >= OP_BREG0 + CFI_REGISTERS) return false;
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
    /* The register to which a function returns is that of the return address, and has another value afterwards. Some
     * hand-written functions move the address to another register first. */
    if (MACHINE_LINK_REGISTER != MACHINE_REGISTER_OTHER) {
        uint32_t link = fde->cie.return_register;
        compile_wide_saved(section, &row->registers[link], ret_wide, MACHINE_IP);
        if (ret_wide->saved[MACHINE_IP].kind == WIDE_SAME) {
            ret_wide->saved[MACHINE_IP].kind = WIDE_IN_REGISTER;
            ret_wide->saved[MACHINE_IP].register_number = (uint8_t)machine_of_dwarf(link);
        }
        ret_wide->saved[MACHINE_LINK_REGISTER % MACHINE_REGISTERS].kind = WIDE_LOST;
    }
    return compile_wide_cfa(section, row, ret_wide);
}

bool machine_compile_one_rule(const struct cfi_section *section, const struct cfi_fde *fde, const struct cfi_row *row,
                              struct machine_rule *ret_rule, struct wide_rule *ret_wide)
{
    struct rule_words saved, rule = rule_words(RULE_ROOT, 0, 0);
    if (!machine_has_return_register(fde)) return false;
    if (row->registers[fde->cie.return_register].kind != CFI_UNDEFINED) {
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

static enum machine_step wide_cfa(const struct frame_table *table, const struct wide_rule *wide,
                                  const struct unwind_registers *registers, struct unwind_memory *memory,
                                  uint64_t *ret_cfa)
{
    if (wide->cfa_kind == WIDE_CFA_EXPRESSION) {
        struct slice expression = slice_of(table->expressions + wide->cfa_value, wide->cfa_expression_size);
        return machine_evaluate(expression, NULL, registers, memory, ret_cfa) ? MACHINE_STEPPED : MACHINE_BAD_FRAME;
    }
    if (!machine_known(registers, wide->cfa_register)) return MACHINE_UNKNOWN_REGISTER;
    *ret_cfa = registers->values[wide->cfa_register] + (uint64_t)(int64_t)wide->cfa_value;
    if (wide->cfa_kind == WIDE_CFA_DEREFERENCE && !unwind_read(memory, *ret_cfa, ret_cfa)) return MACHINE_BAD_MEMORY;
    return MACHINE_STEPPED;
}

/* Finds the caller's register NUMBER. Returns false if it is lost or cannot be read. */
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
        return number == MACHINE_SP || (number < MACHINE_SURVIVING_REGISTERS && machine_known(registers, number));
    case WIDE_LOST:
        return false;
    case WIDE_AT_CFA:
        return unwind_read(memory, cfa + (uint64_t)value, ret_value);
    case WIDE_IS_CFA:
        *ret_value = cfa + (uint64_t)value;
        return true;
    case WIDE_AT_REGISTER:
        return machine_known(registers, other) &&
               unwind_read(memory, registers->values[other] + (uint64_t)value, ret_value);
    case WIDE_IN_REGISTER:
        if (!machine_known(registers, other)) return false;
        *ret_value = registers->values[other];
        return true;
    case WIDE_AT_EXPRESSION:
    case WIDE_IS_EXPRESSION:
    case WIDE_SAVED_KINDS:
        break;
    }
    expression = slice_of(table->expressions + value, wide->saved[number].expression_size);
    if (!machine_evaluate(expression, &cfa, registers, memory, &address)) return false;
    *ret_value = address;
    return wide->saved[number].kind == WIDE_IS_EXPRESSION || unwind_read(memory, address, ret_value);
}

enum machine_step machine_step_wide(const struct frame_table *table, const struct wide_rule *wide,
                                    struct unwind_registers *registers, struct unwind_memory *memory)
{
    if (wide->saved[MACHINE_IP].kind == WIDE_LOST) return MACHINE_ROOT;
    uint64_t cfa = 0;
    enum machine_step found = wide_cfa(table, wide, registers, memory, &cfa);
    if (found != MACHINE_STEPPED) return found;
    struct unwind_registers caller = {.known = 0};
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        if (wide_saved(table, wide, i, cfa, registers, memory, &caller.values[i])) caller.known |= 1u << i;
    }
    if (!machine_known(&caller, MACHINE_IP) || !machine_known(&caller, MACHINE_SP)) return MACHINE_BAD_MEMORY;
    caller.values[MACHINE_IP] = machine_code_address(caller.values[MACHINE_IP]);
    /* A signal handler may run on its own stack, above or below the interrupted one; where longjmp has begun to
     * jump, SP is in a register, and its new value may be the current one already; and vfork keeps its return address
     * in a register, because its child overwrites the stack. */
    uint64_t sp = caller.values[MACHINE_SP];
    bool may_stay = wide->is_signal_frame || wide->saved[MACHINE_SP].kind == WIDE_IN_REGISTER ||
                    (wide->saved[MACHINE_IP].kind == WIDE_IN_REGISTER && sp == registers->values[MACHINE_SP]);
    if (sp % WORD != 0 || (sp <= registers->values[MACHINE_SP] && !may_stay)) return MACHINE_BAD_FRAME;
    *registers = caller;
    return wide->is_signal_frame ? MACHINE_STEPPED_EXACTLY : MACHINE_STEPPED;
}
