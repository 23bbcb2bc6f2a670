/* Flame graphs, flamecharts and their comparisons.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORT_FLAME_H
#define OFFBEAT_CLI_REPORT_FLAME_H

#include "cli/report_command.h"
#include "report/report.h"

/* Appends the drawing, text or object of the filtered profile of REPORT. */
enum exit_status report_flame(const struct report_request *request, const struct report *report, struct buffer *out);

/* Whether the request is for text: what a terminal gets, unless something else is asked for. */
bool report_flame_is_text(const struct report_request *request);

/* Whether the request is for the page in one file: x.html. */
bool report_flame_is_page(const struct report_request *request);

/* False after a line on standard error: the options of REQUEST contradict each other. */
bool report_flame_check(const struct report_request *request);

#endif
