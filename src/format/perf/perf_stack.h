/* Callers from the registers and the copied stack of a sample (`perf record --call-graph dwarf`).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_STACK_H
#define OFFBEAT_FORMAT_PERF_PERF_STACK_H

#include "format/perf/perf_record.h"
#include "format/perf/perf_spaces.h"

enum { PERF_STACK_FRAMES_MAX = 1024 };

/* Fills ADDRESSES (PERF_STACK_FRAMES_MAX of them), innermost first: the first as it is, each further one a return
 * address. *RET_COUNT is 0 if SAMPLE has no registers of x86-64. SPACE may be NULL. Without CODE (NULL) the
 * walk ends at the innermost frame. */
enum unwind_outcome perf_stack_walk(struct perf_spaces *spaces, struct perf_space *space, const struct perf_code *code,
                                    const struct perf_sample *sample, uint64_t *addresses, size_t *ret_count);

#endif
