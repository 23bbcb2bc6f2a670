/* A file system of SQLite (VFS) over that of the system. The last bytes of each page, which SQLite leaves alone, have a
 * CRC-32 of the page and its place in the file. It is computed when a page is written to the database file, also when
 * it comes out of the log, and compared when the page is read from there. Pages in the log have checksums by SQLite.
 * SPDX-License-Identifier: MIT */
#include "store/checked_file.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHECK_BYTES = 8, PAGE_BYTES_MIN = 512, PAGE_BYTES_MAX = 1 << 16 };

/* The file of the system is behind this in memory. */
struct checked_file {
    sqlite3_file file;
};

static sqlite3_file *file_of_system(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((struct checked_file *)(void *)file + 1);
}

/* --- Pages -------------------------------------------------------------------------------------------------------- */

static bool is_page(int size, sqlite3_int64 offset)
{
    return size >= PAGE_BYTES_MIN && size <= PAGE_BYTES_MAX && (size & (size - 1)) == 0 && offset % size == 0;
}

static uint64_t page_check(const uint8_t *page, int size, sqlite3_int64 offset)
{
    uint64_t number = (uint64_t)offset;
    uint32_t check = libdeflate_crc32(0, &number, sizeof(number));
    return libdeflate_crc32(check, page, (size_t)size - CHECK_BYTES);
}

static int read_checked(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset)
{
    sqlite3_file *real = file_of_system(file);
    int code = real->pMethods->xRead(real, bytes, size, offset);
    if (code != SQLITE_OK || !is_page(size, offset)) return code;
    uint64_t check;
    (void)memcpy(&check, (const uint8_t *)bytes + size - CHECK_BYTES, sizeof(check));
    return check == page_check(bytes, size, offset) ? SQLITE_OK : SQLITE_IOERR_DATA;
}

static int write_checked(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    sqlite3_file *real = file_of_system(file);
    uint8_t page[PAGE_BYTES_MAX];
    if (!is_page(size, offset)) return real->pMethods->xWrite(real, bytes, size, offset);
    (void)memcpy(page, bytes, (size_t)size);
    uint64_t check = page_check(page, size, offset);
    (void)memcpy(page + size - CHECK_BYTES, &check, sizeof(check));
    return real->pMethods->xWrite(real, page, size, offset);
}

/* --- What is the system's ----------------------------------------------------------------------------------------- */

#define FORWARD(name, parameters, arguments)                                                                           \
    static int forward_##name parameters                                                                               \
    {                                                                                                                  \
        sqlite3_file *real = file_of_system(file);                                                                     \
        return real->pMethods->name arguments;                                                                         \
    }
FORWARD(xClose, (sqlite3_file * file), (real))
FORWARD(xTruncate, (sqlite3_file * file, sqlite3_int64 size), (real, size))
FORWARD(xSync, (sqlite3_file * file, int flags), (real, flags))
FORWARD(xFileSize, (sqlite3_file * file, sqlite3_int64 *size), (real, size))
FORWARD(xLock, (sqlite3_file * file, int lock), (real, lock))
FORWARD(xUnlock, (sqlite3_file * file, int lock), (real, lock))
FORWARD(xCheckReservedLock, (sqlite3_file * file, int *result), (real, result))
FORWARD(xFileControl, (sqlite3_file * file, int operation, void *argument), (real, operation, argument))
FORWARD(xSectorSize, (sqlite3_file * file), (real))
FORWARD(xDeviceCharacteristics, (sqlite3_file * file), (real))
FORWARD(xShmMap, (sqlite3_file * file, int page, int size, int extends, void volatile **place),
        (real, page, size, extends, place))
FORWARD(xShmLock, (sqlite3_file * file, int offset, int count, int flags), (real, offset, count, flags))
FORWARD(xShmUnmap, (sqlite3_file * file, int removes), (real, removes))
#undef FORWARD

static void forward_xShmBarrier(sqlite3_file *file)
{
    sqlite3_file *real = file_of_system(file);
    real->pMethods->xShmBarrier(real);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* without mapped pages, which no function reads */
    .xClose = forward_xClose,
    .xRead = read_checked,
    .xWrite = write_checked,
    .xTruncate = forward_xTruncate,
    .xSync = forward_xSync,
    .xFileSize = forward_xFileSize,
    .xLock = forward_xLock,
    .xUnlock = forward_xUnlock,
    .xCheckReservedLock = forward_xCheckReservedLock,
    .xFileControl = forward_xFileControl,
    .xSectorSize = forward_xSectorSize,
    .xDeviceCharacteristics = forward_xDeviceCharacteristics,
    .xShmMap = forward_xShmMap,
    .xShmLock = forward_xShmLock,
    .xShmBarrier = forward_xShmBarrier,
    .xShmUnmap = forward_xShmUnmap,
};

/* Creates a file only if it is not there: closing a second descriptor of one would lose SQLite's locks on it. */
static void create_private(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) (void)close(file);
}

/* Logs and temporary files are the system's own. */
static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    if (!(flags & SQLITE_OPEN_MAIN_DB) || !path) return real->xOpen(real, path, file, flags, ret_flags);
    if (flags & SQLITE_OPEN_CREATE) create_private(path);
    file->pMethods = NULL;
    int code = real->xOpen(real, path, file_of_system(file), flags, ret_flags);
    if (code == SQLITE_OK) file->pMethods = &methods;
    return code;
}

static int delete_file(sqlite3_vfs *vfs, const char *path, int syncs)
{
    sqlite3_vfs *real = vfs->pAppData;
    return real->xDelete(real, path, syncs);
}

static int access_file(sqlite3_vfs *vfs, const char *path, int flags, int *result)
{
    sqlite3_vfs *real = vfs->pAppData;
    return real->xAccess(real, path, flags, result);
}

static int find_path(sqlite3_vfs *vfs, const char *path, int size, char *result)
{
    sqlite3_vfs *real = vfs->pAppData;
    return real->xFullPathname(real, path, size, result);
}

static int take_random(sqlite3_vfs *vfs, int size, char *result)
{
    sqlite3_vfs *real = vfs->pAppData;
    return real->xRandomness(real, size, result);
}

static int sleep_for(sqlite3_vfs *vfs, int microseconds)
{
    sqlite3_vfs *real = vfs->pAppData;
    return real->xSleep(real, microseconds);
}

static int tell_time(sqlite3_vfs *vfs, double *result)
{
    sqlite3_vfs *real = vfs->pAppData;
    return real->xCurrentTime(real, result);
}

static int last_error(sqlite3_vfs *vfs, int size, char *result)
{
    sqlite3_vfs *real = vfs->pAppData;
    return real->xGetLastError(real, size, result);
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static const char *const names[INDEX_KINDS] = {"offbeat", "offbeat-memory"};
static sqlite3_vfs systems[INDEX_KINDS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void register_systems(void)
{
    static const char *const real_names[INDEX_KINDS] = {"unix", "unix-excl"};
    for (int i = 0; i < INDEX_KINDS; i++) {
        sqlite3_vfs *real = sqlite3_vfs_find(real_names[i]);
        if (!real) continue;
        systems[i] = (sqlite3_vfs){
            .iVersion = 1,
            .szOsFile = (int)sizeof(struct checked_file) + real->szOsFile,
            .mxPathname = real->mxPathname,
            .zName = names[i],
            .pAppData = real,
            .xOpen = open_file,
            .xDelete = delete_file,
            .xAccess = access_file,
            .xFullPathname = find_path,
            .xRandomness = take_random,
            .xSleep = sleep_for,
            .xCurrentTime = tell_time,
            .xGetLastError = last_error,
        };
        (void)sqlite3_vfs_register(&systems[i], 0);
    }
}

int checked_file_open(const char *path, sqlite3 **ret_db, int flags, enum checked_file_index index)
{
    int reserved = CHECK_BYTES;
    (void)pthread_once(&once, register_systems);
    int code = sqlite3_open_v2(path, ret_db, flags, names[index]);
    if (code == SQLITE_OK) (void)sqlite3_file_control(*ret_db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    return code;
}

bool checked_file_is_damaged(sqlite3 *db)
{
    return sqlite3_extended_errcode(db) == SQLITE_IOERR_DATA;
}

bool checked_file_needs_memory(sqlite3 *db)
{
    int code = sqlite3_errcode(db);
    return code == SQLITE_FULL || code == SQLITE_CANTOPEN || (code == SQLITE_IOERR && !checked_file_is_damaged(db));
}
