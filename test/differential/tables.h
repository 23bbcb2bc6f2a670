/* The parts of tables.c that depend on the processor (tables_x86_64.c, tables_aarch64.c), and two ways to a table: the
 * sampler's for files of the own processor (tables_sampled.c), that of tools for the other one (tables_read.c).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_TABLES_H
#define OFFBEAT_TEST_TABLES_H

#include "unwind/machine.h"

#include <elf.h>

enum shown_kind {
    SHOWN_NOTHING,
    SHOWN_UNKNOWN,
    SHOWN_SAME,
    SHOWN_CFA,
    SHOWN_VALUE,
    SHOWN_REGISTER,
    SHOWN_EXPRESSION,
    SHOWN_VALUE_EXPRESSION
};

/* A row as readelf prints it. */
struct shown {
    uint64_t start;
    bool cfa_is_expression, has_register_outside; /* one that our rules do not follow, xmm for one */
    unsigned cfa_register;
    int64_t cfa_offset;
    unsigned return_register; /* DWARF's number, that of the CIE */
    struct {
        uint8_t kind;
        int64_t value; /* offset, or MACHINE_… */
    } registers[MACHINE_REGISTERS];
};

/* Returns the register that readelf calls NAME. */
unsigned shown_register(const char *name, size_t size);

/* Gives ROW the form in which its return address is compared: as the register MACHINE_IP. */
void shown_finish(struct shown *row);

/* Returns how RULE differs from ROW; NULL: it is equal. */
const char *compare_narrow(const struct machine_rule *rule, const struct shown *row);

/* A table, and the base of its addresses as a file address. */
struct loaded_table {
    const struct frame_table *table; /* NULL: there is none */
    uint64_t link_base, build_ns;
};

/* Returns why FILE cannot be used, or NULL. table_unload must be called in either case. */
const char *table_load(int file, const Elf64_Ehdr *header, struct loaded_table *ret_loaded);
void table_unload(void);

/* Returns the CPU time of the thread. */
uint64_t thread_ns(void);

#endif
