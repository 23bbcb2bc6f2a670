/* A profile's strings with escapes, for reports: names are text of strangers, and may command the terminal on which
 * they are printed. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_ESCAPE_STRINGS_H
#define OFFBEAT_PROFILE_ESCAPE_STRINGS_H

#include "profile/profile.h"

/* Replaces each string of PROFILE that is not printable by one with escapes (base/printable.h), under the same id.
 * Comments keep their lines. KEEPS_PATHS: the names of files stay as they are, so that they can be opened. Failure is
 * the profile's. */
void profile_escape_strings(struct profile *profile, bool keeps_paths);

#endif
