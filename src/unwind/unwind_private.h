/* Variants of the walk for this folder.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_UNWIND_PRIVATE_H
#define OFFBEAT_UNWIND_UNWIND_PRIVATE_H

#include "unwind/unwind.h"

/* A way to find a register that a frame needs: RECOVER is called for the frame REGISTERS, whose code is at LOOKUP in
 * MODULE, and returns true if the step should be tried again. */
struct unwind_recovery {
    bool (*recover)(struct unwind_recovery *recovery, const struct unwind_module *module, uint64_t lookup,
                    struct unwind_registers *registers, struct unwind_memory *memory);
    const struct unwind_modules *modules;
    uint64_t innermost; /* first address of the walk */
    uint64_t pending;   /* address in a module that a recovery needs the table of; 0: none */
    size_t count;       /* registers that were found */
};

/* Walks from a frame that is not the innermost: IP is its return address less one, and the first address. */
enum unwind_outcome unwind_walk_from_caller(const struct unwind_modules *modules, struct unwind_registers *registers,
                                            struct unwind_memory *memory, uint64_t *addresses, size_t addresses_max,
                                            size_t *ret_count);

/* Walks with RECOVERY; NULL: as unwind_walk. */
enum unwind_outcome unwind_walk_recovering(const struct unwind_modules *modules, struct unwind_registers *registers,
                                           struct unwind_memory *memory, struct unwind_recovery *recovery,
                                           uint64_t *addresses, size_t addresses_max, size_t *ret_count);

#endif
