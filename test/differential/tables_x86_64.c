/* SPDX-License-Identifier: MIT */
#include "tables.h"

unsigned shown_register(const char *name, size_t size)
{
    static const char *const names[MACHINE_REGISTERS] = {"ra",  "rsp", "rbp", "rbx", "r12", "r13", "r14", "r15", "rax",
                                                         "rdx", "rcx", "rsi", "rdi", "r8",  "r9",  "r10", "r11"};
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) return i;
    }
    if (size == 3 && memcmp(name, "rip", 3) == 0) return MACHINE_IP;
    return MACHINE_REGISTER_OTHER;
}

void shown_finish(struct shown *row)
{
    (void)row;
}

static const char *compare_places(const struct machine_rule *rule, const struct shown *row)
{
    if (row->cfa_is_expression) return "the CFA is an expression";
    if (rule->cfa_register != row->cfa_register || rule->value != row->cfa_offset) return "the CFA differs";
    if (row->registers[MACHINE_IP].kind != SHOWN_CFA || row->registers[MACHINE_IP].value != -8)
        return "the return address differs";
    return NULL;
}

static const char *compare_saved(const struct machine_rule *rule, const struct shown *row)
{
    uint8_t sp = row->registers[MACHINE_SP].kind;
    if (sp != SHOWN_NOTHING && sp != SHOWN_UNKNOWN && sp != SHOWN_SAME) return "the stack pointer differs";
    for (unsigned i = 0; i < MACHINE_SURVIVING_REGISTERS - MACHINE_FP; i++) {
        uint8_t kind = row->registers[MACHINE_FP + i].kind;
        bool is_saved = rule->saved_mask >> i & 1, is_lost = rule->lost_mask >> i & 1;
        if (kind == SHOWN_CFA) {
            if (!is_saved || row->registers[MACHINE_FP + i].value != -8 * (int64_t)rule->saved_words[i])
                return "a saved register differs";
        } else if (is_saved || (is_lost && kind != SHOWN_UNKNOWN) ||
                   (kind != SHOWN_NOTHING && kind != SHOWN_UNKNOWN && kind != SHOWN_SAME)) {
            return "a register differs";
        }
    }
    return NULL;
}

const char *compare_narrow(const struct machine_rule *rule, const struct shown *row)
{
    const char *problem = compare_places(rule, row);
    return problem ? problem : compare_saved(rule, row);
}
