/* A share of a processor that recording may take: how much rarer samples must be to keep to it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_CPU_BUDGET_H
#define OFFBEAT_RECORDER_CPU_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_budget {
    uint64_t share_ppm;        /* share, millionths of a processor; 0: any */
    uint64_t time_ns, used_ns; /* time and CPU time at the last check */
    double debt_ns;            /* CPU time over the share, less what was saved */
    double slowness;           /* factor of the period, at least 1 */
    bool is_exceeded;          /* true while the slowness is over 1 */
};

void cpu_budget_begin(struct cpu_budget *budget, uint64_t share_ppm, uint64_t now_ns);

/* Takes USED_NS, CPU time since the beginning, at NOW_NS. Returns true if the slowness has changed. */
bool cpu_budget_note(struct cpu_budget *budget, uint64_t now_ns, uint64_t used_ns);

/* Does this once a second, with the CPU time of this process and of its children that have ended. */
bool cpu_budget_check(struct cpu_budget *budget, uint64_t now_ns);

#endif
