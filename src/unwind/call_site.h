/* The instruction before a return address, which is a call if the address is one.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_CALL_SITE_H
#define OFFBEAT_UNWIND_CALL_SITE_H

#include "unwind/unwind.h"

/* Returns true if the instruction calls START, directly or through the slot of a PLT. */
bool call_site_calls(const struct unwind_code *code, uint64_t return_address, uint64_t start);

/* Returns true if the instruction calls through a register or a place in memory. */
bool call_site_is_indirect(const struct unwind_code *code, uint64_t return_address);

/* Returns true if the instruction calls START, or through a register or a place in memory, or a function that jumps to
 * between START and ADDRESS: a tail call, or a function of which the compiler has put a part elsewhere. */
bool call_site_leads_to(const struct unwind_code *code, uint64_t return_address, uint64_t start, uint64_t address);

/* Finds the start of the function that holds ADDRESS. WORK, if not NULL, is for modules without a table. Returns false
 * if it is unknown, or if its frame is one that the kernel made for a signal handler, which no instruction has called.
 */
bool called_function(const struct unwind_modules *modules, uint64_t address, struct frame_lookup_work *work,
                     uint64_t *ret_start);

#endif
