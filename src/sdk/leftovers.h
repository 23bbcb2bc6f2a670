/* Recordings of processes that were killed: they are good up to there, and another process sends them.
 *
 * Each process that records keeps a session file, PID.session, with what is to be said of its recordings,
 * PID-*.recording, locked as long as it lives. A session whose file nobody has locked and whose process is gone was
 * left over. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_LEFTOVERS_H
#define OFFBEAT_SDK_LEFTOVERS_H

#include "chunk/chunk.h"

#include <sys/types.h>

/* This process's. {0} is none. */
struct session {
    int descriptor; /* holds the lock */
    dev_t device;   /* of the file: the program may have closed it, and have another one under its number */
    ino_t inode;
};

/* Writes this process's session file into FOLDER, of REQUEST without its recordings (NULL: they are of no use to
 * others). Without descriptors or memory there is none, and what is left over is left. */
void session_begin(struct session *session, const char *folder, const struct chunk_request *request);
void session_end(struct session *session, const char *folder);
/* Leaves the session and its recordings to who comes next; in a forked child to the parent, whose lock it stays. */
void session_forget(struct session *session);

/* Whether there may be something in FOLDER to take; to be asked before session_begin. */
bool leftovers_exist(const char *folder);

/* Takes one recording that was left over, which is deleted then. False: it and all else stays. */
typedef bool (*leftover_sender)(void *context, const struct chunk_request *request);

/* Gives SEND each recording that was left over, and what was to be said of it. What else dead processes left is
 * deleted. */
void leftovers_take(const char *folder, leftover_sender send, void *context);

/* The same for what an earlier process of our own number left, or this one when its end came too soon. Before
 * session_begin, and before anything is recorded. */
void leftovers_take_own(const char *folder, leftover_sender send, void *context);

#endif
