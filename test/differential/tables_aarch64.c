/* SPDX-License-Identifier: MIT */
#include "tables.h"

#include <stdlib.h>

/* readelf calls the register to which a function returns "ra" as a column, and x30 elsewhere. */
unsigned shown_register(const char *name, size_t size)
{
    if (size == 2 && memcmp(name, "ra", 2) == 0) return MACHINE_LR;
    if (size == 2 && memcmp(name, "sp", 2) == 0) return MACHINE_SP;
    if (size < 2 || name[0] != 'x') return MACHINE_REGISTER_OTHER;
    return machine_of_dwarf(strtoul(name + 1, NULL, 10));
}

/* A return address that is not stored is in its register, which has another value after the return. */
void shown_finish(struct shown *row)
{
    unsigned link = machine_of_dwarf(row->return_register) % MACHINE_REGISTERS;
    uint8_t kind = row->registers[link].kind;
    row->registers[MACHINE_IP] = row->registers[link];
    if (kind == SHOWN_NOTHING || kind == SHOWN_SAME) {
        row->registers[MACHINE_IP].kind = SHOWN_REGISTER;
        row->registers[MACHINE_IP].value = link;
    }
    row->registers[MACHINE_LR].kind = SHOWN_UNKNOWN;
}

/* Returns true if a register at WORDS below the CFA, or not in memory (0), is what readelf shows. */
static bool is_at(unsigned words, unsigned kind, int64_t value)
{
    if (words > 0) return kind == SHOWN_CFA && value == -8 * (int64_t)words;
    return kind == SHOWN_NOTHING || kind == SHOWN_SAME || kind == SHOWN_UNKNOWN;
}

const char *compare_narrow(const struct machine_rule *rule, const struct shown *row)
{
    uint8_t sp = row->registers[MACHINE_SP].kind, fp = row->registers[MACHINE_FP].kind;
    uint8_t link = row->registers[MACHINE_IP].kind == SHOWN_REGISTER ? SHOWN_SAME : row->registers[MACHINE_IP].kind;
    if (rule->cfa_register != row->cfa_register || rule->value != row->cfa_offset) return "the CFA differs";
    if (!is_at(rule->return_words, link, row->registers[MACHINE_IP].value)) return "the return address differs";
    if (!is_at(0, sp, 0)) return "the stack pointer differs";
    if ((rule->lost_mask & SAVED_FP) && fp != SHOWN_UNKNOWN) return "a register is not lost";
    return is_at(rule->fp_words, fp, row->registers[MACHINE_FP].value) ? NULL : "a saved register differs";
}
