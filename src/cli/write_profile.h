/* Profiles into files, the same way for every command.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_WRITE_PROFILE_H
#define OFFBEAT_CLI_WRITE_PROFILE_H

#include "format/format.h"

/* The chunks of one output, which may come from several profiles. Begin with {.number = 1}. */
struct chunk_series {
    bool thins_idle;           /* as in sentry_v2_options */
    unsigned number;           /* of the next file: x.envelope, x.2.envelope, … */
    uint64_t samples_left_out; /* that no receiver would accept, */
    struct error refusal;      /* and why the first of them */
};

/* Writes PROFILE to PATH ("-" is standard output) as chunks of FORMAT, which is &format_envelope or &format_sentry_v2.
 *
 * A chunk holds 60 s: a longer profile becomes several files. A part that a receiver would reject for having too few
 * samples goes into the chunk before it or, if that would make it too long, is left out and counted in SERIES; so a
 * profile of a single sample writes nothing. A profile without times, release or profiler id is given them, in place:
 * times one behind the other (reported), the program's name and build id, a new id.
 *
 * False: not all could be written, and a line on standard error has said why. */
bool write_chunk_series(struct profile *profile, const char *path, const struct format *format,
                        struct chunk_series *series);

/* Says how many samples of SERIES were left out and why, if any were. */
void tell_left_out(const char *path, const struct chunk_series *series);

/* Writes PROFILE to PATH in any format; chunks from *NUMBER on, which is counted up, other formats as one file. Reports
 * what was left out. False as above; a profile of which nothing is acceptable leaves *NUMBER as it was. */
bool write_profile(struct profile *profile, const char *path, const struct format *format, unsigned *number);

/* Writes PROFILE in a format of one file, which is none of write_chunk_series, to PATH with the next number of SERIES.
 */
bool write_one_of_series(struct profile *profile, const char *path, const struct format *format,
                         struct chunk_series *series);

#endif
