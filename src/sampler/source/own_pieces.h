/* Copies memory of this process, which may vanish at any time. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SOURCE_OWN_PIECES_H
#define OFFBEAT_SAMPLER_SOURCE_OWN_PIECES_H

#include "base/kernel.h"
#include "interpreters/process_memory.h"

/* Copies all PIECES of the process of THREAD, the caller's, by one call if they can be read. Signal-safe. */
static inline bool own_pieces_read(int thread, const struct memory_pieces *pieces)
{
    uint64_t size = 0;
    for (size_t i = 0; i < pieces->count; i++) size += pieces->from[i].size;
    long got = kernel_call6(SYS_process_vm_readv, thread, kernel_address(pieces->to), (long)pieces->count,
                            kernel_address(pieces->from), (long)pieces->count, 0);
    return got >= 0 && (uint64_t)got == size;
}

/* Does the same faster if the pieces go to one place: they are written there instead of being read. The kernel looks up
 * the pages of what is remote to a call piece by piece, and copies what is local to it as any call does, in a fifth of
 * the time. Only for threads that run an interpreter: valgrind takes memory that is gone, which such a call may meet,
 * for a fault of the program. Signal-safe. */
static inline bool own_pieces_write(int thread, const struct memory_pieces *pieces)
{
    struct memory_range whole = pieces->to[0];
    bool has_one_place = true;
    whole.size = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        has_one_place &= pieces->to[i].address == whole.address + whole.size;
        whole.size += pieces->from[i].size;
    }
    if (has_one_place && kernel_call6(SYS_process_vm_writev, thread, kernel_address(pieces->from), (long)pieces->count,
                                      kernel_address(&whole), 1, 0) == (long)whole.size)
        return true;
    return own_pieces_read(thread, pieces);
}

#endif
