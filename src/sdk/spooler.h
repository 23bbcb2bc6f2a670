/* The worker's way to the helper: this process's session in the spool, the envelopes and requests that it stores there,
 * the start of the helper, and waiting for it. Used by the worker's thread only.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SPOOLER_H
#define OFFBEAT_SDK_SPOOLER_H

#include "deliver/recordings.h"
#include "sdk/sdk_private.h"
#include "spool/spool.h"

enum spooler_flush { SPOOLER_WAITS, SPOOLER_FLUSHED, SPOOLER_FAILED };

struct spooler {
    struct spool_folder folder;
    bool has_folder;
    struct spool spool;
    /* The helper. */
    char helper[PATH_MAX];
    bool has_helper, has_news, has_said;
    uint64_t started_at_ns,
        start_pause_ns; /* CLOCK_MONOTONIC time of the last start, and the wait until the next one */
    uint64_t woken_at_ns;
    /* The file that is gone when all is sent; "": the program does not wait. */
    char flush_path[PATH_MAX];
    uint64_t flush_number, flush_at_utc_ns, flush_pause_ns;
    bool is_unwritable;    /* true if the last envelope could not be stored */
    bool has_stored;       /* true if the helper may have something to send */
    size_t question_count; /* number of requests about whose payloads before_send is asked */
    uint64_t question_pause_ns;
    uint64_t log_at;       /* bytes of the log that were printed */
    uint64_t report_at_ns; /* CLOCK_MONOTONIC time of the next separate report */
};

/* Finds the folder and begins a session with METADATA. HAS_FOLDER is false, and ERROR has the reason, if there is none.
 */
void spooler_begin(struct spooler *spooler, const struct chunk_request *metadata, struct error *error);
/* Ends the session: the helper sends what is left. */
void spooler_end(struct spooler *spooler);
/* Leaves the session as it is: the process has lost access to it. */
void spooler_leave(struct spooler *spooler);
/* Holds the session's lock, which the program may have closed. */
void spooler_keep(struct spooler *spooler);
/* Resets the state in a forked child: the session is the parent's. */
void spooler_forget(void);

/* Returns the folder of the session; "" without one. */
const char *spooler_session(void);

/* Leaves a recording in the session's folder to the helper: the only one of REQUEST, by its name there. False if that
 * could not be written. */
bool spooler_request(struct spooler *spooler, const struct chunk_request *request);
/* The same for the recordings at COUNT PATHS, which stay, and the transaction of REQUEST, with its ENVELOPE. On failure
 * it leaves nothing. */
bool spooler_request_v1(struct spooler *spooler, const struct chunk_request *request, const char *const *paths,
                        size_t count, const struct buffer *envelope);
/* Stores the envelopes and reports that wait, and wakes the helper if it has something to do. */
void spooler_store(struct spooler *spooler);

/* Asks before_send about payloads that the helper has made. */
void spooler_ask(struct spooler *spooler);
bool spooler_has_questions(const struct spooler *spooler);

/* Begins a new flush with the next spooler_flush. */
void spooler_restart_flush(struct spooler *spooler, uint64_t number);
/* Continues to wait until the helper has sent everything. SPOOLER_FAILED: after DEADLINE_NS, or without a helper. */
enum spooler_flush spooler_flush(struct spooler *spooler, uint64_t deadline_ns);
/* Reads the server's limits, and prints what the helper has written for people. */
void spooler_read_state(struct spooler *spooler);
/* Returns the time until the helper's answer is looked for, ns. */
uint64_t spooler_pause_ns(const struct spooler *spooler);

#endif
