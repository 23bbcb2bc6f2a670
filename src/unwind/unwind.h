/* Walks a stack: from registers and modules to a list of addresses.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_UNWIND_H
#define OFFBEAT_UNWIND_UNWIND_H

#include "unwind/frame_lookup.h"
#include "unwind/machine.h"
#include "unwind/resume_cache.h"
#include "unwind/rule_cache.h"

/* One executable segment. */
struct unwind_module {
    uint64_t start, end;             /* address range */
    uint64_t base;                   /* address to which the table is relative */
    const struct frame_table *table; /* NULL: there is none, or it is not built yet */
    const struct frame_lookup
        *lookup;               /* substitute for a table, for walks that have room for it; NULL: there is none */
    bool is_pending;           /* true if both are still to come */
    bool is_generated;         /* true if rules hold but where the code has pushed registers for a moment */
    bool keeps_frame_pointers; /* true if code without rules has frame pointers, the outermost of which is zero */
};

/* A list sorted by START, without overlaps. Only the cache changes while walks use it. */
struct unwind_modules {
    const struct unwind_module *items;
    size_t count;
    uint64_t generation;                   /* number that differs for each list used with one resume cache */
    struct rule_cache *cache;              /* cache of this list alone; NULL: there is none */
    bool (*is_new_code)(uint64_t address); /* signal-safe test for a new module at an address in none; may be NULL */
};

enum unwind_outcome {
    UNWIND_ROOT = 0,         /* the outermost frame was reached */
    UNWIND_TOO_DEEP,         /* more frames than there is room for */
    UNWIND_NO_TABLE,         /* no table for the code, and no frame pointer to follow */
    UNWIND_BAD_MEMORY,       /* a frame is in memory that cannot be read */
    UNWIND_BAD_FRAME,        /* a rule gave an impossible frame */
    UNWIND_UNKNOWN_REGISTER, /* a rule needs an unknown register */
    UNWIND_OUTCOMES,
    UNWIND_PENDING = UNWIND_OUTCOMES, /* the last address is in a module that is new or has no table yet: try again */
};

/* Prefetches memory that the first steps of a walk from IP will read: other work can be done meanwhile. Signal-safe. */
void unwind_prefetch(const struct unwind_modules *modules, const struct resume_cache *resume_cache, uint64_t ip);

/* Walks from REGISTERS (which are used up) and fills ADDRESSES, innermost first: the first as it is, each further one a
 * return address. A signal frame (the trampoline to which a handler returns) and the frame that the signal interrupted
 * have exact addresses: these are stored plus one, so that "less one" is right for all but the first. There is always
 * at least one. RESUME_CACHE, if not NULL, is that of earlier walks, mostly of the same thread. Signal-safe: no
 * allocation, no locks, reads memory only through MEMORY. Uses less than 768 bytes of stack. */
enum unwind_outcome unwind_walk(const struct unwind_modules *modules, struct unwind_registers *registers,
                                struct unwind_memory *memory, struct resume_cache *resume_cache, uint64_t *addresses,
                                size_t addresses_max, size_t *ret_count);

/* A reader that copies SIZE bytes of code, or of memory that code refers to. Returns false if they cannot be read. */
struct unwind_code {
    bool (*read)(void *context, uint64_t address, void *bytes, size_t size);
    void *context;
    uint64_t jump_from,
        jump_to; /* function that only jumps to another one, so that its calls are those of JUMP_TO; 0: none */
};

/* Walks the stack of another thread, of which only IP, SP and some MACHINE_ARGUMENTS are known. A frame pointer that a
 * frame needs, and no inner frame has saved, is recovered if it can be proven (recover.c, from the code that MEMORY
 * reads); *RET_RECOVERED_COUNT counts these. Otherwise the outcome is UNWIND_UNKNOWN_REGISTER. Needs 3 KB of stack: not
 * for signal handlers.
 */
enum unwind_outcome unwind_walk_without_registers(const struct unwind_modules *modules,
                                                  struct unwind_registers *registers, struct unwind_memory *memory,
                                                  uint64_t *addresses, size_t addresses_max, size_t *ret_count,
                                                  size_t *ret_recovered_count);

/* Returns the module that holds ADDRESS, or NULL. Signal-safe. */
const struct unwind_module *unwind_find_module(const struct unwind_modules *modules, uint64_t address);

#endif
