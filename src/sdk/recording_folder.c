/* SPDX-License-Identifier: MIT */
#include "base/environment.h"
#include "base/file.h"
#include "base/plain_text.h"
#include "sdk/sdk_private.h"
#include "transport/dsn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char temporary[PATH_MAX];
static unsigned temporary_process; /* process_number(): a forked child has its parent's path, and must not use it */

/* Creates PATH and the folders above it, for this user alone. False if it does not exist then, or belongs to another
 * user. */
static bool make_folders(char *path)
{
    struct stat status;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           access(path, W_OK | X_OK) == 0;
}

bool folder_has_become_anothers(const char *path)
{
    struct stat status;
    /* The folder was ours when it was made. The threads of a process change their rights one after the other, and this
     * one may still have, or have again, the right to write to it. */
    if (stat(path, &status) == 0 && status.st_uid != geteuid()) return true;
    return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == EPERM);
}

bool folder_is_another_users(const struct settings *settings)
{
    struct stat status;
    const char *spool = settings->options.spool_directory;
    if (!spool || spool[0] != '/') return false;
    return stat(spool, &status) == 0 ? status.st_uid != geteuid() : errno == EACCES;
}

static bool make_temporary(char ret_path[PATH_MAX])
{
    const char *parent = environment_get("TMPDIR");
    if (temporary_process != process_number()) temporary[0] = '\0';
    temporary_process = process_number();
    if (temporary[0] == '\0') {
        (void)snprintf(temporary, sizeof(temporary), "%s/offbeat-XXXXXX", parent && parent[0] == '/' ? parent : "/tmp");
        if (!mkdtemp(temporary)) temporary[0] = '\0';
    }
    (void)snprintf(ret_path, PATH_MAX, "%s", temporary);
    return temporary[0] != '\0';
}

/* Returns the path of a file or folder for this server in the spool's folder; false if there is no spool. Makes
 * nothing.
 */
static bool place_in_spool(const struct settings *settings, const char *prefix, char ret_path[PATH_MAX])
{
    struct dsn dsn;
    char server[DSN_HOST_SIZE];
    const char *spool = settings->options.spool_directory;
    if (!spool || spool[0] != '/' || dsn_parse(settings->options.dsn, &dsn, NULL) != STATUS_OK) return false;
    dsn_folder_name(&dsn, server);
    return snprintf(ret_path, PATH_MAX, "%s/%s-%s", spool, prefix, server) < PATH_MAX;
}

bool folder_of_orphans(const struct settings *settings, char ret_path[PATH_MAX])
{
    return place_in_spool(settings, "recordings", ret_path) && access(ret_path, R_OK | X_OK) == 0;
}

bool folder_of_recordings(const struct settings *settings, char ret_path[PATH_MAX])
{
    if (place_in_spool(settings, "recordings", ret_path) && make_folders(ret_path)) return true;
    return make_temporary(ret_path);
}

void folder_remove_temporary(void)
{
    if (temporary_process != process_number()) return;
    if (temporary[0]) (void)rmdir(temporary);
    temporary[0] = '\0';
}

/* --- The decision of this launch for the start of the next one (SES-10) ------------------------------------------- */

/* FNV-1a: the same in each launch. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash * 0x100000001b3u; /* separates texts that follow one another */
}

/* Returns the path of the decision, which belongs to one program in one release, not to all that send to a server
 * (SES-13). */
static bool place_of_decision(const struct settings *settings, char ret_path[PATH_MAX])
{
    char program[PATH_MAX] = "", prefix[64];
    const char *release = settings->options.release ? settings->options.release : "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    plain_path(program);
    uint64_t hash = hash_text(hash_text(0xcbf29ce484222325u, program), release);
    (void)snprintf(prefix, sizeof(prefix), "next-launch-%016llx", (unsigned long long)hash);
    return place_in_spool(settings, prefix, ret_path);
}

bool folder_keeps_decisions(const struct settings *settings)
{
    char path[PATH_MAX];
    return place_of_decision(settings, path);
}

enum lifecycle_kept folder_read_decision(const struct settings *settings)
{
    char path[PATH_MAX];
    struct buffer text;
    enum lifecycle_kept kept = LIFECYCLE_KEPT_NOTHING;
    if (!place_of_decision(settings, path)) return kept;
    buffer_init(&text, 64);
    if (file_read(path, &text, NULL) == STATUS_OK) {
        if (slice_equals_text(buffer_slice(&text), "profile\n")) kept = LIFECYCLE_KEPT_YES;
        if (slice_equals_text(buffer_slice(&text), "do not profile\n")) kept = LIFECYCLE_KEPT_NO;
    }
    buffer_fini(&text);
    return kept;
}

void folder_keep_decision(const struct settings *settings, enum lifecycle_kept decision)
{
    char path[PATH_MAX], spool[PATH_MAX];
    if (!place_of_decision(settings, path)) return;
    (void)snprintf(spool, sizeof(spool), "%s", settings->options.spool_directory);
    if (decision == LIFECYCLE_KEPT_NOTHING)
        (void)unlink(path);
    else if (make_folders(spool))
        (void)file_write(path, slice_of_text(decision == LIFECYCLE_KEPT_YES ? "profile\n" : "do not profile\n"), NULL);
}
