/* Where `offbeat record` finds liboffbeat.so, and how LD_PRELOAD names it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_RECORD_LIBRARY_H
#define OFFBEAT_CLI_RECORD_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

/* False, with a message, if there is no library. */
bool record_library_find(char ret_path[PATH_MAX]);

/* The loader takes blanks and colons in LD_PRELOAD for separators, and expands $. A library with such a path gets a
 * link in DIRECTORY, and PATH becomes the link's. False, with a message, if that is impossible. */
bool record_library_link(char path[PATH_MAX], const char *directory);
/* A hint: if other users cannot read PATH, puts a copy into DIRECTORY, and PATH becomes the copy's. */
void record_library_copy_for_others(char path[PATH_MAX], const char *directory);
/* Deletes the link or the copy. */
void record_library_unlink(const char *directory);

#endif
