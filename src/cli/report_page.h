/* The data of the web page, and the server of offbeat view.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_REPORT_PAGE_H
#define OFFBEAT_CLI_REPORT_PAGE_H

#include "cli/report_command.h"
#include "report/report.h"

/* A page has its base beside it; other reports have it in their profile. */
bool report_is_page(const struct report_request *request);

/* Appends the filtered profile of REPORT as one HTML file. */
enum exit_status report_page_write(const struct report_request *request, const struct report *report,
                                   struct buffer *out);

/* Checks REQUEST before files are read: false after a line on standard error. */
bool report_page_check(const struct report_request *request);

/* Shows it in a browser until Ctrl-C; or updates the page of REQUEST. */
enum exit_status report_page_serve(const struct report_request *request, const struct report *report);

#endif
