/* Build ids name files: in caches, in folders of debug files, in requests to servers. So an id of a file that was read
 * is hexadecimal, or it is no id. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_BUILD_ID_H
#define OFFBEAT_PROFILE_BUILD_ID_H

#include "profile/profile.h"

enum { BUILD_ID_PAIRS_MIN = 2, BUILD_ID_PAIRS_MAX = 64 }; /* bytes; an ELF note may have as many */

/* Returns whether TEXT is from BUILD_ID_PAIRS_MIN to BUILD_ID_PAIRS_MAX pairs of hexadecimal digits. */
bool is_build_id(struct slice text);

/* Writes the build id of MAPPING in lower case. Moves one that is not hexadecimal to build_text if it is a word, as in
 * pprof's test files, and adds an omission to PROFILE if it is not. */
void mapping_check_build_id(struct profile *profile, struct mapping *mapping);

/* Returns the build id of MAPPING, or its build_text, to show or to write. */
static inline struct string_id mapping_build_text(const struct mapping *mapping)
{
    return mapping->build_id.index ? mapping->build_id : mapping->build_text;
}

#endif
