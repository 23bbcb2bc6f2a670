/* What is in a file, for people and for programs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_INFO_REPORT_H
#define OFFBEAT_REPORT_INFO_REPORT_H

#include "analyze/summary.h"
#include "base/buffer.h"

/* What is known of the file besides the profile in it. */
struct info_file {
    const char *path;
    const char *format;
    const char *version; /* of the format; "" where it has none */
    size_t size_bytes;
};

/* Append to OUT; a failure is OUT's. The JSON is one object on a line, described in doc/command-line.md. */
void info_write_text(const struct info_file *file, const struct profile *profile, const struct summary *summary,
                     struct buffer *out);
void info_write_json(const struct info_file *file, const struct profile *profile, const struct summary *summary,
                     struct buffer *out);

#endif
