/* Asks the sources of stacks (source/source.h) about a thread, and gives its time to the stacks that they have.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_THREAD_SOURCES_H
#define OFFBEAT_SAMPLER_THREAD_SOURCES_H

#include "sampler/run/sampler_state.h"

/* Returns the memory that sources need for a thread, bytes, in which sources_init places their states. */
size_t sources_state_bytes(void);
void sources_init(struct target_thread *thread, uint8_t *memory);

/* Finds out what is possible. Called once, on the thread that starts the sampler. */
void sources_prepare(struct sampler *sampler);

/* Returns the best offer of the sources of SIGHT. */
enum source_offer sources_offer(struct sampler *sampler, struct target_thread *thread, enum source_sight sight);
/* Has all sources check whether they can still bring stacks. Called at each scan of a thread that is awake. */
void sources_look(struct sampler *sampler, struct target_thread *thread);

/* Asks the sources of SIGHT for a stack of THREAD, one after the other until one can have it. */
enum source_offer sources_want(struct sampler *sampler, struct target_thread *thread, enum source_sight sight,
                               enum source_need need);

/* Has THREAD asked for its stack. If that is denied, its time may be lost. */
void sources_ask(struct sampler *sampler, struct target_thread *thread, enum source_need need);

/* Returns for how many periods a source sees all that THREAD does, if that goes on. */
uint64_t sources_room(struct sampler *sampler, struct target_thread *thread);
void sources_forget(struct sampler *sampler, struct target_thread *thread, enum source_end end);

/* Writes THREAD's times as the kernel counts them, with the stacks since the previous scan. OF_WAIT: the stack where it
 * waited for a processor, by the reply to a request, or NULL. */
void sources_credit(struct sampler *sampler, struct target_thread *thread, const struct found_stack *of_wait);

/* Takes and writes the stack of THREAD if it is blocked. SOURCE_NO: it runs; SOURCE_WILL_HAVE: its stack needs a table
 * that is being built. */
enum source_offer sources_read_blocked(struct sampler *sampler, struct target_thread *thread);

/* Writes the replies to the requests of the open tick, and thereby ends it. */
void sources_fetch_replies(struct sampler *sampler);

/* Has the sources use the current snapshot of the modules. Returns true if nothing uses an older one. */
bool sources_renew(struct sampler *sampler);

/* Has the sources forget threads that have not run for a while. Called once a second. */
void sources_forget_sleepers(struct sampler *sampler);

#endif
