/* Makes envelopes of the recordings in the folder of a server.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_HELPER_SESSIONS_H
#define OFFBEAT_HELPER_SESSIONS_H

#include "helper/destination.h"

/* The result of a look into the folder of a server. */
struct sessions_found {
    bool has_programs; /* a process that records is alive */
    bool has_done;     /* something was made */
};

/* Makes envelopes of all finished recordings, and of those of processes that have ended, whose folders are removed. */
struct sessions_found sessions_work(struct server *server);

#endif
