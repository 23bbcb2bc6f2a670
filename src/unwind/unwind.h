/* Walks a stack: from registers and modules to a list of addresses.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_UNWIND_H
#define OFFBEAT_UNWIND_UNWIND_H

#include "unwind/frame_lookup.h"
#include "unwind/machine.h"
#include "unwind/resume_cache.h"
#include "unwind/rule_cache.h"

/* One executable segment. */
struct unwind_module {
    uint64_t start, end;               /* where it is */
    uint64_t base;                     /* what the table's addresses are relative to */
    const struct frame_table *table;   /* NULL: there is none, or it is not built yet */
    const struct frame_lookup *lookup; /* used where there is no table, by walks that have room for it; or NULL */
    bool is_pending;                   /* neither is there yet */
};

/* Sorted by START, without overlaps; immutable while anybody walks, but for the cache. */
struct unwind_modules {
    const struct unwind_module *items;
    size_t count;
    uint64_t generation;      /* another one for each list that walks with one resume cache may see */
    struct rule_cache *cache; /* of this list alone; NULL: none */
    bool (*is_new_code)(
        uint64_t address); /* signal-safe; asked of an address in no module: is there one since? or NULL */
};

enum unwind_outcome {
    UNWIND_ROOT = 0,         /* the outermost frame was reached */
    UNWIND_TOO_DEEP,         /* more frames than there is room for */
    UNWIND_NO_TABLE,         /* no table for the code, and no frame pointer to follow */
    UNWIND_BAD_MEMORY,       /* a frame is where nothing can be read */
    UNWIND_BAD_FRAME,        /* a rule gave a frame that cannot be one */
    UNWIND_UNKNOWN_REGISTER, /* a rule needs a register whose value is not known */
    UNWIND_OUTCOMES,
    UNWIND_PENDING =
        UNWIND_OUTCOMES, /* the last address is in a new module, or in one without a table yet: try again */
};

/* Asks for what the first steps of a walk from IP will read, where that is known without waiting for it: other work
 * can be done meanwhile. Signal-safe. */
void unwind_prefetch(const struct unwind_modules *modules, const struct resume_cache *resume_cache, uint64_t ip);

/* Walks from REGISTERS (which are used up) and fills ADDRESSES, innermost first: the first as it is, each further one a
 * return address. A signal frame (the trampoline to which a handler returns) and the frame that the signal interrupted
 * have exact addresses: these are stored plus one, so that "less one" is right for all but the first. Always at least
 * one. PAST, if not NULL, is that of the walks before, of the same thread for the most
 * part. Signal-safe: no allocation, no locks, reads memory only through MEMORY. Uses less
 * than 768 bytes of stack. */
enum unwind_outcome unwind_walk(const struct unwind_modules *modules, struct unwind_registers *registers,
                                struct unwind_memory *memory, struct resume_cache *resume_cache, uint64_t *addresses,
                                size_t addresses_max, size_t *ret_count);

/* Copies SIZE bytes of code, or of what code refers to. False if they cannot be read. */
struct unwind_code {
    bool (*read)(void *context, uint64_t address, void *bytes, size_t size);
    void *context;
};

/* The same for a thread of which only IP, SP and those MACHINE_ARGUMENTS are known that REGISTERS say, from outside of
 * it: where a frame is found by a frame pointer that no frame before has saved, it is recovered if it can be proven
 * (recover.c, from the code that MEMORY reads), and *RET_RECOVERED_COUNT says how often that was. Else the outcome is
 * UNWIND_UNKNOWN_REGISTER. Needs 3 KB of stack: not for signal handlers. */
enum unwind_outcome unwind_walk_without_registers(const struct unwind_modules *modules,
                                                  struct unwind_registers *registers, struct unwind_memory *memory,
                                                  uint64_t *addresses, size_t addresses_max, size_t *ret_count,
                                                  size_t *ret_recovered_count);

/* The module that holds ADDRESS, or NULL. Signal-safe. */
const struct unwind_module *unwind_find_module(const struct unwind_modules *modules, uint64_t address);

#endif
