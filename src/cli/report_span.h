/* From a transaction or span to its part of the profile (requirement REL-4).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORT_SPAN_H
#define OFFBEAT_CLI_REPORT_SPAN_H

#include "cli/report_command.h"
#include "profile/profile.h"

/* Cuts PROFILE, which was read from FILES, to REQUEST->span: its profiler, its thread and its time. The span is
 * looked for in REQUEST->span_file, or else in FILES. Anything but EXIT_DONE after a line on standard error. */
enum exit_status report_cut_to_span(const struct report_request *request, char *const *files, size_t count,
                                    struct profile *profile);

#endif
