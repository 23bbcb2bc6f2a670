/* The table of `offbeat top`.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORT_TOP_H
#define OFFBEAT_CLI_REPORT_TOP_H

#include "analyze/completeness.h"
#include "cli/report_command.h"
#include "report/report.h"

/* Appends the table, or with REQUEST->json the object, of the filtered profile of REPORT. */
enum exit_status report_top(const struct report_request *request, const struct report *report,
                            const struct completeness *completeness, struct buffer *out);

#endif
