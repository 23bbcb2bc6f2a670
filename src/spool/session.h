/* The folder of one process's recordings in the folder of a server, PID-START-NAMESPACE-RANDOM.session. It has a file
 * with their metadata (release, environment, …), locked as long as the process lives. PIDs are not enough: two
 * containers that share a spool may both have a process 1. A session is over if its process said so, or if nobody has
 * locked its file and
 *   - no process of that PID and start time is alive, where the namespace of its PIDs is ours, or
 *   - nothing in it was written in the last SESSION_QUIET_SECONDS: a program that closes all of its descriptors closes
 *     the lock, too. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_SESSION_H
#define OFFBEAT_SPOOL_SESSION_H

#include "spool/spool.h"

#include <limits.h>

enum { SESSION_QUIET_SECONDS = 120 };

/* The session of this process. {0}: no session. */
struct session {
    char folder[PATH_MAX];
    char owner[SPOOL_OWNER_SIZE]; /* owner of its envelopes in the spool */
    struct own_descriptor lock;   /* the locked file */
};

/* Makes this process's folder in FOLDER, with METADATA. Earlier sessions of this process are over then. */
enum status session_begin(struct session *session, const char *folder, struct slice metadata, struct error *error);
/* Locks the file again if the program has closed it. */
void session_keep(struct session *session);
/* Removes the folder, if the helper has nothing to do in it, and else says that the session is over. */
void session_end(struct session *session);
/* Resets the state in a forked child, where the session is the parent's. */
void session_forget(struct session *session);

/* --- For the helper ----------------------------------------------------------------------------------------------- */

/* True if NAME, in the folder of a server, is a session, and its owner then. */
bool session_is_name(const char *name, char ret_owner[SPOOL_OWNER_SIZE]);
/* True if the session NAME in FOLDER is over. */
bool session_is_over(const char *folder, const char *name);
/* Reads the metadata of the session in FOLDER. */
enum status session_read(const char *folder, struct buffer *metadata, struct error *error);
/* Removes the session's folder with all files. */
void session_remove(const char *folder);

#endif
