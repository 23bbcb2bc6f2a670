/* SPDX-License-Identifier: MIT */
#include "sampler/ledger/routine_sums.h"

struct routine_sums *routine_sums_of(struct routine_table *table, uint64_t routine)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->items[i].routine == routine) return &table->items[i];
    }
    if (table->count == ROUTINES_MAX) return &table->items[ROUTINES_MAX - 1];
    struct routine_sums *added = &table->items[table->count++];
    added->routine = table->count < ROUTINES_MAX ? routine : 0;
    return added;
}
