/* Profiles into files, the same way for every command.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_WRITE_PROFILE_H
#define OFFBEAT_CLI_WRITE_PROFILE_H

#include "deliver/chunks.h"
#include "format/format.h"

/* The chunks of one output, which may come from several profiles. Begin with {.number = 1}. */
struct chunk_series {
    bool thins_idle; /* option as in sentry_v2_options */
    unsigned number; /* number of the next file: x.envelope, x.2.envelope, … */
    struct deliver_summary summary;
};

/* Writes PROFILE to PATH ("-" is standard output) as chunks of FORMAT, which is &format_envelope or &format_sentry_v2.
 *
 * deliver_chunks splits it; a profile longer than 60 s becomes several files. A profile of a single sample writes
 * nothing. A profile without timestamps (which is reported), release or profiler id gets them, in place.
 *
 * False: not everything could be written; standard error has a line that says why. */
bool write_chunk_series(struct profile *profile, const char *path, const struct format *format,
                        struct chunk_series *series);

/* Prints how many samples of SERIES were left out and why, if any were. */
void report_left_out(const char *path, const struct chunk_series *series);

/* Writes PROFILE to PATH in any format; chunks from *NUMBER on, which is counted up, other formats as one file. Reports
 * what was left out. False as above; a profile of which nothing is acceptable leaves *NUMBER as it was. */
bool write_profile(struct profile *profile, const char *path, const struct format *format, unsigned *number);

/* Writes PROFILE to PATH with the next number of SERIES, in a format that write_chunk_series does not write.
 */
bool write_one_of_series(struct profile *profile, const char *path, const struct format *format,
                         struct chunk_series *series);

#endif
