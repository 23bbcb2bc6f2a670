/* Profiles into files, the same way for every command.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_WRITE_PROFILE_H
#define OFFBEAT_CLI_WRITE_PROFILE_H

#include "format/format.h"

/* Writes PROFILE to PATH ("-" is standard output).
 *
 * Sentry's chunks hold 60 s: a longer profile becomes several files (x.envelope, x.2.envelope, …), and a part that a
 * receiver would reject for having too few samples goes into the chunk before it or, if that would make it too long, is
 * left out and reported. For a chunk, a profile without times, release or profiler id is given them, in place: times
 * one behind the other (reported), the program's name and build id, a new id.
 *
 * *NUMBER is the number of the next chunk's file, 1 at first; it is counted up, so that several profiles can share a
 * series. Other formats neither read nor change it: they are one file.
 *
 * False: nothing or not all could be written, and a line on standard error has said why. */
bool write_profile(struct profile *profile, const char *path, enum format format, unsigned *number);

#endif
