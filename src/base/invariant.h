/* Checks of what must hold at the boundary of a module if our own code has no fault. They are not for input, which may
 * be anything.
 *
 * INVARIANT(condition) is true if CONDITION holds. If it does not hold, the process aborts under test
 * (OFFBEAT_INVARIANTS=abort in the environment). Otherwise the failure is counted and the value is false: the caller
 * returns an error or does nothing. The library runs in other people's processes and must not end them.
 *
 *     if (!INVARIANT(index < table->count)) return NULL;
 *
 * May be used in a signal handler and on a thread that libc does not know. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_INVARIANT_H
#define OFFBEAT_BASE_INVARIANT_H

#include <stdbool.h>

#define INVARIANT_LINE_OF(line) #line
#define INVARIANT_LINE(line) INVARIANT_LINE_OF(line)
#define INVARIANT(condition)                                                                                           \
    (__builtin_expect(!!(condition), 1) ||                                                                             \
     (invariant_failed("offbeat: invariant failed: " __FILE__ ":" INVARIANT_LINE(__LINE__) ": " #condition "\n"),      \
      false))

/* LINE is written to standard error before the process aborts. */
void invariant_failed(const char *line) __attribute__((cold, noinline));

/* Returns how many have failed in this process. */
unsigned invariant_failures(void);

/* Chooses what a failure does, whatever the environment says. For unit tests. */
void invariant_set_aborts(bool aborts);

#endif
