/* Callers from the registers and the copied stack of a sample (`perf record --call-graph dwarf`).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_STACK_H
#define OFFBEAT_FORMAT_PERF_PERF_STACK_H

#include "format/perf/perf_record.h"
#include "format/perf/perf_spaces.h"

enum { PERF_STACK_FRAMES_MAX = 1024 };

/* A walk that was made when its record was read. Its result holds as long as the process has the same mappings. */
struct perf_walk {
    uint64_t version; /* version of the space */
    uint64_t cgroup;  /* cgroup of the sample, which comes after the stack in its record */
    uint32_t outcome, count;
    uint64_t addresses[PERF_STACK_FRAMES_MAX]; /* COUNT of them */
};

static inline size_t perf_walk_size(const struct perf_walk *walk)
{
    return offsetof(struct perf_walk, addresses) + walk->count * sizeof(walk->addresses[0]);
}

/* Fills ADDRESSES (PERF_STACK_FRAMES_MAX of them), innermost first: the first as it is, each further one a return
 * address. *RET_COUNT is 0 if SAMPLE has no registers of the
 * recorded machine, or SPACES no unwinder for it. SPACE may be NULL. Without CODE (NULL) the
 * walk ends at the innermost frame. */
enum unwind_outcome perf_stack_walk(struct perf_spaces *spaces, struct perf_space *space, const struct perf_code *code,
                                    const struct perf_sample *sample, uint64_t *addresses, size_t *ret_count);

#endif
