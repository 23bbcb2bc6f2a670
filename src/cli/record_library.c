/* Finding liboffbeat.so, and naming it for the loader.  SPDX-License-Identifier: MIT */
#include "cli/record_library.h"

#include "base/file.h"
#include "cli/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LINK_NAME "liboffbeat.so"
#define FIRST_NAME "liboffbeat-first.so"
#define NOT_IN_LD_PRELOAD " :$"

enum { LIBRARY_BYTES_MAX = 1 << 28 };

/* The library is beside this program in a build folder. In an installation it is in the library folder that meson chose
 * (lib, lib64, lib/x86_64-linux-gnu, …), wherever the installation was moved to; its name without a version is only
 * there if files for development are installed. */
bool record_library_find(char ret_path[PATH_MAX])
{
    static const char *const places[] = {"liboffbeat.so", OFFBEAT_LIBRARY_FROM_PROGRAM "/liboffbeat.so.0",
                                         OFFBEAT_LIBRARY_FROM_PROGRAM "/liboffbeat.so"};
    char self[PATH_MAX], candidate[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length > 0) {
        self[length] = '\0';
        char *slash = strrchr(self, '/');
        if (slash) *slash = '\0';
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            bool is_absolute = places[i][0] == '/';
            (void)snprintf(candidate, sizeof(candidate), "%s/%s", is_absolute ? "" : self, places[i]);
            if (realpath(candidate, ret_path)) return true;
        }
    }
    message("cannot find liboffbeat.so.0, neither in the folder of this program nor in " OFFBEAT_LIBRARY_FROM_PROGRAM
            " beside it; copy it there, or use --engine bpf");
    return false;
}

bool record_library_first(const char *path, char ret_first[PATH_MAX])
{
    static const char *const folders[] = {"offbeat/",
                                          ""}; /* folders of an installation, of a build folder and of links */
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash && i < sizeof(folders) / sizeof(folders[0]); i++) {
        int length = snprintf(ret_first, PATH_MAX, "%.*s/%s" FIRST_NAME, (int)(slash - path), path, folders[i]);
        if (length > 0 && length < PATH_MAX && access(ret_first, R_OK) == 0) return true;
    }
    return false;
}

static bool link_path(char path[PATH_MAX], const char *directory)
{
    int length = snprintf(path, PATH_MAX, "%s/" LINK_NAME, directory);
    return length > 0 && length < PATH_MAX;
}

bool record_library_is_plain(const char *path)
{
    return !strpbrk(path, NOT_IN_LD_PRELOAD);
}

bool record_library_link(char path[PATH_MAX], const char *directory)
{
    char link[PATH_MAX];
    if (record_library_is_plain(path)) return true;
    if (strpbrk(directory, NOT_IN_LD_PRELOAD) || !link_path(link, directory)) {
        message(
            "cannot preload %s: the loader accepts no path with a blank, a colon or a $, and neither TMPDIR nor /tmp, "
            "/var/tmp and /dev/shm can hold a link to it",
            path);
        return false;
    }
    if (symlink(path, link) != 0) {
        message("cannot write %s: %s", link, strerror(errno));
        return false;
    }
    /* Finds the library that comes first. Without it, constructors of needed libraries are not seen; that is no reason
     * to record nothing. */
    char first[PATH_MAX], first_link[PATH_MAX];
    bool is_there = record_library_first(path, first);
    (void)record_library_first(link, first_link);
    if (is_there && symlink(first, first_link) != 0) message("cannot write %s: %s", first_link, strerror(errno));
    (void)snprintf(path, PATH_MAX, "%s", link);
    return true;
}

/* Every folder above PATH lets others through, and the file lets them read. */
static bool can_others_read(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    if (stat(path, &status) != 0 || !(status.st_mode & S_IROTH)) return false;
    (void)snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash; (slash = strrchr(folder, '/')) && slash != folder;) {
        *slash = '\0';
        if (stat(folder, &status) != 0 || !(status.st_mode & S_IXOTH)) return false;
    }
    return true;
}

static bool allows_programs(const char *folder)
{
    struct statvfs status;
    return statvfs(folder, &status) == 0 && !(status.f_flag & ST_NOEXEC);
}

static bool copy_file(const char *from, const char *to)
{
    struct buffer bytes;
    buffer_init(&bytes, LIBRARY_BYTES_MAX);
    bool is_copied = file_read(from, &bytes, NULL) == STATUS_OK &&
                     file_write(to, buffer_slice(&bytes), NULL) == STATUS_OK && chmod(to, 0755) == 0;
    buffer_fini(&bytes);
    return is_copied;
}

void record_library_copy_for_others(char path[PATH_MAX], const char *directory)
{
    char copy[PATH_MAX], first[PATH_MAX], first_copy[PATH_MAX];
    if (can_others_read(path) || !allows_programs(directory) || strpbrk(directory, NOT_IN_LD_PRELOAD)) return;
    if (!link_path(copy, directory) || !copy_file(path, copy)) return;
    (void)record_library_first(copy, first_copy);
    if (record_library_first(path, first)) (void)copy_file(first, first_copy);
    (void)snprintf(path, PATH_MAX, "%s", copy);
}

void record_library_unlink(const char *directory)
{
    char link[PATH_MAX], first[PATH_MAX];
    if (!link_path(link, directory)) return;
    (void)unlink(link);
    if (record_library_first(link, first)) (void)unlink(first);
}
