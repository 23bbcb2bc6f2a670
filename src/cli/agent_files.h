/* The folder of files that offbeat agent writes: SERVICE-PID-TIME and the suffix of the format.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_AGENT_FILES_H
#define OFFBEAT_CLI_AGENT_FILES_H

#include "profile/profile.h"

#include <limits.h>

/* Writes the path of PROFILE's file in FOLDER. Returns false if it is too long. */
bool agent_files_name(const char *folder, const struct profile *profile, const char *suffix, char ret_path[PATH_MAX]);

/* Removes the oldest files with such names until the rest has at most BYTES_MAX bytes and none is older than AGE_NS; 0:
 * no limit. */
void agent_files_trim(const char *folder, uint64_t bytes_max, uint64_t age_ns);

#endif
