/* qsort without its own memory: libc's may call malloc, which code in other people's processes must not.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_SORT_H
#define OFFBEAT_BASE_SORT_H

#include <stddef.h>

/* Heapsort; equal items end up in any order. COMPARE as for qsort. */
void sort_in_place(void *items, size_t count, size_t item_size, int (*compare)(const void *, const void *));

#endif
