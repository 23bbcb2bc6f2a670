/* Functions of the Go runtime, found in the table that Go programs have for their own stack traces, stripped ones, too.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BINARY_GO_FUNCTIONS_H
#define OFFBEAT_BINARY_GO_FUNCTIONS_H

#include "binary/elf_file.h"

struct go_function {
    const char *name;    /* complete name, "runtime.mstart" */
    uint64_t start, end; /* addresses in the file; both 0: there is no such function */
};

/* Returns true if FILE is a program that Go's linker has written. */
bool go_is_program(const struct elf_file *file);

/* Finds the COUNT FUNCTIONS by their names. Returns false if FILE has no table, or one of another version than Go 1.18
 * to 1.25 write. */
bool go_functions_find(const struct elf_file *file, struct go_function *functions, size_t count);

#endif
