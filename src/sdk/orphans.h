/* Recordings of processes that were killed: they are complete until then, and another process sends them.
 *
 * Each process that records has its own folder, PID-START-NAMESPACE-RANDOM.session, with its recordings and a file with
 * their metadata (release, environment, …), locked as long as the process lives. PIDs are not enough: two containers
 * that share a spool may both have a process 1. A folder is orphaned if
 *   - no process of that PID and start time is alive, where the namespace of its PIDs is ours,
 *   - nobody has locked its file, and
 *   - nothing in it was written in the last ORPHAN_QUIET_SECONDS, where the namespace is another one: a program that
 * closes all of its descriptors closes the lock, too. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_ORPHANS_H
#define OFFBEAT_SDK_ORPHANS_H

#include "deliver/recordings.h"

#include <limits.h>
#include <sys/types.h>

enum { ORPHAN_QUIET_SECONDS = 120 };

/* The session of this process. {0}: no session. */
struct session {
    char folder[PATH_MAX];
    int descriptor; /* descriptor of the locked file */
    dev_t device;   /* identity of that file: the program may have closed it and have another one under its number */
    ino_t inode;
};

/* Makes this process's folder in FOLDER, and the file of REQUEST without its recordings (NULL: other processes cannot
 * use them). False if there is no folder; without descriptors or memory there is no file, and nobody sends the
 * recordings later. */
bool session_begin(struct session *session, const char *folder, const struct chunk_request *request);
/* Locks the file again if the program has closed it. */
void session_keep(struct session *session);
/* Removes the folder. */
void session_end(struct session *session);
/* Leaves the session and its recordings to the next process that sends. A forked child leaves them to its parent,
 * which keeps the lock. */
void session_forget(struct session *session);

/* True if FOLDER has a session to take. Call it before session_begin. */
bool orphans_exist(const char *folder);

/* Takes one orphaned recording, which is deleted then. False: it stays, and so do all the others. */
typedef bool (*orphan_sender)(void *context, const struct chunk_request *request);

/* Gives SEND each orphaned recording with its metadata: recordings of other processes, of this process before it
 * called exec, and of this process when its end came too soon. OWN is alive and is left out. Deletes the other files
 * of dead processes. */
void orphans_take(const char *folder, const struct session *own, orphan_sender send, void *context);

#endif
