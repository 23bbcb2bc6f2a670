/* From the files of a report to its profile.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORT_SOURCES_H
#define OFFBEAT_CLI_REPORT_SOURCES_H

#include "cli/report_command.h"
#include "profile/profile.h"

/* Reads FILES into PROFILE, which must be initialised and empty, and subtracts the base of REQUEST. False after a line
 * on standard error. */
bool report_open(const struct report_request *request, char *const *files, size_t count, struct profile *profile);

/* Leaves out the frames that the profile asks to drop, and gives functions the names that the report shows. False
 * after a line on standard error. */
bool report_prepare(const struct report_request *request, struct profile *profile);

#endif
