/* Walks a stack whose innermost part was copied while its thread ran.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_COPIED_STACK_H
#define OFFBEAT_UNWIND_COPIED_STACK_H

#include "unwind/unwind.h"

struct copied_stack {
    uint64_t start; /* address of the words on the stack */
    const uint64_t *words;
    size_t size; /* bytes */
};

/* Does the same as unwind_walk, from REGISTERS and COPY, which were taken together. A frame outside of the copy is read
 * from LIVE: a large frame, a deep stack, or, from a signal handler's stack or a coroutine's, the stack below. LIVE
 * reads code, too. *RET_OUTSIDE is the address of the first word that was read there; 0: there is none. Allocates
 * nothing. */
enum unwind_outcome unwind_walk_copied_stack(const struct unwind_modules *modules, struct unwind_registers *registers,
                                             const struct copied_stack *copy, struct unwind_memory *live,
                                             uint64_t *addresses, size_t addresses_max, size_t *ret_count,
                                             uint64_t *ret_outside);

#endif
