/* Addresses → functions, inlined functions and lines, by DWARF.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DWARF_NAMES_H
#define OFFBEAT_SYMBOLIZE_DWARF_NAMES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DWARF_SECTIONS_MAX = 64,        /* of debug information, in a file and those that belong to it */
    DWARF_DEPTH_MAX = 512,          /* of nested entries: namespaces, functions, blocks, inlined functions */
    DWARF_RANGES_MAX = 1 << 28,     /* address ranges looked at; a program of 100 MB of code has some millions */
    DWARF_PARTS_PER_ADDRESS = 1024, /* how often an address may be found in a range, on the average */
};

/* A file and a place in it; texts belong to the Dwarf. */
struct dwarf_place {
    const char *directory; /* where the unit was compiled, if FILE is relative to it; else NULL */
    const char *file;      /* NULL = not known */
    int line, column;      /* 0 = not known */
};

/* A function, or a copy of one that was inlined. */
struct dwarf_scope {
    uint32_t caller;          /* whom it was inlined into: index + 1 in scopes; 0 = it is a real function */
    const char *name;         /* as in the source, without its class; NULL = not known */
    const char *linkage_name; /* NULL = the same as NAME */
    uint64_t entry;           /* its first instruction; 0 = not known */
    struct dwarf_place declaration;
    struct dwarf_place call; /* of inlined ones: where it was called */
};

struct dwarf_address {
    uint32_t scope; /* the innermost one: index + 1 in scopes; 0 = no function is known here */
    struct dwarf_place place;
};

/* {0} is valid and empty. */
struct dwarf_names {
    struct dwarf_address *addresses; /* one for each address asked for, in that order */
    struct dwarf_scope *scopes;
    size_t scope_count, scope_capacity;
};

/* Names COUNT ascending ADDRESSES. DWARF that is broken or goes beyond the maxima
 * gives fewer names. False if memory is short. */
bool dwarf_names_find(struct dwarf_names *names, Dwarf *dwarf, const uint64_t *addresses, size_t count);

void dwarf_names_fini(struct dwarf_names *names);

#endif
