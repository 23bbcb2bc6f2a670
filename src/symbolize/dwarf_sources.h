/* The source files that debug information proves: a profile may name any file of this machine, but the DWARF of a
 * program with the right build id names only its own. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DWARF_SOURCES_H
#define OFFBEAT_SYMBOLIZE_DWARF_SOURCES_H

#include "profile/profile.h"

/* {.profile = …} is valid and empty. */
struct dwarf_sources {
    const struct profile *profile;
    bool *is_named; /* answers by string of the profile; NULL before the first question */
    size_t string_count;
};

/* Returns whether the DWARF of a file that the profile names names PATH, at an address of the profile. The first call
 * opens these files if the profile has their build ids, and reads those whose build ids match. */
bool dwarf_sources_have(struct dwarf_sources *sources, const char *path);
void dwarf_sources_fini(struct dwarf_sources *sources);

#endif
