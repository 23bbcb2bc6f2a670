/* The frame tables that walks wait for.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_WALK_TABLES_H
#define OFFBEAT_SAMPLER_WALK_TABLES_H

#include "sampler/source/source.h"

/* Builds the table of the new module that a walk has reached at its last address. */
enum modules_result walk_table_build(struct source_tick *tick, const uint64_t *addresses, size_t count);

/* Leaves the time of THREAD, which ran through code without a table, to the next stack, or notes that it is lost if it
 * is long. */
void walk_table_wait(struct source_tick *tick, struct source_thread *thread, uint64_t cpu_ns);

/* Builds more tables: the stack of a running thread reaches one more new module at each tick. So that a stack through
 * many modules does not take as many ticks, each further module doubles the number of tables. A late tick counts as
 * several. */
void walk_tables_build_ahead(struct source_tick *tick, const struct source_thread *thread);

/* Builds the first tables before a signal is sent, because the handler cannot build any. A process that lives for some
 * milliseconds would end before its stacks have gone through one new module after the other, and where ticks are a
 * second apart, all replies of one would be lost. Programs that measure themselves are in the vdso half of the time. */
void walk_tables_prepare(struct source_tick *tick);

#endif
