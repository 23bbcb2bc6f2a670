/* The library in a program and offbeat-helper communicate through files in the spool folder:
 *
 *   helper.lock            locked by the helper, one for each spool folder
 *   helper.wake            a FIFO that the helper reads: a byte in it means that there is something to do
 *   SERVER/                a folder for each server (dsn_folder_name), with envelopes (spool.h), and
 *   SERVER/server          how to reach the server, as the program that began last has it
 *   SERVER/state           the server's limits, and when it is tried again
 *   SERVER/UUID.flush      a program waits until this file is gone: then all that was there before it has been sent
 *   SERVER/….session/      the recordings of one process (session.h), and for it
 *       NAME.request       how to make envelopes of a finished recording (deliver/request_file.h)
 *       NAME.envelope      the envelope of the transaction that the profile belongs to
 *       NAME.made          payloads, one a line, about which the program's before_send is asked
 *       counts             what became of the process's envelopes
 *       log                lines for people; only where the program debugs
 *
 * Files are replaced by a rename, so that a reader sees all of one or none. The program maps none of them: a file that
 * gets shorter would end it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_EXCHANGE_H
#define OFFBEAT_SPOOL_EXCHANGE_H

#include "base/buffer.h"
#include "base/status.h"
#include "spool/rate_limits.h"

#include <limits.h>

/* Writes FOLDER/NAME to RET_PATH. False if it is too long. */
bool exchange_path(char ret_path[PATH_MAX], const char *folder, const char *name);
bool exchange_has_suffix(const char *name, const char *suffix);
/* False if there is no file at PATH; a file that cannot be reached may be there. */
bool exchange_is_there(const char *path);

/* --- How to reach a server ---------------------------------------------------------------------------------------- */

enum { SERVER_FACTS_BYTES_MAX = 64 << 10 };

struct server_facts {
    const char *dsn;
    const char *proxy, *no_proxy; /* "": none */
    const char *ca_file;          /* NULL: the system's certificates */
    uint64_t spool_bytes_max;
};

/* Takes PROXY from the environment where it is NULL, and NO_PROXY, as libcurl does. */
void server_facts_complete(struct server_facts *facts, bool is_https);
/* Writes FACTS into the folder of the server, unless it has them. */
enum status server_facts_write(const char *folder, const struct server_facts *facts, struct error *error);
/* Reads the file's bytes, which live as long as RET_FACTS, with strings in TEXTS. */
enum status server_facts_read(struct slice bytes, struct buffer *texts, struct server_facts *ret_facts,
                              struct error *error);

/* --- Limits and tries --------------------------------------------------------------------------------------------- */

/* Times are UTC, ns: two containers may have different monotonic clocks. {0}: no limit, no failure. */
struct server_state {
    struct rate_limits limits;
    uint64_t failed_at_ns, next_try_ns; /* time of the last try without an answer, and of the next one */
};

/* {0} if there is none. */
struct server_state server_state_read(const char *folder);
void server_state_write(const char *folder, const struct server_state *state);

/* --- Counts of one process ---------------------------------------------------------------------------------------- */

struct item_counts {
    uint64_t made, sent, limited, discarded;
};

struct item_counts item_counts_read(const char *session_folder);
void item_counts_write(const char *session_folder, const struct item_counts *counts);

/* --- The log of one process --------------------------------------------------------------------------------------- */

enum { SESSION_LOG_BYTES_MAX = 256 << 10 }; /* the helper leaves out what the program has no room for */

/* --- Waking the helper -------------------------------------------------------------------------------------------- */

/* Wakes the helper of the spool folder ROOT. False if there is none. SIGPIPE must be blocked. */
bool exchange_wake(const char *root);

#endif
