/* When the profiler runs: the lifecycle, what the worker shall do, and the transactions that wait for their profiles.
 * The program's threads note here what they want and wake the worker, which alone starts and stops the sampler.
 *
 * Each function takes LOCK_PROFILER briefly, unless its comment says that the caller holds it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_PROFILER_H
#define OFFBEAT_SDK_PROFILER_H

#include "base/uuid.h"
#include "sdk/lifecycle.h"
#include "sdk/measurements.h"
#include "trace/trace.h"

/* Gives the lock, and then writes the lines that waited for that. */
void profiler_lock(void);
void profiler_unlock(void);
/* Waits for profiler_changed until DEADLINE_NS; false after it. The caller holds the lock, also for the next function.
 */
bool profiler_wait_until(uint64_t deadline_ns);
void profiler_changed(void);

/* --- sdk.c: init and shutdown ------------------------------------------------------------------------------------- */

/* The library is on. STARTS_NOW: the profiler, too, whatever the lifecycle's options. Returns what to keep for the next
 * launch. */
enum lifecycle_kept profiler_begin(const struct lifecycle_options *options, enum lifecycle_kept kept, bool starts_now);
/* The library is off. False if the worker has not ended by DEADLINE_NS: it ends later. */
bool profiler_end(uint64_t deadline_ns);
/* False if the worker of an earlier init has not ended by DEADLINE_NS. */
bool profiler_await_late_worker(uint64_t deadline_ns);
/* Waits until the worker has sent all samples taken so far. False at DEADLINE_NS. */
bool profiler_flush(uint64_t deadline_ns);
/* Returns the earlier one, which is the caller's now. */
struct tracer *profiler_set_tracer(struct tracer *tracer);
/* Starts the worker for what an earlier launch left. */
void profiler_wake_worker(void);
/* In a forked child: nothing runs and nothing is wanted. */
void profiler_forget(void);

/* --- spans.c: root spans ------------------------------------------------------------------------------------------ */

struct tracer *profiler_tracer_ref(void); /* NULL: off */
/* RET_IS_PROFILED: V1 profiles the transaction; V1_RATE is what the program wants for it. Returns a token. */
uint32_t profiler_root_started(bool is_sampled, double v1_rate, uint64_t trace, bool *ret_is_profiled);
void profiler_root_ended(uint32_t token, bool is_sampled, bool is_profiled);
/* Leaves TRANSACTION to the worker, which knows its profile. False if too many wait. */
bool profiler_leave_transaction(struct trace_transaction *transaction);

/* --- worker.c: what the worker shall do --------------------------------------------------------------------------- */

enum { PROFILER_TRANSACTIONS_MAX = 8 /* of V1, that wait for their profiles */ };

bool profiler_has_v1(void);
/* The id of the profiler that shall run; "" if none shall. */
void profiler_wanted_id(char ret_id[UUID_TEXT_SIZE]);
/* A chunk is over, which the lifecycle may have waited for. False if the profiler shall stop. */
bool profiler_continues_after_chunk(void);
void profiler_set_limited(bool is_limited);
struct chunk_measurement *profiler_take_measurements(size_t *ret_count);
/* Whether a flush was asked for since the last call; profiler_flushed must follow. */
bool profiler_take_flush(void);
/* IS_DONE: it was flushed. Otherwise the next worker flushes. */
void profiler_flushed(bool is_done);
/* Whether the end is wanted and no transaction waits. */
bool profiler_is_ending(void);
bool profiler_has_transactions(void);
/* Takes the oldest transaction if it ended by RECORDED_UNTIL_NS; NULL if there is none. */
struct trace_transaction *profiler_take_transaction(uint64_t recorded_until_ns);
/* TRANSACTION is the next one again. False if there is no room any more. */
bool profiler_give_back(struct trace_transaction *transaction);
/* When the oldest profiled transaction that is open began (CLOCK_MONOTONIC), or OTHERWISE_NS if that is earlier. 0 if a
 * transaction waits. */
uint64_t profiler_oldest_start_ns(uint64_t otherwise_ns);

#endif
