/* The frame pointer of a thread of which only PC and SP are known.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_RECOVER_H
#define OFFBEAT_UNWIND_RECOVER_H

#include "unwind/unwind.h"

/* Finds FP of the frame REGISTERS, whose code at LOOKUP in MODULE finds its caller by FP. False if it cannot be proven;
 * it is never guessed. Uses 2 KB of stack: not for signal handlers. */
bool recover_frame_pointer(const struct unwind_module *module, uint64_t lookup,
                           const struct unwind_registers *registers, struct unwind_memory *memory,
                           const struct unwind_code *code, uint64_t *ret_fp);

#endif
