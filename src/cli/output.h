/* Reports to standard output.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_OUTPUT_H
#define OFFBEAT_CLI_OUTPUT_H

#include "base/buffer.h"
#include "cli/options.h"

enum { REPORT_BYTES_MAX = 1 << 30 };

/* Colours only on a terminal that knows them, and never with NO_COLOR. */
bool output_has_colour(void);

/* Characters in a line of the terminal at standard output; 0 where it is none. */
size_t output_width(void);

/* Writes all of REPORT, or says why not. */
enum exit_status output_report(const struct buffer *report);

#endif
