/* Finding liboffbeat.so, and naming it for the loader.  SPDX-License-Identifier: MIT */
#include "cli/record_library.h"

#include "cli/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK_NAME "liboffbeat.so"
#define NOT_IN_LD_PRELOAD " :$"

/* The library is beside this program in a build folder. In an installation it is in the library folder that meson chose
 * (lib, lib64, lib/x86_64-linux-gnu, …), wherever the installation was moved to. */
bool record_library_find(char ret_path[PATH_MAX])
{
    static const char *const places[] = {"liboffbeat.so", OFFBEAT_LIBRARY_FROM_PROGRAM "/liboffbeat.so"};
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
    message("cannot find liboffbeat.so, neither in the folder of this program nor in " OFFBEAT_LIBRARY_FROM_PROGRAM);
    return false;
}

static bool link_path(char path[PATH_MAX], const char *directory)
{
    int length = snprintf(path, PATH_MAX, "%s/" LINK_NAME, directory);
    return length > 0 && length < PATH_MAX;
}

bool record_library_link(char path[PATH_MAX], const char *directory)
{
    char link[PATH_MAX];
    if (!strpbrk(path, NOT_IN_LD_PRELOAD)) return true;
    if (strpbrk(directory, NOT_IN_LD_PRELOAD) || !link_path(link, directory)) {
        message("cannot preload %s: the loader accepts no path with a blank, a colon or a $; set TMPDIR to a folder "
                "without",
                path);
        return false;
    }
    if (symlink(path, link) != 0) {
        message("cannot write %s: %s", link, strerror(errno));
        return false;
    }
    (void)snprintf(path, PATH_MAX, "%s", link);
    return true;
}

void record_library_unlink(const char *directory)
{
    char link[PATH_MAX];
    if (link_path(link, directory)) (void)unlink(link);
}
