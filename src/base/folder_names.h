/* The names in a folder, without memory from malloc, which opendir takes.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_FOLDER_NAMES_H
#define OFFBEAT_BASE_FOLDER_NAMES_H

#include <stdalign.h>

struct folder_names {
    int descriptor; /* -1: it cannot be read, or was read to its end */
    long at, size;  /* position in ENTRIES, and their bytes */
    alignas(8) char entries[2048];
};

/* Begins with the folder at PATH, which may be one that cannot be read: it has no names then. */
void folder_open(struct folder_names *folder, const char *path);
/* Begins with the open folder DESCRIPTOR, which the reader closes. */
void folder_of(struct folder_names *folder, int descriptor);
/* Returns the next name, valid until the next call, but not "." and ".."; NULL at the end. */
const char *folder_next(struct folder_names *folder);
/* Ends before the last name. Does nothing after it. */
void folder_close(struct folder_names *folder);

#endif
