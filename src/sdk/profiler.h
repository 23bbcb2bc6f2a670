/* When the profiler runs: the lifecycle, the requests to the worker, and the transactions that wait for their profiles.
 * The program's threads note their requests here and wake the worker, which alone starts and stops the sampler.
 *
 * Each function takes LOCK_PROFILER briefly, unless its comment says that the caller holds it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_PROFILER_H
#define OFFBEAT_SDK_PROFILER_H

#include "base/uuid.h"
#include "deliver/recordings.h"
#include "sdk/lifecycle.h"
#include "trace/trace.h"

/* Waits for profiler_changed until DEADLINE_NS; false after it. The caller holds the lock, also for the next function.
 */
bool profiler_wait_until(uint64_t deadline_ns);
void profiler_changed(void);

/* --- sdk.c: init and shutdown ------------------------------------------------------------------------------------- */

/* Turns the library on, and starts the profiler if the lifecycle or STARTS_NOW says so. Returns the decision to keep
 * for the next launch. */
enum lifecycle_kept profiler_begin(const struct lifecycle_options *options, enum lifecycle_kept kept, bool starts_now);
/* Turns the library off. The worker sends until DEADLINE_NS, and stores the rest. False if it has not ended some
 * seconds later: it ends then on its own. */
bool profiler_end(uint64_t deadline_ns);
/* Has the worker stop profiling and end by DEADLINE_NS, and does not wait. */
void profiler_close(uint64_t deadline_ns);
/* False if the worker of an earlier init has not ended by DEADLINE_NS. */
bool profiler_await_late_worker(uint64_t deadline_ns);
/* Waits until all that was taken so far is sent. False at DEADLINE_NS, or if it cannot be sent. */
bool profiler_flush(uint64_t deadline_ns);
/* Returns the replaced tracer; the caller frees it. */
struct tracer *profiler_set_tracer(struct tracer *tracer);
/* Starts the worker, or wakes it: an envelope waits, or an earlier launch left something. */
void profiler_wake_worker(void);
/* Resets the state in a forked child: nothing runs and nothing is wanted. */
void profiler_forget(void);

/* --- spans.c: root spans ------------------------------------------------------------------------------------------ */

struct tracer *profiler_tracer_ref(void); /* NULL: off */
enum profiler_v1 {
    PROFILER_V1_NO,
    PROFILER_V1_YES,
    PROFILER_V1_LIMITED, /* a rate limit of the server forbids it */
};
/* Returns a token for profiler_root_ended. RET_V1: whether V1 profiles the transaction, at the program's V1_RATE. */
uint32_t profiler_root_started(bool is_sampled, double v1_rate, uint64_t trace, enum profiler_v1 *ret_v1);
void profiler_root_ended(uint32_t token, bool is_sampled, bool is_profiled);
/* Leaves TRANSACTION to the worker, which knows its profile. False if too many wait. */
bool profiler_leave_transaction(struct trace_transaction *transaction);

/* --- worker.c: requests to the worker ----------------------------------------------------------------------------- */

enum { PROFILER_TRANSACTIONS_MAX = 8 /* V1 transactions that wait for their profiles */ };

bool profiler_has_v1(void);
/* Returns the id of the profiler that shall run; "" if none shall. */
void profiler_wanted_id(char ret_id[UUID_TEXT_SIZE]);
/* Tells the lifecycle that a chunk is over. False if the profiler shall stop. */
bool profiler_continues_after_chunk(void);
void profiler_set_limited(bool is_limited);
/* Takes all measurements; the caller frees the array. */
struct chunk_measurement *profiler_take_measurements(size_t *ret_count);
/* Returns the number of the latest flush, if it is new, and the time until which it is waited for; otherwise 0. */
uint64_t profiler_take_flush(uint64_t *ret_deadline_ns);
/* Returns the time until which a flush is waited for. */
uint64_t profiler_flush_deadline(void);
bool profiler_is_flushing(void);
/* Ends flush NUMBER and those before it. IS_DONE: everything was sent. */
void profiler_flushed(uint64_t number, bool is_done);
/* True if the end is wanted, and its time. */
bool profiler_is_ending(uint64_t *ret_deadline_ns);
/* True if there is something to profile or to flush. The caller holds the lock. */
bool profiler_wants_worker(void);
bool profiler_has_transactions(void);
/* Takes the oldest transaction if it ended by RECORDED_UNTIL_NS; NULL if there is none. */
struct trace_transaction *profiler_take_transaction(uint64_t recorded_until_ns);
/* Returns the start of the oldest open profiled transaction (CLOCK_MONOTONIC), or OTHERWISE_NS if that is earlier. 0 if
 * a transaction waits. */
uint64_t profiler_oldest_start_ns(uint64_t otherwise_ns);

#endif
