/* What is sent: the transport, started with the first thing to send, and the counts of what became of it. Each function
 * takes LOCK_SENDER; none may be called with it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SENDER_H
#define OFFBEAT_SDK_SENDER_H

#include "transport/transport.h"

/* Starts the transport unless it has started, for envelopes of an earlier launch. */
void sender_start(void);

/* Asks before_send; what it objects to is counted. With none of the last three locks. */
bool sender_may_send(const char *type, enum category category, struct slice payload);
/* Empties ENVELOPE. Does nothing where the library is off. */
void sender_send(struct buffer *envelope);
void sender_discard(enum discard_reason reason, enum category category, uint64_t quantity);

/* Whether the server wants nothing of CATEGORY now. */
bool sender_is_limited(enum category category);
/* Of this transport, or of the last one; all zero from init on. */
struct transport_counts sender_counts(void);
void sender_reset_counts(void);

/* False if something is not sent at DEADLINE_NS. */
bool sender_flush(uint64_t deadline_ns);

/* The end, after the library is off: the transport, which is the caller's now; NULL if there is none. */
struct transport *sender_take_transport(void);
/* Ends TRANSPORT (may be NULL) by DEADLINE_NS. What is not sent then is stored. */
void sender_end_transport(struct transport *transport, uint64_t deadline_ns);
/* Waits until no other thread flushes a transport that was taken. */
void sender_wait_for_flushers(void);

/* aside.c: the transport's thread ends, FOR_GOOD after it has stored what it has. */
void sender_step_aside(bool for_good);
/* Starts it again, if it stepped aside. False if there can be no thread. */
bool sender_come_back(void);
/* After that: stores what the transport has. Call it without the profiler's lock. */
void sender_keep(void);

/* In a forked child: the transport is the parent's. */
void sender_forget(void);

#endif
