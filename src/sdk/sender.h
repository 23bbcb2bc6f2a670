/* Sends envelopes: the transport, started with the first envelope, and the counts of sent and dropped items. Each
 * function takes LOCK_SENDER; none may be called with it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SENDER_H
#define OFFBEAT_SDK_SENDER_H

#include "transport/transport.h"

/* Starts the transport unless it has started, for envelopes of an earlier launch. */
void sender_start(void);

/* Calls before_send, and counts an item that it rejects. Called with none of the last three locks. */
bool sender_may_send(const char *type, enum category category, struct slice payload);
/* Sends ENVELOPE and empties it. Does nothing if the library is off. */
void sender_send(struct buffer *envelope);
void sender_discard(enum discard_reason reason, enum category category, uint64_t quantity);

/* True if CATEGORY is under a rate limit. */
bool sender_is_limited(enum category category);
/* Returns the counts of the transport, or of the last one; all zero after init. */
struct transport_counts sender_counts(void);
void sender_reset_counts(void);

/* Sends all envelopes. False if some are not sent at DEADLINE_NS. */
bool sender_flush(uint64_t deadline_ns);

/* Returns the transport, which the caller ends, after the library is off; NULL if there is none. */
struct transport *sender_take_transport(void);
/* Ends TRANSPORT (may be NULL) by DEADLINE_NS. Envelopes that are not sent then are stored. */
void sender_end_transport(struct transport *transport, uint64_t deadline_ns);
/* Waits until no other thread flushes a transport that was taken. */
void sender_wait_for_flushers(void);

/* Ends the transport's thread; FOR_GOOD, after it has stored all envelopes. */
void sender_step_aside(bool for_good);
/* Starts the thread again if it stepped aside. False if there can be no thread: sender_keep must follow. */
bool sender_come_back(void);
/* Stores all envelopes of the transport. Called without the profiler's lock. */
void sender_keep(void);

/* Resets the state in a forked child: the transport is the parent's. */
void sender_forget(void);

#endif
