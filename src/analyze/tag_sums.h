/* The sums of each value of each label.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_TAG_SUMS_H
#define OFFBEAT_ANALYZE_TAG_SUMS_H

#include "analyze/totals.h"

enum { TAG_SUMS_MAX = 16 << 20 };

struct tag_sum {
    struct string_id key, value; /* key and value, of TAG_SUMS.strings; a number is printed with its unit */
    int64_t sum;
};

struct tag_sums {
    struct tag_sum *items; /* sums by key, then by falling sum without its sign, then by value */
    size_t count, capacity;
    struct profile strings; /* strings of the sums; the rest of this profile is empty */
};

/* Numbers are printed in UNIT, as unit_scale takes it; numbers that print alike are one value. */
enum status tag_sums_init(struct tag_sums *sums, const struct profile *profile, size_t value_index, const char *unit,
                          struct error *error);
void tag_sums_fini(struct tag_sums *sums); /* accepts {0} */

/* Returns the end of the values of the key at FIRST, and their sum. */
size_t tag_sums_key_end(const struct tag_sums *sums, size_t first, int64_t *ret_sum);

#endif
