/* Where functions begin and end, from a file's unwind tables: the last resort for stripped files, which keep them.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_FUNCTION_BOUNDS_H
#define OFFBEAT_SYMBOLIZE_FUNCTION_BOUNDS_H

#include "binary/elf_file.h"

enum { FUNCTION_BOUNDS_MAX = 16 << 20 };

struct function_bound {
    uint64_t start, end;
};

/* Sorted. {0} is valid and empty. */
struct function_bounds {
    struct function_bound *items;
    size_t count, capacity;
};

/* Reads FILE's .eh_frame, what is readable of it. False if memory is short or the maximum is reached. */
bool function_bounds_read(struct function_bounds *bounds, const struct elf_file *file);

/* The function that holds ADDRESS, or NULL. */
const struct function_bound *function_bounds_find(const struct function_bounds *bounds, uint64_t address);

void function_bounds_fini(struct function_bounds *bounds);

#endif
