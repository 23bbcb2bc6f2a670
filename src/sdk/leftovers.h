/* Recordings of processes that were killed: they are good up to there, and another process sends them.
 *
 * Each process that records keeps a session file, PID.session, with what is to be said of its recordings,
 * PID-*.recording, locked as long as it lives. A session whose file nobody has locked and whose process is gone was
 * left over. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_LEFTOVERS_H
#define OFFBEAT_SDK_LEFTOVERS_H

#include "chunk/chunk.h"

/* Writes this process's session file into FOLDER, of REQUEST without its recordings (NULL: they
 * are of no use to others). A descriptor that holds the lock,
 * or -1: then what is left over is left. */
int leftovers_begin(const char *folder, const struct chunk_request *request);
void leftovers_end(const char *folder, int descriptor);

/* Whether there may be something in FOLDER to take. */
bool leftovers_exist(const char *folder);

/* Gives SEND each recording that was left over, and what was to be said of it. What else dead processes left is
 * deleted. */
void leftovers_take(const char *folder, void (*send)(void *context, const struct chunk_request *request),
                    void *context);

#endif
