/* Where `offbeat record` finds liboffbeat.so, and how LD_PRELOAD names it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_RECORD_LIBRARY_H
#define OFFBEAT_CLI_RECORD_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

/* False, with a message, if there is no library. */
bool record_library_find(char ret_path[PATH_MAX]);

/* The library that begins before all others: beside the one at PATH, or in the folder "offbeat" there. False if it
 * is not there: it is not needed. RET_FIRST is then where it would be beside PATH. */
bool record_library_first(const char *path, char ret_first[PATH_MAX]);

/* Whether LD_PRELOAD can name PATH. */
bool record_library_is_plain(const char *path);

/* The loader takes blanks and colons in LD_PRELOAD for separators, and expands $. A library with such a path gets a
 * link in DIRECTORY, and PATH becomes the link's. False, with a message, if that is impossible. */
bool record_library_link(char path[PATH_MAX], const char *directory);
/* A hint: if other users cannot read PATH, puts a copy into DIRECTORY, and PATH becomes the copy's. */
void record_library_copy_for_others(char path[PATH_MAX], const char *directory);
/* Deletes the links or the copies. */
void record_library_unlink(const char *directory);

#endif
