/* Crosses code without rules and frame pointers: assembly, and libraries built without tables.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_CROSS_CODE_H
#define OFFBEAT_UNWIND_CROSS_CODE_H

#include "unwind/unwind.h"

/* Searches the stack of REGISTERS, whose code is in MODULE, for the return address of its function: a word after a call
 * of a function that begins shortly before it in MODULE, or after a call through a pointer in a frame that was called
 * itself. Makes REGISTERS those of the caller. Returns false if there is none. For the member cross of struct
 * unwind_memory, which reads code. */
bool unwind_cross_code(const struct unwind_modules *modules, const struct unwind_module *module,
                       struct unwind_registers *registers, struct unwind_memory *memory);

#endif
