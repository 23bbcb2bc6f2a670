/* Database files whose every page has a checksum, which SQLite's own format does not have: a damaged page is an error
 * of the statement that reads it, and never a wrong answer.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_CHECKED_FILE_H
#define OFFBEAT_STORE_CHECKED_FILE_H

#include <sqlite3.h>
#include <stdbool.h>

enum checked_file_index { INDEX_IN_FILE, INDEX_IN_MEMORY, INDEX_KINDS };

/* Opens the database at PATH, as sqlite3_open_v2 does with FLAGS. A new file is readable by its owner only. INDEX: the
 * place of the index of its log. On a full disk there is no room for its file; in the memory of this process, other
 * processes cannot open the database meanwhile. */
int checked_file_open(const char *path, sqlite3 **ret_db, int flags, enum checked_file_index index);
/* Returns whether the last statement of DB failed where it may succeed with INDEX_IN_MEMORY. */
bool checked_file_needs_memory(sqlite3 *db);
/* Returns whether the last statement of DB met a damaged page. */
bool checked_file_is_damaged(sqlite3 *db);

#endif
