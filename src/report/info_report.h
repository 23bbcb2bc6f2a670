/* The contents of a file, for people and for programs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_INFO_REPORT_H
#define OFFBEAT_REPORT_INFO_REPORT_H

#include "analyze/completeness.h"
#include "analyze/summary.h"
#include "base/buffer.h"

struct info_item_fact {
    struct string_id key; /* key; it and TEXT are strings of the file's profile */
    enum { INFO_TEXT, INFO_COUNT, INFO_TIME, INFO_DURATION } kind;
    struct string_id text;
    uint64_t number; /* INFO_TIME: nanoseconds since 1970; INFO_DURATION: nanoseconds */
};

struct info_item {
    struct string_id type;
    size_t size_bytes;
    struct info_item_fact *facts;
    size_t fact_count, fact_capacity;
};

/* The file itself, without the profile in it. */
struct info_file {
    const char *path;
    const char *format;
    const char *version; /* version of the format; "" where it has none */
    size_t size_bytes;
    const struct info_item *items; /* items of an envelope */
    size_t item_count;
    bool has_profile; /* an envelope may have none */
    struct completeness completeness;
};

/* Append to OUT; a failure is OUT's. The JSON is one object on a line, described in doc/man/offbeat-info.1. */
void info_write_text(const struct info_file *file, const struct profile *profile, const struct summary *summary,
                     struct buffer *out);
void info_write_json(const struct info_file *file, const struct profile *profile, const struct summary *summary,
                     struct buffer *out);

#endif
