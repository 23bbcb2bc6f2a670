/* Statements of SQLite.  SPDX-License-Identifier: MIT */
#include "store/store_private.h"

#include <stdio.h>

enum status sql_failed(sqlite3 *db, struct error *error, const char *what)
{
    int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
    const char *why = db ? sqlite3_errmsg(db) : "not enough memory";
    if (db && checked_file_is_damaged(db))
        return error_set(error, STATUS_MALFORMED, 0, "%s: a page has a wrong checksum", what);
    switch (code) {
    case SQLITE_NOMEM:
        return error_set(error, STATUS_NO_MEMORY, 0, "%s: %s", what, why);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(error, STATUS_MALFORMED, 0, "%s: %s", what, why);
    default:
        return error_set(error, STATUS_IO, 0, "%s: %s", what, why);
    }
}

void sql_bind_slice(sqlite3_stmt *statement, int index, struct slice text)
{
    (void)sqlite3_bind_text64(statement, index, text.size ? (const char *)text.data : "", text.size, SQLITE_STATIC,
                              SQLITE_UTF8);
}

void sql_bind_u64(sqlite3_stmt *statement, int index, uint64_t value)
{
    (void)sqlite3_bind_int64(statement, index, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

struct slice sql_text(sqlite3_stmt *statement, int column)
{
    const void *bytes = sqlite3_column_blob(statement, column);
    return slice_of(bytes, bytes ? (size_t)sqlite3_column_bytes(statement, column) : 0);
}

void sql_copy_text(sqlite3_stmt *statement, int column, char *into, size_t size)
{
    (void)snprintf(into, size, "%.*s", SLICE_ARGUMENTS(sql_text(statement, column)));
}

uint64_t sql_u64(sqlite3_stmt *statement, int column)
{
    int64_t value = sqlite3_column_int64(statement, column);
    return value < 0 ? 0 : (uint64_t)value;
}

int sql_version(sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    int version = -1;
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        version = sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    return version;
}

enum status sql_wrong_version(const char *name, int version, int expected, struct error *error)
{
    return error_set(error, STATUS_UNSUPPORTED, 0, "%s has schema version %d; this offbeat opens only version %d", name,
                     version, expected);
}
