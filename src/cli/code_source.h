/* The source files that a report quotes.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_CODE_SOURCE_H
#define OFFBEAT_CLI_CODE_SOURCE_H

#include "cli/report_command.h"
#include "report/code_report.h"
#include "symbolize/dwarf_sources.h"
#include "symbolize/source_file.h"

struct code_source {
    struct source_text text; /* source lines for the report */
    struct source_files files;
    struct dwarf_sources proven;
    bool is_from_dwarf; /* the report's paths come from DWARF that is proven, not from the profile */
    char problem[sizeof(((struct error *)NULL)->message)];
};

void code_source_init(struct code_source *source, const struct report_request *request, const struct profile *profile);
void code_source_fini(struct code_source *source);

/* Removes from the file names of PROFILE what --trim-path and --source-path say, as pprof does. */
void code_source_trim_paths(const struct report_request *request, struct profile *profile);

/* Returns the common part of the reports of REQUEST. */
struct code_report code_report_of(const struct report_request *request, const struct report *report,
                                  const struct code_source *source, struct buffer *out);

/* Returns the number of wanted files that could be read, with one line on standard error if some could not. */
size_t code_source_warn_missing(const struct code_source *source);

#endif
