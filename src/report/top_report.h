/* The hottest functions, for people and for programs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_TOP_REPORT_H
#define OFFBEAT_REPORT_TOP_REPORT_H

#include "analyze/top.h"
#include "base/buffer.h"

#include <math.h>

struct top_report_options {
    size_t function_max; /* greatest number of functions of each thread or process, and of processes; 0 = all */
    bool has_colour;     /* table only */
    size_t width;     /* table only: characters in a line, for which long names are shortened; 0: names are complete */
    const char *unit; /* table only: a name, "auto" or "minimum"; NULL: "minimum" */
    double ratio;     /* factor of all numbers; 0: 1 */
    const char *const *filters; /* table only: "focus=main", NULL ends them; may be NULL */
};

/* Returns VALUE times the ratio, within 64 bits. */
static inline int64_t top_report_value(const struct top_report_options *options, int64_t value)
{
    if (options->ratio == 0 || options->ratio == 1) return value;
    double product = round((double)value * options->ratio);
    if (product >= 0x1p63) return INT64_MAX;
    return product < -0x1p63 ? INT64_MIN : (int64_t)product;
}

/* Append to OUT; a failure is OUT's. The table is that of `pprof -top`; the JSON is in doc/man/offbeat-top.1. */
void top_write_table(const struct profile *profile, const struct top *top, const struct top_report_options *options,
                     struct buffer *out);
void top_write_json(const struct profile *profile, const struct top *top, const struct top_report_options *options,
                    struct buffer *out);

#endif
