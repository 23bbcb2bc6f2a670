/* The reports that read code: source lines and instructions.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORT_CODE_H
#define OFFBEAT_CLI_REPORT_CODE_H

#include "base/buffer.h"
#include "cli/report_command.h"
#include "report/report.h"

/* Append to OUT what is to be printed. The status is EXIT_NO after a line on standard error if no function matches, and
 * EXIT_FAILED if there is no code to show. */
enum exit_status report_list(const struct report_request *request, const struct report *report, struct buffer *out);
enum exit_status report_disasm(const struct report_request *request, const struct report *report,
                               struct profile *profile, struct buffer *out);

#endif
