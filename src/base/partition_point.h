/* Binary search.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_PARTITION_POINT_H
#define OFFBEAT_BASE_PARTITION_POINT_H

#include <stddef.h>

/* Returns how many of COUNT items meet CONDITION, an expression of the item's index I. It must hold for all items up to
 * one of them, and for none from there on. */
#define PARTITION_POINT(count, i, condition)                                                                           \
    __extension__({                                                                                                    \
        size_t partition_low = 0, partition_high = (count);                                                            \
        while (partition_low < partition_high) {                                                                       \
            size_t i = partition_low + (partition_high - partition_low) / 2;                                           \
            if (condition)                                                                                             \
                partition_low = i + 1;                                                                                 \
            else                                                                                                       \
                partition_high = i;                                                                                    \
        }                                                                                                              \
        partition_low;                                                                                                 \
    })

#endif
