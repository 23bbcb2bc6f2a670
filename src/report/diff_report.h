/* The differences between two profiles, for people and for programs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_DIFF_REPORT_H
#define OFFBEAT_REPORT_DIFF_REPORT_H

#include "analyze/diff.h"
#include "base/buffer.h"

struct diff_report_options {
    const char *base_name, *new_name; /* names of the files; table only */
    size_t function_max;              /* 0: all */
    bool has_colour;                  /* table only */
    size_t width;                     /* table only; 0: names are complete */
    const char *unit;                 /* table only: a name, "auto" or "minimum" */
    const char *const *filters;       /* table only: "focus=main", NULL ends them; may be NULL */
    bool has_failed;                  /* JSON only: some difference is over --fail-over */
};

/* Append to OUT; a failure is OUT's. The JSON is in doc/man/offbeat-diff.1. Functions without a difference are left
 * out. */
void diff_write_table(const struct profile *profile, const struct diff *diff, const struct diff_report_options *options,
                      struct buffer *out);
void diff_write_json(const struct profile *profile, const struct diff *diff, const struct diff_report_options *options,
                     struct buffer *out);

#endif
