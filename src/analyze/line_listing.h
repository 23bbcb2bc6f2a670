/* The cost of each source line of the functions that match an expression.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_LINE_LISTING_H
#define OFFBEAT_ANALYZE_LINE_LISTING_H

#include "analyze/row_costs.h"

enum { LISTING_MARGIN = 5 }; /* lines shown before the first and after the last one with a cost */

struct listed_line {
    int64_t number; /* 0: not known */
    int64_t flat, cum;
};

/* A function, in one of its files: code of one function can come from several. */
struct listed_function {
    const char *name;              /* a string of the grouping */
    const char *file;              /* the same; "": not known; then there are no lines */
    int64_t flat, cum;             /* sums of all lines; cum counts a stack once */
    int64_t cum_of_lines;          /* the sum of the lines' cum, which counts a recursion between lines twice */
    int64_t first, last;           /* the lines to show, from the function's start if that is known; 0: none is known */
    size_t line_first, line_count; /* index in LINES, which ascend by number, and number of lines */
};

struct line_listing {
    struct listed_function *functions; /* functions by name, then file */
    size_t function_count;
    struct listed_line *lines;
    size_t line_count;
};

/* GROUPING is by lines. Only functions of samples with a value are listed. PATTERN matches any part of a name. Fails
 * with STATUS_MALFORMED, STATUS_UNSUPPORTED or STATUS_TOO_LARGE if PATTERN is wrong, or STATUS_NO_MEMORY. */
enum status line_listing_init(struct line_listing *listing, const struct profile *profile,
                              const struct grouping *grouping, const char *pattern, struct value_choice choice,
                              struct error *error);
void line_listing_fini(struct line_listing *listing); /* accepts {0} */

/* Returns whether any function has a file. */
bool line_listing_has_file(const struct line_listing *listing);

#endif
