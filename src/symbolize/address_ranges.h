/* Ranges of addresses that are over one another → which one is seen at each address.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_ADDRESS_RANGES_H
#define OFFBEAT_SYMBOLIZE_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_RANGES_MAX = 1 << 28 };

struct address_range {
    uint32_t start, end; /* distances from the start of the module */
    uint32_t value;
    uint32_t layer; /* a higher one hides a lower one; of equals, the one that starts later hides the other */
};

/* {0} is valid and empty. */
struct address_ranges {
    struct address_range *items;
    size_t count, capacity;
};

/* False if memory is short or the maximum is reached. An empty range is not added. */
bool address_ranges_add(struct address_ranges *ranges, struct address_range range);

/* Leaves what is seen of the ranges from FIRST on, ascending and without overlaps; neighbours with the same value
 * become one. All keep the layer that they had. False, with the ranges in any order, if memory is short. */
bool address_ranges_flatten(struct address_ranges *ranges, size_t first);

void address_ranges_fini(struct address_ranges *ranges);

#endif
