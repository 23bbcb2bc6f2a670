/* Where recordings and envelopes are kept: the first folder that can be used, of the list in <offbeat.h>.
 * SPDX-License-Identifier: MIT */
#include "base/environment.h"
#include "base/file.h"
#include "base/folder_names.h"
#include "base/plain_text.h"
#include "sdk/callbacks.h"
#include "sdk/sdk_private.h"
#include "spool/dsn.h"
#include "spool/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 5 };

static char temporary[PATH_MAX];
static unsigned temporary_process; /* process_number(): a forked child has its parent's path, and must not use it */

/* --- Places ------------------------------------------------------------------------------------------------------- */

static bool is_ours(const char *path, bool *ret_is_there)
{
    struct stat status;
    *ret_is_there = lstat(path, &status) == 0;
    return *ret_is_there && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

/* Writes the path of place number INDEX for the user's spool. False if there is no such place. */
static bool place(const struct settings *settings, size_t index, char ret_path[PATH_MAX])
{
    static const char *const shared[] = {"/var/tmp", "/tmp", "/dev/shm"};
    const char *chosen = settings->options.spool_directory, *state = environment_get("XDG_STATE_HOME");
    bool is_there;
    *ret_path = '\0';
    if (index == 0 && chosen && chosen[0] == '/') {
        /* Somebody else's folder, such as a volume of a container, gets a folder of this user. */
        bool is_anothers = !is_ours(chosen, &is_there) && is_there;
        int length = is_anothers ? snprintf(ret_path, PATH_MAX, "%s/offbeat-%u", chosen, geteuid())
                                 : snprintf(ret_path, PATH_MAX, "%s", chosen);
        return length < PATH_MAX;
    }
    if (index == 1 && state && state[0] == '/')
        return (size_t)snprintf(ret_path, PATH_MAX, "%s/offbeat", state) < PATH_MAX;
    if (index < 2 || index >= PLACES) return false;
    (void)snprintf(ret_path, PATH_MAX, "%s/offbeat-%u", shared[index - 2], geteuid());
    return true;
}

/* True if PATH belongs to this user alone, no symbolic link leads there, and a file can be made in it. */
static bool is_usable(const char *path, bool is_chosen)
{
    struct stat status;
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) return false;
    if (!is_chosen && (status.st_mode & 077) != 0) return false;
    return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
}

/* --- A folder for who wants none to stay -------------------------------------------------------------------------- */

static bool is_temporary(const struct settings *settings)
{
    return settings->options.spool_directory && settings->options.spool_directory[0] == '\0';
}

static bool make_temporary(char ret_path[PATH_MAX], struct error *error)
{
    const char *chosen = environment_get("TMPDIR"), *parent = chosen && chosen[0] == '/' ? chosen : "/tmp";
    if (temporary_process != process_number()) temporary[0] = '\0';
    temporary_process = process_number();
    if (temporary[0] == '\0') {
        (void)snprintf(temporary, sizeof(temporary), "%s/offbeat-XXXXXX", parent);
        if (!mkdtemp(temporary)) {
            (void)error_set_errno(error, "%.150s", parent);
            temporary[0] = '\0';
        }
    }
    (void)snprintf(ret_path, PATH_MAX, "%s", temporary);
    return temporary[0] != '\0';
}

/* Removes the folder PATH with what is in it, LEVELS folders deep. */
static void remove_tree(const char *path, unsigned levels)
{
    char entry_path[PATH_MAX];
    struct folder_names names;
    folder_open(&names, path);
    for (const char *name; (name = folder_next(&names));) {
        if (!exchange_path(entry_path, path, name)) continue;
        if (unlink(entry_path) != 0 && levels > 0) remove_tree(entry_path, levels - 1);
    }
    (void)rmdir(path);
}

void folder_remove_temporary(void)
{
    enum { LEVELS = 2 };
    if (temporary_process != process_number()) return;
    if (temporary[0]) remove_tree(temporary, LEVELS);
    temporary[0] = '\0';
}

/* --- The folder of the server ------------------------------------------------------------------------------------- */

/* Sets ERROR to the reason why the folder PATH cannot be made or used. */
static void explain(const char *path, struct error *error)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        (void)error_set_errno(error, "%.150s", path);
    else if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0)
        (void)error_set_errno(error, "%.150s", path);
    else
        (void)error_set(error, STATUS_UNSUPPORTED, 0, "%.150s: this user does not own it alone", path);
}

/* Makes the folder of the server in ROOT, which is ours, and says there how to reach it. */
static bool prepare_server(const struct settings *settings, const char *root, struct spool_folder *ret_folder,
                           struct error *error)
{
    const struct offbeat_options *options = &settings->options;
    struct dsn dsn;
    char name[DSN_HOST_SIZE];
    if (dsn_parse(options->dsn, &dsn, error) != STATUS_OK) return false;
    struct server_facts facts = {.dsn = options->dsn,
                                 .proxy = options->proxy,
                                 .ca_file = options->ca_file,
                                 .spool_bytes_max = options->spool_bytes_max};
    dsn_folder_name(&dsn, name);
    (void)snprintf(ret_folder->root, sizeof(ret_folder->root), "%s", root);
    if (!exchange_path(ret_folder->server, root, name)) {
        (void)error_set(error, STATUS_TOO_LARGE, 0, "%.150s: the path is too long", root);
        return false;
    }
    (void)mkdir(ret_folder->server, 0700);
    server_facts_complete(&facts, dsn.is_https);
    struct error reason;
    if (!is_usable(ret_folder->server, false))
        explain(ret_folder->server, error);
    else if (server_facts_write(ret_folder->server, &facts, &reason) == STATUS_OK)
        return true;
    else
        (void)error_set(error, reason.status, 0, "%.150s: %s", ret_folder->server, reason.message);
    return false;
}

/* Makes ROOT, unless it is there, and the folder of the server in it. */
static bool prepare(const struct settings *settings, const char *root, bool is_chosen, struct spool_folder *ret_folder,
                    struct error *error)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", root);
    file_make_folders(path);
    if (is_usable(root, is_chosen)) return prepare_server(settings, root, ret_folder, error);
    explain(root, error);
    return false;
}

bool spool_folder_choose(const struct settings *settings, struct spool_folder *ret_folder, struct error *error)
{
    char root[PATH_MAX];
    struct error reason;
    *error = (struct error){0};
    if (is_temporary(settings)) return make_temporary(root, error) && prepare_server(settings, root, ret_folder, error);
    for (size_t i = 0; i < PLACES; i++) {
        if (!place(settings, i, root)) continue;
        if (prepare(settings, root, i < 2, ret_folder, &reason)) return true;
        if (error->status == STATUS_OK) *error = reason;
        if (i == 0) sdk_debug("%s; OFFBEAT_SPOOL_DIRECTORY must name a folder that can be written", reason.message);
    }
    return false;
}

bool spool_folder_has_rest(const struct settings *settings)
{
    char root[PATH_MAX], server[PATH_MAX], name[DSN_HOST_SIZE];
    struct dsn dsn;
    bool has = false;
    if (is_temporary(settings) || dsn_parse(settings->options.dsn, &dsn, NULL) != STATUS_OK) return false;
    dsn_folder_name(&dsn, name);
    for (size_t i = 0; i < PLACES && !has; i++) {
        if (!place(settings, i, root) || !exchange_path(server, root, name)) continue;
        struct folder_names names;
        folder_open(&names, server);
        for (const char *entry; !has && (entry = folder_next(&names));)
            has = exchange_has_suffix(entry, ".envelope") || exchange_has_suffix(entry, ".session");
        folder_close(&names);
    }
    return has;
}

bool folder_has_become_anothers(const char *path)
{
    struct stat status;
    /* The folder was ours when it was made. The threads of a process change their rights one after the other, and this
     * one may still have, or have again, the right to write to it. */
    if (stat(path, &status) == 0 && status.st_uid != geteuid()) return true;
    return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == EPERM);
}

/* --- The decision of this launch for the start of the next one (SES-10) ------------------------------------------- */

/* FNV-1a: the same in each launch. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash * 0x100000001b3u; /* separates texts that follow one another */
}

/* Returns the path in ROOT of the decision, which belongs to one program in one release, not to all that send to a
 * server (SES-13). */
static bool place_of_decision(const struct settings *settings, const char *root, char ret_path[PATH_MAX])
{
    char program[PATH_MAX] = "", server[DSN_HOST_SIZE];
    struct dsn dsn;
    const char *release = settings->options.release ? settings->options.release : "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    plain_path(program);
    uint64_t hash = hash_text(hash_text(0xcbf29ce484222325u, program), release);
    if (dsn_parse(settings->options.dsn, &dsn, NULL) != STATUS_OK) return false;
    dsn_folder_name(&dsn, server);
    return snprintf(ret_path, PATH_MAX, "%s/next-launch-%016llx-%s", root, (unsigned long long)hash, server) < PATH_MAX;
}

bool folder_keeps_decisions(const struct settings *settings)
{
    return !is_temporary(settings);
}

static enum lifecycle_kept read_decision(const char *path)
{
    struct buffer text;
    enum lifecycle_kept kept = LIFECYCLE_KEPT_NOTHING;
    buffer_init(&text, 64);
    if (file_read(path, &text, NULL) == STATUS_OK) {
        if (slice_equals_text(buffer_slice(&text), "profile\n")) kept = LIFECYCLE_KEPT_YES;
        if (slice_equals_text(buffer_slice(&text), "do not profile\n")) kept = LIFECYCLE_KEPT_NO;
    }
    buffer_fini(&text);
    return kept;
}

enum lifecycle_kept folder_read_decision(const struct settings *settings)
{
    char root[PATH_MAX], path[PATH_MAX];
    enum lifecycle_kept kept = LIFECYCLE_KEPT_NOTHING;
    for (size_t i = 0; i < PLACES && kept == LIFECYCLE_KEPT_NOTHING && !is_temporary(settings); i++) {
        if (place(settings, i, root) && is_usable(root, i < 2) && place_of_decision(settings, root, path))
            kept = read_decision(path);
    }
    return kept;
}

static bool write_decision(const char *path, enum lifecycle_kept decision)
{
    const char *text = decision == LIFECYCLE_KEPT_YES ? "profile\n" : "do not profile\n";
    return file_write(path, slice_of_text(text), NULL) == STATUS_OK;
}

void folder_keep_decision(const struct settings *settings, enum lifecycle_kept decision)
{
    char root[PATH_MAX], path[PATH_MAX];
    bool is_kept = is_temporary(settings);
    for (size_t i = 0; i < PLACES && !is_kept; i++) {
        if (!place(settings, i, root)) continue;
        if (decision != LIFECYCLE_KEPT_NOTHING) file_make_folders(root);
        if (!is_usable(root, i < 2) || !place_of_decision(settings, root, path)) continue;
        if (decision == LIFECYCLE_KEPT_NOTHING)
            (void)unlink(path);
        else
            is_kept = write_decision(path, decision);
    }
}
