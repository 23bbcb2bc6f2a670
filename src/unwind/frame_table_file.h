/* Tables kept in files, so that each is built once for a build id.
 *
 * A file is a header and the table's block of memory, in the byte order and layout of this machine and this version. It
 * is read into memory and not mapped: a file that is cut while it is mapped would kill a signal handler that reads it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_FRAME_TABLE_FILE_H
#define OFFBEAT_UNWIND_FRAME_TABLE_FILE_H

#include "unwind/frame_table.h"

enum { FRAME_TABLE_FILE_BYTES_MAX = 512 << 20, FRAME_TABLE_KEY_MAX = 64 };

/* Writes TABLE to PATH, completely or not at all; KEY (up to FRAME_TABLE_KEY_MAX bytes: a build id) identifies the
 * module. Needs room for a file beside it, which is renamed. Returns false if it cannot be written. Not signal-safe. */
bool frame_table_save(const struct frame_table *table, const char *path, struct slice key);

/* Reads the table of KEY from PATH. Returns false if there is none, it is of another version or key, or anything in it
 * is not as frame_table_build would have made it: walks can use the result, whatever wrote the file. Allocates pages,
 * never malloc. */
bool frame_table_load(const char *path, struct slice key, struct frame_table *ret_table);

#endif
