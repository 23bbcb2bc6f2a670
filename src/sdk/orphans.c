/* SPDX-License-Identifier: MIT */
#include "sdk/orphans.h"

#include "base/file_descriptor.h"
#include "base/file.h"
#include "base/uuid.h"
#include "deliver/request_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAMES_MAX = 4096, NAME_SIZE = 128 };

static const char folder_suffix[] = ".session", file_name[] = "this.session";

static bool join(char ret_path[PATH_MAX], const char *folder, const char *name)
{
    return snprintf(ret_path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t size = strlen(text), suffix_size = strlen(suffix);
    return size > suffix_size && strcmp(text + size - suffix_size, suffix) == 0;
}

/* --- The identity of a process ------------------------------------------------------------------------------------ */

/* Identifies a process as long as the machine runs. */
struct identity {
    long pid;
    unsigned long long start; /* clock ticks since the machine started: proc_pid_stat(5), field 22 */
    unsigned long long name_space;
};

/* Returns the start time of process PID; 0: there is no such process, or it has ended and only waits for its parent. */
static unsigned long long start_of(long pid)
{
    enum { STATE = 3, START = 22 };
    char path[64];
    struct buffer text = {.maximum = 4096};
    unsigned long long start = 0;
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    if (file_read(path, &text, NULL) == STATUS_OK) buffer_append_byte(&text, 0);
    const char *field = text.size > 0 && !text.failed ? strrchr((const char *)text.data, ')') : NULL;
    bool is_dead = !field || !field[1] || field[2] == 'Z' || field[2] == 'X';
    for (int number = STATE - 1; field && number < START; number++) field = strchr(field + 1, ' ');
    if (field && !is_dead) start = strtoull(field, NULL, 10);
    buffer_fini(&text);
    return start;
}

static struct identity own_identity(void)
{
    struct stat status;
    bool has_space = stat("/proc/self/ns/pid", &status) == 0;
    return (struct identity){getpid(), start_of(getpid()), has_space ? status.st_ino : 0};
}

/* True if nothing in FOLDER was written in the last ORPHAN_QUIET_SECONDS. */
static bool is_quiet(const char *folder)
{
    char path[PATH_MAX];
    struct stat status;
    /* A folder that was just made is empty: its own time counts, too. */
    time_t latest = stat(folder, &status) == 0 ? status.st_mtime : 0;
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (entry->d_name[0] == '.' || !join(path, folder, entry->d_name) || stat(path, &status) != 0) continue;
        if (status.st_mtime > latest) latest = status.st_mtime;
    }
    if (directory) (void)closedir(directory);
    return latest + ORPHAN_QUIET_SECONDS < time(NULL);
}

/* --- The session of this process ---------------------------------------------------------------------------------- */

static bool open_file(struct session *session)
{
    char path[PATH_MAX];
    struct stat status;
    if (!join(path, session->folder, file_name)) return false;
    int descriptor = descriptor_move_up(open(path, O_RDONLY | O_CLOEXEC));
    if (descriptor < 0) return false;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 || fstat(descriptor, &status) != 0) {
        (void)close(descriptor);
        return false;
    }
    session->descriptor = descriptor;
    session->device = status.st_dev;
    session->inode = status.st_ino;
    return true;
}

static bool is_ours(const struct session *session)
{
    struct stat status;
    return session->inode != 0 && fstat(session->descriptor, &status) == 0 && status.st_dev == session->device &&
           status.st_ino == session->inode;
}

static void remove_folder(const char *folder)
{
    char path[PATH_MAX];
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (entry->d_name[0] != '.' && join(path, folder, entry->d_name)) (void)unlink(path);
    }
    if (directory) (void)closedir(directory);
    (void)rmdir(folder);
}

bool session_begin(struct session *session, const char *folder, const struct chunk_request *request)
{
    char path[PATH_MAX], name[NAME_SIZE], uuid[UUID_TEXT_SIZE];
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    const struct identity own = own_identity();
    *session = (struct session){.descriptor = -1};
    if (!uuid_new(uuid)) return false;
    (void)snprintf(name, sizeof(name), "%ld-%llx-%llx-%s%s", own.pid, own.start, own.name_space, uuid, folder_suffix);
    if (!join(session->folder, folder, name) || mkdir(session->folder, 0700) != 0) return false;
    if (request) chunk_request_write(request, &text);
    bool is_written = !text.failed && join(path, session->folder, file_name) &&
                      file_write(path, buffer_slice(&text), NULL) == STATUS_OK;
    buffer_fini(&text);
    /* Until the file is locked, others see a folder of a live process, or one in which something was just written. */
    if (is_written) (void)open_file(session);
    return true;
}

void session_keep(struct session *session)
{
    if (session->folder[0] == '\0' || is_ours(session)) return;
    session->inode = 0;
    (void)open_file(session);
}

void session_forget(struct session *session)
{
    if (is_ours(session)) (void)close(session->descriptor);
    *session = (struct session){0};
}

void session_end(struct session *session)
{
    if (session->folder[0]) remove_folder(session->folder);
    session_forget(session);
}

/* --- Sessions of other processes ---------------------------------------------------------------------------------- */

/* Locks the session NAME in FOLDER, if it was orphaned. Returns the descriptor, or -1. */
static int claim(const char *folder, const char *name, const struct identity *own, char ret_folder[PATH_MAX])
{
    struct identity identity;
    char path[PATH_MAX];
    if (strlen(name) >= NAME_SIZE || !has_suffix(name, folder_suffix)) return -1;
    if (sscanf(name, "%ld-%llx-%llx-", &identity.pid, &identity.start, &identity.name_space) != 3) return -1;
    if (!join(ret_folder, folder, name) || !join(path, ret_folder, file_name)) return -1;
    bool has_same_pids = identity.name_space == own->name_space && own->start != 0;
    bool may_be_left =
        has_same_pids ? identity.pid == own->pid || start_of(identity.pid) != identity.start : is_quiet(ret_folder);
    if (!may_be_left) return -1;
    int descriptor = descriptor_move_up(open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (descriptor < 0 && is_quiet(ret_folder)) remove_folder(ret_folder); /* it has no metadata */
    if (descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
    (void)close(descriptor);
    return -1;
}

bool orphans_exist(const char *folder)
{
    char path[PATH_MAX];
    bool has_one = false;
    const struct identity own = own_identity();
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && !has_one && (entry = readdir(directory));) {
        int descriptor = claim(folder, entry->d_name, &own, path);
        has_one = descriptor >= 0;
        if (has_one) (void)close(descriptor);
    }
    if (directory) (void)closedir(directory);
    return has_one;
}

/* Gives SEND each recording in FOLDER. False if it did not take one. */
static bool send_recordings(const char *folder, struct chunk_request *request, orphan_sender send, void *context)
{
    char path[PATH_MAX];
    struct stat status;
    bool is_sent = true;
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && is_sent && (entry = readdir(directory));) {
        if (!has_suffix(entry->d_name, ".recording") || !join(path, folder, entry->d_name)) continue;
        if (stat(path, &status) == 0 && status.st_size == 0) continue; /* its process was killed at the start */
        request->recordings[0] = path;
        request->recording_count = 1;
        is_sent = send(context, request);
        if (is_sent) (void)unlink(path);
    }
    if (directory) (void)closedir(directory);
    return is_sent;
}

static void take_session(const char *folder, orphan_sender send, void *context)
{
    char path[PATH_MAX];
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    struct request_file file = {0};
    bool is_read = join(path, folder, file_name) && file_read(path, &text, NULL) == STATUS_OK &&
                   chunk_request_read(buffer_slice(&text), &file, NULL) == STATUS_OK;
    bool is_done = !is_read || send_recordings(folder, &file.request, send, context);
    chunk_request_fini(&file);
    buffer_fini(&text);
    if (is_done) remove_folder(folder);
}

void orphans_take(const char *folder, const struct session *own_session, orphan_sender send, void *context)
{
    char path[PATH_MAX];
    unsigned count = 0;
    const struct identity own = own_identity();
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && count < NAMES_MAX && (entry = readdir(directory)); count++) {
        bool is_own = has_suffix(own_session->folder, entry->d_name);
        int descriptor = is_own ? -1 : claim(folder, entry->d_name, &own, path);
        if (descriptor < 0) continue;
        take_session(path, send, context);
        (void)close(descriptor);
    }
    if (directory) (void)closedir(directory);
}
