/* SPDX-License-Identifier: MIT */
#include "sampler/source/walk_tables.h"

#include "sampler/kernel/vdso_clock.h"

enum modules_result walk_table_build(struct source_tick *tick, const uint64_t *addresses, size_t count)
{
    return modules_build(tick->modules, addresses[count - 1] - (count > 1), tick->spent->table_budget, tick->writer);
}

void walk_table_wait(struct source_tick *tick, struct source_thread *thread, uint64_t cpu_ns)
{
    enum { PERIODS_WITHOUT_TABLE_MAX = 2, SIGNALS_WITHOUT_TABLE_MAX = 8 };
    uint64_t most_ns = PERIODS_WITHOUT_TABLE_MAX * tick->periods * tick->period_ns;
    if (thread->clock) most_ns += SIGNALS_WITHOUT_TABLE_MAX * tick->limits->signal_ns;
    if (source_unwritten_ns(thread, cpu_ns) > most_ns)
        thread->lost = (struct source_loss){true, RECORDING_LOST_NO_TABLE, cpu_ns};
}

void walk_tables_build_ahead(struct source_tick *tick, const struct source_thread *thread)
{
    enum { TICKS_ALONE = 2, DOUBLINGS_MAX = 12 };
    uint32_t ticks = thread->ticks_without_table + tick->periods - 1;
    if (ticks <= TICKS_ALONE) return;
    uint32_t doublings = ticks - TICKS_ALONE;
    modules_build_more(tick->modules, (size_t)1 << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX),
                       tick->spent->table_budget);
}

void walk_tables_prepare(struct source_tick *tick)
{
    enum { MODULES = 3 };
    uint64_t vdso = clock_code_address();
    if (modules_have_any(tick->modules)) return;
    modules_build_more(tick->modules, MODULES, tick->spent->table_budget);
    if (vdso) (void)modules_build(tick->modules, vdso, tick->spent->table_budget, tick->writer);
}
