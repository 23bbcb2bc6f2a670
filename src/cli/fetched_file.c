/* SPDX-License-Identifier: MIT */
#include "cli/fetched_file.h"

#include "base/environment.h"
#include "base/file.h"
#include "cli/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 10000 };

/* Returns the folder, to be freed; NULL: there is none. */
static char *find_folder(void)
{
    const char *chosen = environment_get("PPROF_TMPDIR"), *home = environment_get("HOME");
    char *folder = NULL;
    if (chosen && chosen[0]) return strdup(chosen);
    if (home && home[0] && asprintf(&folder, "%s/pprof", home) < 0) return NULL;
    return folder;
}

/* pprof.001.pb.gz, with the first number that no file has. -1 with errno. */
static int make_file(const char *folder, const char *ending, char **ret_path)
{
    for (int i = 1; i < FILES_MAX; i++) {
        if (asprintf(ret_path, "%s/pprof.%03d.%s", folder, i, ending) < 0) break;
        int file = open(*ret_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST) return file;
        free(*ret_path);
        *ret_path = NULL;
    }
    return -1;
}

static void keep_in(const char *folder, struct slice bytes)
{
    bool is_gzip = bytes.size > 1 && bytes.data[0] == 0x1F && bytes.data[1] == 0x8B;
    char *path = NULL;
    (void)mkdir(folder, 0700); /* if that fails, the next call says why */
    int file = make_file(folder, is_gzip ? "pb.gz" : "profile", &path);
    bool is_written = file >= 0 && file_write_descriptor(file, bytes, NULL) == STATUS_OK;
    if (is_written)
        message("the fetched profile is kept in %s", path);
    else
        message("the fetched profile is not kept in %s: %s; PPROF_TMPDIR names another folder", folder,
                strerror(errno));
    if (file >= 0) (void)close(file);
    if (file >= 0 && !is_written) (void)unlink(path);
    free(path);
}

void fetched_file_keep(const struct buffer *bytes)
{
    char *folder = find_folder();
    if (folder) keep_in(folder, buffer_slice(bytes));
    free(folder);
}
