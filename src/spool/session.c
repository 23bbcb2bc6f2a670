/* SPDX-License-Identifier: MIT */
#include "spool/session.h"

#include "base/file_descriptor.h"
#include "base/file.h"
#include "base/folder_names.h"
#include "base/uuid.h"
#include "spool/exchange.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAME_SIZE = 128, OWNER_DIGITS = SPOOL_OWNER_SIZE - 1 };

static const char folder_suffix[] = ".session", file_name[] = "this.session", over_name[] = "over";

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

static bool read_identity(const char *name, struct identity *ret_identity)
{
    return sscanf(name, "%ld-%llx-%llx-", &ret_identity->pid, &ret_identity->start, &ret_identity->name_space) == 3;
}

/* True if nothing in FOLDER was written in the last SESSION_QUIET_SECONDS. */
static bool is_quiet(const char *folder)
{
    char path[PATH_MAX];
    struct stat status;
    /* A folder that was just made is empty: its own time counts, too. */
    time_t latest = stat(folder, &status) == 0 ? status.st_mtime : 0;
    struct folder_names names;
    folder_open(&names, folder);
    for (const char *name; (name = folder_next(&names));) {
        bool is_file = name[0] != '.' && exchange_path(path, folder, name);
        if (is_file && stat(path, &status) == 0 && status.st_mtime > latest) latest = status.st_mtime;
    }
    return latest + SESSION_QUIET_SECONDS < time(NULL);
}

/* --- The session of this process ---------------------------------------------------------------------------------- */

static void lock_file(struct session *session)
{
    char path[PATH_MAX];
    if (!exchange_path(path, session->folder, file_name)) return;
    int descriptor = descriptor_move_up(open(path, O_RDONLY | O_CLOEXEC));
    if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        session->lock = own_descriptor_of(descriptor);
    else if (descriptor >= 0)
        (void)close(descriptor);
}

void session_remove(const char *folder)
{
    char path[PATH_MAX];
    struct folder_names names;
    folder_open(&names, folder);
    for (const char *name; (name = folder_next(&names));) {
        if (name[0] != '.' && exchange_path(path, folder, name)) (void)unlink(path);
    }
    (void)rmdir(folder);
}

static void say_over(const char *folder)
{
    char path[PATH_MAX];
    int file = exchange_path(path, folder, over_name) ? open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (file >= 0) (void)close(file);
}

/* Ends the sessions that OWN had before it called exec, and those of an earlier init that were not ended. */
static void end_earlier(const char *folder, const struct identity *own)
{
    char path[PATH_MAX];
    struct identity identity;
    struct folder_names names;
    folder_open(&names, folder);
    for (const char *name; (name = folder_next(&names));) {
        bool is_own = read_identity(name, &identity) && identity.pid == own->pid && identity.start == own->start &&
                      identity.name_space == own->name_space;
        if (is_own && exchange_path(path, folder, name)) say_over(path);
    }
}

enum status session_begin(struct session *session, const char *folder, struct slice metadata, struct error *error)
{
    char path[PATH_MAX], name[NAME_SIZE], uuid[UUID_TEXT_SIZE];
    const struct identity own = own_identity();
    *session = (struct session){0};
    if (!uuid_new(uuid)) return error_set(error, STATUS_IO, 0, "no random bytes for a name");
    end_earlier(folder, &own);
    (void)snprintf(name, sizeof(name), "%ld-%llx-%llx-%s%s", own.pid, own.start, own.name_space, uuid, folder_suffix);
    if (!exchange_path(session->folder, folder, name))
        return error_set(error, STATUS_TOO_LARGE, 0, "the path is too long");
    if (mkdir(session->folder, 0700) != 0) return error_set_errno(error, "%.150s", folder);
    (void)snprintf(session->owner, sizeof(session->owner), "%.*s", OWNER_DIGITS, uuid);
    /* Until the file is locked, others see a folder of a live process, or one in which something was just written. */
    struct error reason = {.message = "the path is too long"};
    if (exchange_path(path, session->folder, file_name) && file_write(path, metadata, &reason) == STATUS_OK) {
        lock_file(session);
        return STATUS_OK;
    }
    session_remove(session->folder);
    return error_set(error, STATUS_IO, 0, "%.150s: %s", folder, reason.message);
}

void session_keep(struct session *session)
{
    if (session->folder[0] && !own_descriptor_is_there(&session->lock)) lock_file(session);
}

void session_forget(struct session *session)
{
    own_descriptor_close(&session->lock);
    *session = (struct session){0};
}

/* True if FOLDER has something for the helper to do. */
static bool has_work(const char *folder)
{
    bool has = false;
    struct folder_names names;
    folder_open(&names, folder);
    for (const char *name; !has && (name = folder_next(&names));)
        has = exchange_has_suffix(name, ".recording") || exchange_has_suffix(name, ".request") ||
              exchange_has_suffix(name, ".made");
    folder_close(&names);
    return has;
}

void session_end(struct session *session)
{
    if (session->folder[0] && has_work(session->folder))
        say_over(session->folder);
    else if (session->folder[0])
        session_remove(session->folder);
    session_forget(session);
}

/* --- For the helper ----------------------------------------------------------------------------------------------- */

bool session_is_name(const char *name, char ret_owner[SPOOL_OWNER_SIZE])
{
    struct identity identity;
    const char *uuid = strrchr(name, '-');
    bool is_name = strlen(name) < NAME_SIZE && exchange_has_suffix(name, folder_suffix) &&
                   read_identity(name, &identity) && strlen(uuid + 1) == UUID_TEXT_SIZE - 1 + strlen(folder_suffix);
    (void)snprintf(ret_owner, SPOOL_OWNER_SIZE, "%.*s", OWNER_DIGITS, is_name ? uuid + 1 : "");
    return is_name;
}

static bool is_free(const char *folder)
{
    char path[PATH_MAX];
    if (!exchange_path(path, folder, file_name)) return false;
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) return is_quiet(folder); /* it has no metadata, or has none yet */
    bool is_free = flock(descriptor, LOCK_SH | LOCK_NB) == 0;
    (void)close(descriptor);
    return is_free;
}

bool session_is_over(const char *folder, const char *name)
{
    char session[PATH_MAX], path[PATH_MAX];
    struct identity identity;
    const struct identity own = own_identity();
    if (!exchange_path(session, folder, name) || !exchange_path(path, session, over_name)) return false;
    if (exchange_is_there(path)) return true;
    if (!read_identity(name, &identity)) return false;
    bool has_same_pids = identity.name_space == own.name_space && own.start != 0;
    bool is_dead = has_same_pids && start_of(identity.pid) != identity.start;
    return (is_dead || is_quiet(session)) && is_free(session);
}

enum status session_read(const char *folder, struct buffer *metadata, struct error *error)
{
    char path[PATH_MAX];
    if (!exchange_path(path, folder, file_name)) return error_set(error, STATUS_TOO_LARGE, 0, "the path is too long");
    return file_read(path, metadata, error);
}
