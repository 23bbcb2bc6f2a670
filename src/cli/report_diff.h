/* The report of `offbeat diff`.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORT_DIFF_H
#define OFFBEAT_CLI_REPORT_DIFF_H

#include "cli/report_command.h"
#include "report/report.h"

/* Appends the differences between the base of REQUEST, whose samples in REPORT's profile have the base's label, and
 * FILE. EXIT_NO, with lines on standard error, if one is over REQUEST->fail_over. */
enum exit_status report_diff(const struct report_request *request, const struct report *report, const char *file,
                             struct buffer *out);

#endif
