/* Database files whose every page has a checksum, which SQLite's own format does not have: a damaged page is an error
 * of the statement that reads it, and never a wrong answer.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_CHECKED_FILE_H
#define OFFBEAT_STORE_CHECKED_FILE_H

#include <sqlite3.h>
#include <stdbool.h>

/* Opens the database at PATH, as sqlite3_open_v2 does with FLAGS. A new file is readable by its owner only. */
int checked_file_open(const char *path, sqlite3 **ret_db, int flags);
/* From here on, the index of a log is in the memory of this process and not in a file, which a full disk has no room
 * for: other processes cannot open the databases. Called before the first one is opened. */
void checked_file_use_memory(bool uses_memory);
/* Returns whether the last statement of DB met a damaged page. */
bool checked_file_is_damaged(sqlite3 *db);

#endif
