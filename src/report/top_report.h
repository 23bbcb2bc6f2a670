/* The hottest functions, for people and for programs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_TOP_REPORT_H
#define OFFBEAT_REPORT_TOP_REPORT_H

#include "analyze/top.h"
#include "base/buffer.h"

struct top_report_options {
    size_t function_max; /* of each thread or process, and so many processes; 0 = all */
    bool has_colour;     /* table only */
    size_t width; /* table only: characters in a line, for which long names are shortened; 0: names are complete */
};

/* Append to OUT; a failure is OUT's. The table is that of `pprof -top`; the JSON is in doc/command-line.md. */
void top_write_table(const struct profile *profile, const struct top *top, const struct top_report_options *options,
                     struct buffer *out);
void top_write_json(const struct profile *profile, const struct top *top, const struct top_report_options *options,
                    struct buffer *out);

#endif
