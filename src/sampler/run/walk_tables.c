/* SPDX-License-Identifier: MIT */
#include "sampler/run/walk_tables.h"

#include "sampler/kernel/vdso_clock.h"

enum modules_result walk_table_build(struct sampler *sampler, const uint64_t *addresses, size_t count)
{
    return modules_build(&sampler->modules, addresses[count - 1] - (count > 1), sampler->spent.table_budget,
                         sampler->writer);
}

void walk_table_wait(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    enum { PERIODS_WITHOUT_TABLE_MAX = 2, SIGNALS_WITHOUT_TABLE_MAX = 8 };
    uint64_t most_ns = PERIODS_WITHOUT_TABLE_MAX * sampler->schedule.periods_in_tick * sampler->tick.period_ns;
    if (thread->cpu_clock.request) most_ns += SIGNALS_WITHOUT_TABLE_MAX * sampler->timers.signal_ns;
    if (ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) > most_ns)
        ledger_write_lost(&sampler->tick, &thread->ledger, cpu_ns, RECORDING_LOST_NO_TABLE);
}

void walk_tables_build_ahead(struct sampler *sampler, const struct target_thread *thread)
{
    enum { TICKS_ALONE = 2, DOUBLINGS_MAX = 12 };
    uint32_t ticks = thread->scan.ticks_without_table + sampler->schedule.periods_in_tick - 1;
    if (ticks <= TICKS_ALONE) return;
    uint32_t doublings = ticks - TICKS_ALONE;
    modules_build_more(&sampler->modules, (size_t)1 << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX),
                       sampler->spent.table_budget);
}

void walk_tables_prepare(struct sampler *sampler)
{
    enum { MODULES = 3 };
    uint64_t vdso = clock_code_address();
    if (modules_have_any(&sampler->modules)) return;
    modules_build_more(&sampler->modules, MODULES, sampler->spent.table_budget);
    if (vdso) (void)modules_build(&sampler->modules, vdso, sampler->spent.table_budget, sampler->writer);
}
