/* The envelopes that wait for the worker, which stores them in the spool; the counts of items, and the server's limits.
 * Each function takes LOCK_SENDER; none may be called with it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SENDER_H
#define OFFBEAT_SDK_SENDER_H

#include "spool/discards.h"
#include "spool/exchange.h"
#include "spool/queue.h"

/* Calls before_send, and counts an item that it rejects. Called with none of the last three locks. */
bool sender_may_send(const char *type, enum category category, struct slice payload);
/* Leaves ENVELOPE to the worker and empties it. Does nothing if the library is off. */
void sender_send(struct buffer *envelope);
void sender_discard(enum discard_reason reason, enum category category, uint64_t quantity);

/* True if CATEGORY is under a rate limit. */
bool sender_is_limited(enum category category);
/* Returns the counts since init. */
struct item_counts sender_counts(void);
void sender_reset_counts(void);

/* --- For the worker ----------------------------------------------------------------------------------------------- */

/* Returns the oldest envelope, which the caller frees; NULL if none waits. */
struct queued *sender_take(void);
/* Puts it back as the oldest. */
void sender_give_back(struct queued *queued);
/* Appends the client report of what was discarded to ENVELOPE. False if there is nothing to report. RET_TAKEN are its
 * counts, for sender_add_discards if it cannot be stored. */
bool sender_take_report(struct buffer *envelope, struct discards *ret_taken);
/* Counts items that were discarded for others; IS_NEW: they are no counts that were given back. */
void sender_add_discards(const struct discards *discards, bool is_new);
/* True if an envelope or a report waits. */
bool sender_has_work(void);
void sender_set_limits(const struct rate_limits *limits);
/* Counts the items of the session in FOLDER, too; NULL: it ends, and its counts are kept. */
void sender_set_session(const char *folder);

/* Resets the state in a forked child: what waits is the parent's. */
void sender_forget(void);

#endif
