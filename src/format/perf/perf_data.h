/* Files of `perf record`, and what it writes into a pipe (doc/formats/perf-data.md). Little-endian only.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_DATA_H
#define OFFBEAT_FORMAT_PERF_PERF_DATA_H

#include "format/perf/perf_code.h"
#include "format/perf/perf_input.h"
#include "profile/profile.h"

enum {
    PERF_DATA_BUILD_IDS_MAX = 1 << 20,
    PERF_SOURCES_MAX = 4096, /* the processors of the largest machines */
    PERF_DATA_FEATURE_BYTES_MAX = 64 << 20,
};

bool perf_data_detect(struct slice bytes);

/* Decodes BYTES into PROFILE, which must be initialised and empty. The user part of `--call-graph dwarf` samples is
 * their innermost frame, as no file is opened. STATUS_UNSUPPORTED for the other byte order. */
enum status perf_data_decode(struct slice bytes, struct profile *profile, struct error *error);

/* The same from the first of COUNT SOURCES, at most PERF_SOURCES_MAX, read once from front to back but for its headers.
 * The others have only records, each in the order of their times, as `perf record --threads` writes them. CODE (may be
 * NULL) unwinds copied stacks. */
enum status perf_data_decode_sources(const struct perf_source *sources, size_t count, const struct perf_code *code,
                                     struct profile *profile, struct error *error);

#endif
