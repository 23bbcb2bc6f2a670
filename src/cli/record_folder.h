/* The folder that the processes of a recorded program write their recordings to.
 *
 * Recorded by root, a program may start processes that run as another user, or become one. They cannot write to a
 * folder of root's with mode 0700, nor load a library from one. So root makes two folders: an outer one that others can
 * only pass through (0711), and in it one with a name that cannot be guessed, which others can add files to (1733).
 * What is found there may come from anyone: record_folder_read accepts only a regular file that has one name.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_RECORD_FOLDER_H
#define OFFBEAT_CLI_RECORD_FOLDER_H

#include "base/buffer.h"

#include <limits.h>

struct record_folder {
    char path[PATH_MAX];  /* folder of recordings */
    char outer[PATH_MAX]; /* "" where there is none */
    char links[64];       /* folder of links to the library where LD_PRELOAD cannot name the others; "": not needed */
};

/* False after one line on standard error. */
bool record_folder_make(struct record_folder *folder);

/* Puts a copy of LIBRARY, or a link to it, into the folder if the program could not load it otherwise: LIBRARY becomes
 * the path to preload. False after one line on standard error. */
bool record_folder_add_library(struct record_folder *folder, char library[PATH_MAX]);
void record_folder_remove_library(const struct record_folder *folder);

enum record_file { RECORD_FILE_READ, RECORD_FILE_FAILED, RECORD_FILE_LEFT_OUT };

/* Reads the recording NAME into BYTES, which the caller finishes in every case. What is no recording is left out.
 * Unless READ, one line on standard error says why. */
enum record_file record_folder_read(const struct record_folder *folder, const char *name, struct buffer *bytes);

/* Returns true if the file system of the folder has no room for a batch of a recording. */
bool record_folder_is_full(const struct record_folder *folder);

/* Two names of recordings, for qsort: in the order of the clock that is part of them, parents before their children. */
int record_folder_compare(const void *left, const void *right);

/* Deletes the file NAME if it is empty: its process ended between making the file and writing to it. */
bool record_folder_delete_empty(const struct record_folder *folder, const char *name);
void record_folder_delete(const struct record_folder *folder, const char *name);

/* Moves copies of deleted files (sampler/modules/image_file.h) to where the symbolizer looks for a build id. Returns
 * that debug directory. */
const char *record_folder_arrange_images(const struct record_folder *folder);

/* Deletes the files, or links to them, in DIRECTORY that are named after build ids. */
void record_folder_remove_images(const char *directory);

/* Makes processes that start from now on record nothing: sampling has ended. Deletes the recordings if ARE_READ. */
void record_folder_close(const struct record_folder *folder, bool are_read);

/* Deletes the library and, where they are empty, the folders. */
void record_folder_remove(const struct record_folder *folder);

#endif
