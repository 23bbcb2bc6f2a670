/* Calls and jumps in the code of one instruction set: the files x86_64_calls.c and aarch64_calls.c are the variants.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_CALL_SITE_PRIVATE_H
#define OFFBEAT_UNWIND_CALL_SITE_PRIVATE_H

#include "unwind/call_site.h"

/* Returns the address that the call which ends at RETURN_ADDRESS names, directly or by a slot; 0: there is none. */
uint64_t machine_call_target(const struct unwind_code *code, uint64_t return_address);

/* Returns the target of the code at ADDRESS if that only jumps, as the stub of a PLT does, else ADDRESS. */
uint64_t after_stub(const struct unwind_code *code, uint64_t address);

/* Searches FUNCTION for a jump to between LOW and HIGH. */
bool machine_jumps_into(const struct unwind_code *code, uint64_t function, uint64_t low, uint64_t high);

#endif
