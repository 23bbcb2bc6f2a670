/* Arrays that grow to a stated maximum.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_ARRAY_H
#define OFFBEAT_BASE_ARRAY_H

#include "base/pages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Makes room for NEEDED items of ITEM_SIZE bytes in *ITEMS (a pointer to the array's pointer), growing by half again
 * at least. False, with everything as it was, when NEEDED is over MAXIMUM or memory is short. */
static inline bool array_reserve(void *items, size_t *capacity, size_t needed, size_t item_size, size_t maximum)
{
    if (needed <= *capacity) return true;
    if (needed > maximum) return false;
    size_t grown = *capacity + *capacity / 2 + 8;
    if (grown < needed) grown = needed;
    if (grown > maximum) grown = maximum;
    size_t bytes;
    if (__builtin_mul_overflow(grown, item_size, &bytes)) return false;
    void **place = items;
    void *moved = realloc(*place, bytes);
    if (!moved) return false;
    if (bytes >= PAGES_LARGE_BYTES) pages_prefer_large(moved, bytes);
    *place = moved;
    *capacity = grown;
    return true;
}

/* A member for an array that grows. */
#define ARRAY_OF(type)                                                                                                 \
    struct {                                                                                                           \
        type *items;                                                                                                   \
        size_t count, capacity;                                                                                        \
    }

/* Makes room for MORE items of LIST, a pointer to an ARRAY_OF; false as array_reserve. */
#define ARRAY_RESERVE(list, more, maximum)                                                                             \
    array_reserve(&(list)->items, &(list)->capacity, (list)->count + (more), sizeof(*(list)->items), (maximum))

/* Counts one more item of LIST and returns it, not yet set; NULL where array_reserve returns false. */
#define ARRAY_ADD(list, maximum) (ARRAY_RESERVE(list, 1, maximum) ? &(list)->items[(list)->count++] : NULL)

/* Appends an item to LIST; false as array_reserve. */
#define ARRAY_PUSH(list, maximum, ...)                                                                                 \
    (ARRAY_RESERVE(list, 1, maximum) && ((list)->items[(list)->count++] = (__VA_ARGS__), true))

#endif
