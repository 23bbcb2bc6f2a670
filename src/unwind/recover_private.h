/* The recovery of registers that only the thread itself knows: the files x86_64_recover.c and aarch64_recover.c are the
 * variants.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_RECOVER_PRIVATE_H
#define OFFBEAT_UNWIND_RECOVER_PRIVATE_H

#include "unwind/call_site_private.h"
#include "unwind/unwind_private.h"

/* A search for the place at which a function's return address is. */
struct frame_search {
    const struct unwind_modules *modules;
    struct unwind_memory *memory;
    struct machine_rule rule; /* rule of the function */
    uint64_t start;           /* first address of the function */
    uint64_t found_cfa;
    unsigned found_count; /* CFAs that a call proves */
    uint64_t pending;     /* address in a module that has no table yet, which may hold the caller; 0: none */
};

/* Finds the rule at LOOKUP in MODULE, and the start of its function. */
bool find_function(const struct unwind_module *module, uint64_t lookup, struct unwind_memory *memory,
                   struct machine_rule *ret_rule, uint64_t *ret_start);

/* Notes CFA if a call to the function proves it. */
void try_cfa(struct frame_search *search, uint64_t cfa);

/* Tries the CFAs that the function of SEARCH may have at LOOKUP, where the stack pointer is SP. */
void machine_try_cfas(struct frame_search *search, uint64_t lookup, uint64_t sp);

/* Finds the register in which the innermost function of SEARCH, whose code is at LOOKUP, has its return address. */
bool machine_recover_link(struct frame_search *search, struct unwind_registers *registers);

#endif
