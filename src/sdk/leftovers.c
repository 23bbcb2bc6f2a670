/* SPDX-License-Identifier: MIT */
#include "sdk/leftovers.h"

#include "base/file.h"
#include "chunk/request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 4096, NAME_SIZE = 128 };

static bool session_path(const char *folder, long pid, char ret_path[PATH_MAX])
{
    return snprintf(ret_path, PATH_MAX, "%s/%ld.session", folder, pid) < PATH_MAX;
}

void session_begin(struct session *session, const char *folder, const struct chunk_request *request)
{
    char path[PATH_MAX];
    struct stat status;
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    if (request) chunk_request_write(request, &text);
    bool is_written = !text.failed && session_path(folder, getpid(), path) &&
                      file_write(path, buffer_slice(&text), NULL) == STATUS_OK;
    buffer_fini(&text);
    int descriptor = is_written ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (descriptor < 0 || fstat(descriptor, &status) != 0) return;
    (void)flock(descriptor, LOCK_EX | LOCK_NB);
    *session = (struct session){.descriptor = descriptor, .device = status.st_dev, .inode = status.st_ino};
}

void session_forget(struct session *session)
{
    struct stat status;
    bool is_ours = session->inode != 0 && fstat(session->descriptor, &status) == 0 &&
                   status.st_dev == session->device && status.st_ino == session->inode;
    if (is_ours) (void)close(session->descriptor);
    *session = (struct session){0};
}

void session_end(struct session *session, const char *folder)
{
    char path[PATH_MAX];
    if (session->inode == 0) return;
    if (session_path(folder, getpid(), path)) (void)unlink(path);
    session_forget(session);
}

/* --- Others' ------------------------------------------------------------------------------------------------------ */

/* The process number that NAME begins with, if it ends with SUFFIX; else 0. */
static long process_of(const char *name, const char *suffix)
{
    size_t size = strlen(name), suffix_size = strlen(suffix);
    if (size >= NAME_SIZE || size < suffix_size || strcmp(name + size - suffix_size, suffix) != 0) return 0;
    return strtol(name, NULL, 10);
}

/* One in another container may have a number that is nobody's here: its lock tells. */
static bool may_live(long pid)
{
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

static bool is_others(long pid)
{
    return pid > 0 && pid != getpid() && !may_live(pid);
}

bool leftovers_exist(const char *folder)
{
    DIR *directory = opendir(folder);
    bool has_one = false;
    for (const struct dirent *entry; directory && !has_one && (entry = readdir(directory));) {
        long pid = process_of(entry->d_name, ".session");
        has_one = pid == getpid() || is_others(pid);
    }
    if (directory) (void)closedir(directory);
    return has_one;
}

struct taking {
    const char *folder;
    long pid;
    struct chunk_request *request; /* NULL: what is there is deleted */
    leftover_sender send;
    void *context;
    bool is_left; /* SEND would not have it */
};

/* Who is killed between the opening of a file and the first batch has recorded nothing. */
static bool is_empty(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_size == 0;
}

static void take_file(struct taking *taking, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", taking->folder, name) >= PATH_MAX) return;
    if (taking->request && process_of(name, ".recording") == taking->pid && !is_empty(path)) {
        taking->request->recordings[0] = path;
        taking->request->recording_count = 1;
        taking->is_left = !taking->send(taking->context, taking->request);
    }
    if (!taking->is_left) (void)unlink(path);
}

/* The session file goes last: who dies meanwhile leaves the rest to the next one. */
static void take_files(struct taking *taking)
{
    char session[64];
    (void)snprintf(session, sizeof(session), "%ld.session", taking->pid);
    DIR *directory = opendir(taking->folder);
    for (const struct dirent *entry; directory && !taking->is_left && (entry = readdir(directory));) {
        if (strtol(entry->d_name, NULL, 10) == taking->pid && strcmp(entry->d_name, session) != 0)
            take_file(taking, entry->d_name);
    }
    if (directory) (void)closedir(directory);
}

static void take_session(struct taking *taking)
{
    char path[PATH_MAX];
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    struct request_file file = {0};
    if (!session_path(taking->folder, taking->pid, path)) return;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
        bool is_told = file_read(path, &text, NULL) == STATUS_OK &&
                       chunk_request_read(buffer_slice(&text), &file, NULL) == STATUS_OK;
        taking->request = is_told ? &file.request : NULL;
        take_files(taking);
        if (!taking->is_left) (void)unlink(path);
        taking->request = NULL;
        chunk_request_fini(&file);
    }
    if (descriptor >= 0) (void)close(descriptor);
    buffer_fini(&text);
}

void leftovers_take(const char *folder, leftover_sender send, void *context)
{
    DIR *directory = opendir(folder);
    unsigned count = 0;
    for (const struct dirent *entry; directory && count < NAMES_MAX && (entry = readdir(directory)); count++) {
        struct taking taking = {
            .folder = folder, .pid = process_of(entry->d_name, ".session"), .send = send, .context = context};
        if (is_others(taking.pid)) take_session(&taking);
    }
    if (directory) (void)closedir(directory);
}

void leftovers_take_own(const char *folder, leftover_sender send, void *context)
{
    struct taking taking = {.folder = folder, .pid = getpid(), .send = send, .context = context};
    take_session(&taking);
}
