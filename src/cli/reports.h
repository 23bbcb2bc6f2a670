/* The reports that have a file each. Each appends to OUT what is to be printed; another status than EXIT_DONE comes
 * after a line on standard error.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORTS_H
#define OFFBEAT_CLI_REPORTS_H

#include "analyze/completeness.h"
#include "base/buffer.h"
#include "cli/report_command.h"
#include "report/report.h"

/* Appends the table of `offbeat top`, or with REQUEST->json the object, of the filtered profile of REPORT. */
enum exit_status report_top(const struct report_request *request, const struct report *report,
                            const struct completeness *completeness, struct buffer *out);

/* Appends the differences between the base of REQUEST, whose samples in REPORT's profile have the base's label, and
 * FILE. EXIT_NO if one is over REQUEST->fail_over. */
enum exit_status report_diff(const struct report_request *request, const struct report *report, const char *file,
                             struct buffer *out);

/* Append source lines or instructions. EXIT_NO if no function matches, EXIT_FAILED if there is no code to show. */
enum exit_status report_list(const struct report_request *request, const struct report *report, struct buffer *out);
enum exit_status report_disasm(const struct report_request *request, const struct report *report,
                               struct profile *profile, struct buffer *out);

/* Cuts PROFILE, which was read from FILES, to REQUEST->span: its profiler, its thread and its time (REL-4). The span is
 * looked for in REQUEST->span_file, or else in FILES. */
enum exit_status report_cut_to_span(const struct report_request *request, char *const *files, size_t count,
                                    struct profile *profile);

#endif
