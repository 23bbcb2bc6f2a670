/* Names for formats and tables that distinguish functions by their names alone.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_FULL_NAMES_H
#define OFFBEAT_PROFILE_FULL_NAMES_H

#include "profile/profile.h"

/* Puts the module in front of each function's name (FMT-4, FMT-11): java.lang.Object.wait, not wait. The name without
 * it becomes the system name where there is none. NAMES_UNNAMED: a function without a name is called by its file and
 * line,
 * "[index.js:9]". The profile is not to be added to afterwards. Fails as profile_failed does. */
void profile_give_full_names(struct profile *profile, bool names_unnamed);

/* The functions of a profile and which one each line has, as they were before names were changed for one format. */
struct saved_names {
    struct function *functions;
    struct line *lines;
    size_t function_count, line_count;
};

/* False if memory is short. */
bool profile_save_names(const struct profile *profile, struct saved_names *ret_saved);
/* Puts the names back and frees SAVED. */
void profile_restore_names(struct profile *profile, struct saved_names *saved);

#endif
