/* SPDX-License-Identifier: MIT */
#include "cli/record_folder.h"

#include "base/environment.h"
#include "base/hex.h"
#include "cli/message.h"
#include "cli/record_library.h"
#include "format/format.h"
#include "format/recording/recording.h"
#include "format/recording/recording_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define IMAGE_SUFFIX ".image"

static const char *const temporary_folders[] = {"/tmp", "/var/tmp", "/dev/shm"};

/* --- Making ------------------------------------------------------------------------------------------------------- */

static bool make_inner(struct record_folder *folder)
{
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) return false;
    int length = snprintf(folder->path, sizeof(folder->path), "%s/%016llx%016llx", folder->outer,
                          (unsigned long long)random[0], (unsigned long long)random[1]);
    if (length >= (int)sizeof(folder->path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    /* mkdir heeds the umask. */
    return mkdir(folder->path, 0700) == 0 && chmod(folder->outer, 0711) == 0 && chmod(folder->path, 01733) == 0;
}

static bool make_in(struct record_folder *folder, const char *parent)
{
    bool is_shared = geteuid() == 0;
    *folder = (struct record_folder){0};
    char *made = is_shared ? folder->outer : folder->path;
    if (snprintf(made, PATH_MAX, "%s/offbeat-XXXXXX", parent) >= PATH_MAX || !mkdtemp(made)) return false;
    if (!is_shared || make_inner(folder)) return true;
    int errno_value = errno;
    (void)rmdir(folder->path);
    (void)rmdir(folder->outer);
    errno = errno_value;
    return false;
}

bool record_folder_make(struct record_folder *folder)
{
    const char *wanted = environment_get("TMPDIR");
    if (wanted && wanted[0] == '/') {
        if (make_in(folder, wanted)) return true;
        message("cannot make a folder for recordings in %s (TMPDIR): %s", wanted, strerror(errno));
        return false;
    }
    for (size_t i = 0; i < sizeof(temporary_folders) / sizeof(temporary_folders[0]); i++) {
        if (make_in(folder, temporary_folders[i])) return true;
    }
    message("cannot make a folder for recordings in /tmp, /var/tmp or /dev/shm: %s; set TMPDIR to a folder that can be "
            "written",
            strerror(errno));
    return false;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static bool read_all(int descriptor, struct buffer *bytes)
{
    enum { BLOCK = 1 << 20 };
    for (;;) {
        uint8_t *block = buffer_reserve(bytes, BLOCK);
        if (!block) {
            errno = bytes->is_full ? EFBIG : ENOMEM;
            return false;
        }
        ssize_t got = read(descriptor, block, BLOCK);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        buffer_grow(bytes, (size_t)got);
    }
}

static bool is_plain(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
}

static enum record_file read_recording(const char *path, int descriptor, struct buffer *bytes)
{
    if (!is_plain(descriptor)) {
        message("%s is not a regular file with one name: it is left out", path);
        return RECORD_FILE_LEFT_OUT;
    }
    if (!read_all(descriptor, bytes)) {
        message("cannot read %s: %s", path, strerror(errno));
        return RECORD_FILE_FAILED;
    }
    if (recording_detect(buffer_slice(bytes))) return RECORD_FILE_READ;
    if (recording_other_version(buffer_slice(bytes)))
        message("%s was written by a liboffbeat of another version: it is left out", path);
    else
        message("%s is not a recording: it is left out", path);
    return RECORD_FILE_LEFT_OUT;
}

bool record_folder_is_full(const struct record_folder *folder)
{
    struct statvfs status;
    return statvfs(folder->path, &status) == 0 &&
           (uint64_t)status.f_bavail * status.f_frsize < (uint64_t)RECORDING_BATCH_MAX;
}

enum record_file record_folder_read(const struct record_folder *folder, const char *name, struct buffer *bytes)
{
    char path[PATH_MAX + 260];
    (void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    buffer_init(bytes, FORMAT_BYTES_MAX);
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor < 0) {
        bool is_link = errno == ELOOP;
        message("cannot read %s: %s", path, strerror(errno));
        return is_link ? RECORD_FILE_LEFT_OUT : RECORD_FILE_FAILED;
    }
    enum record_file found = read_recording(path, descriptor, bytes);
    (void)close(descriptor);
    return found;
}

int record_folder_compare(const void *left, const void *right)
{
    const char *a = strchr(left, '-'), *b = strchr(right, '-');
    if (!a || !b) return strcmp(left, right);
    unsigned long long a_time = strtoull(a + 1, NULL, 16), b_time = strtoull(b + 1, NULL, 16);
    return (a_time > b_time) - (a_time < b_time);
}

bool record_folder_delete_empty(const struct record_folder *folder, const char *name)
{
    char path[PATH_MAX + 260];
    struct stat status;
    (void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0 && unlink(path) == 0;
}

void record_folder_delete(const struct record_folder *folder, const char *name)
{
    char path[PATH_MAX + 260];
    (void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    (void)unlink(path);
}

static const char *library_folder(const struct record_folder *folder)
{
    if (folder->links[0]) return folder->links;
    return folder->outer[0] ? folder->outer : folder->path;
}

/* Programs of other users must reach the links. */
static void make_links_folder(struct record_folder *folder)
{
    for (size_t i = 0; i < sizeof(temporary_folders) / sizeof(temporary_folders[0]); i++) {
        (void)snprintf(folder->links, sizeof(folder->links), "%s/offbeat-XXXXXX", temporary_folders[i]);
        if (mkdtemp(folder->links) && chmod(folder->links, folder->outer[0] ? 0711 : 0700) == 0) return;
    }
    folder->links[0] = '\0';
}

bool record_folder_add_library(struct record_folder *folder, char library[PATH_MAX])
{
    bool may_need_it = folder->outer[0] || !record_library_is_plain(library);
    if (may_need_it && !record_library_is_plain(library_folder(folder))) make_links_folder(folder);
    if (folder->outer[0]) record_library_copy_for_others(library, library_folder(folder));
    return record_library_link(library, library_folder(folder));
}

void record_folder_remove_library(const struct record_folder *folder)
{
    record_library_unlink(library_folder(folder));
    if (folder->links[0]) (void)rmdir(folder->links);
}

/* The folder that only this user can write to. */
static const char *private_folder(const struct record_folder *folder)
{
    return folder->outer[0] ? folder->outer : folder->path;
}

/* NAME is "BUILD-ID.image", from anyone. */
static void arrange_image(const struct record_folder *folder, const char *name)
{
    char from[PATH_MAX + 260], to[PATH_MAX + 300];
    const char *root = private_folder(folder);
    size_t digits = strlen(name) - strlen(IMAGE_SUFFIX);
    struct stat status;
    (void)snprintf(from, sizeof(from), "%s/%s", folder->path, name);
    bool is_plain_file = lstat(from, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
    if (digits < 4 || !hex_is_lower(slice_of(name, digits)) || !is_plain_file) return;
    (void)snprintf(to, sizeof(to), "%s/.build-id", root);
    (void)mkdir(to, 0700);
    (void)snprintf(to, sizeof(to), "%s/.build-id/%.2s", root, name);
    (void)mkdir(to, 0700);
    (void)snprintf(to, sizeof(to), "%s/.build-id/%.2s/%.*s.debug", root, name, (int)digits - 2, name + 2);
    (void)rename(from, to);
}

const char *record_folder_arrange_images(const struct record_folder *folder)
{
    DIR *opened = opendir(folder->path);
    for (const struct dirent *entry; opened && (entry = readdir(opened));) {
        if (text_ends_with(slice_of_text(entry->d_name), IMAGE_SUFFIX)) arrange_image(folder, entry->d_name);
    }
    if (opened) (void)closedir(opened);
    return private_folder(folder);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)remove(path);
    return 0;
}

/* Waits: processes that the program leaves running may begin a recording at any time. */
static void delete_latecomers(const struct record_folder *folder)
{
    DIR *opened = opendir(folder->path);
    if (!opened) return;
    for (const struct dirent *entry = readdir(opened); entry; entry = readdir(opened)) {
        struct slice name = slice_of_text(entry->d_name);
        if (text_ends_with(name, ".recording") || text_ends_with(name, IMAGE_SUFFIX))
            record_folder_delete(folder, entry->d_name);
    }
    (void)closedir(opened);
}

void record_folder_close(const struct record_folder *folder, bool are_read)
{
    (void)chmod(folder->path, folder->outer[0] ? 01511 : 0500);
    if (are_read) delete_latecomers(folder);
}

void record_folder_remove_images(const char *directory)
{
    enum { DESCRIPTORS = 8 };
    static const char *const folders[] = {".build-id", "maps"};
    char path[PATH_MAX + 16];
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", directory, folders[i]);
        (void)nftw(path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    }
}

void record_folder_remove(const struct record_folder *folder)
{
    enum { TRIES = 10 };
    record_folder_remove_library(folder);
    record_folder_remove_images(private_folder(folder));
    for (unsigned i = 0; i < TRIES && rmdir(folder->path) != 0 && (errno == ENOTEMPTY || errno == EEXIST); i++)
        delete_latecomers(folder);
    if (folder->outer[0]) (void)rmdir(folder->outer);
}
