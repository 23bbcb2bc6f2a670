/* SPDX-License-Identifier: MIT */
#include "sdk/profiler.h"

#include "base/array.h"
#include "base/invariant.h"
#include "sdk/callbacks.h"
#include "sdk/sdk_private.h"
#include "sdk/worker.h"

#include <math.h>
#include <string.h>

enum { PROFILED_OPEN_MAX = 64, STORE_SECONDS = 3 /* time for storing the rest, of <offbeat.h> */ };

/* A V1 transaction that is complete and waits for its profile. */
struct waiting_transaction {
    struct trace_transaction *transaction;
    uint64_t end_ns; /* CLOCK_MONOTONIC */
};

/* Measurements of the program, until the next chunk. */
struct measurements {
    bool are_wanted; /* a profiler runs */
    struct chunk_measurement *items;
    size_t count, capacity;
};

struct profiler {
    pthread_cond_t changed; /* signalled after changes of the other members and of the worker's state */
    struct lifecycle lifecycle;
    struct tracer *tracer;          /* a reference */
    char wanted_id[UUID_TEXT_SIZE]; /* id of the wanted profiler; "": none */
    bool is_ending, has_worked;     /* HAS_WORKED: a worker was started */
    uint64_t end_deadline_ns;
    uint64_t flushes_wanted, flushes_taken, flushes_done, flushes_failed; /* numbers of flushes, from 1 on */
    uint64_t flush_deadline_ns;                                           /* latest deadline of those who wait */
    struct waiting_transaction transactions[PROFILER_TRANSACTIONS_MAX];   /* the oldest first */
    size_t transaction_count;
    uint64_t profiled[PROFILED_OPEN_MAX]; /* V1: start times of the open profiled transactions; 0: free */
    pthread_mutex_t measurements_lock;
    struct measurements measurements;
};

#define NOTHING_WANTED                                                                                                 \
    {                                                                                                                  \
        .changed = PTHREAD_COND_INITIALIZER, .measurements_lock = PTHREAD_MUTEX_INITIALIZER                            \
    }
static struct profiler profiler = NOTHING_WANTED;

/* --- The lock ----------------------------------------------------------------------------------------------------- */

bool profiler_wait_until(uint64_t deadline_ns)
{
    return lock_wait(LOCK_PROFILER, &profiler.changed, deadline_ns);
}

void profiler_changed(void)
{
    (void)lock_check_held(LOCK_PROFILER);
    (void)pthread_cond_broadcast(&profiler.changed);
}

/* --- Starting and stopping: the caller has the lock --------------------------------------------------------------- */

static void wake_worker(void)
{
    profiler.has_worked = true;
    worker_wake();
}

static void want_profiler(bool is_wanted)
{
    if (!is_wanted) {
        profiler.wanted_id[0] = '\0';
    } else if (!uuid_new(profiler.wanted_id)) {
        sdk_say("the system gives no random numbers: no profile");
        return;
    }
    atomic_store(&library.is_running, is_wanted);
    (void)pthread_mutex_lock(&profiler.measurements_lock);
    profiler.measurements.are_wanted = is_wanted;
    (void)pthread_mutex_unlock(&profiler.measurements_lock);
    /* Profiles of V1 are sent with their transactions: no chunk will have this id. */
    bool links_spans = !is_wanted || !profiler.lifecycle.options.has_v1;
    if (links_spans && profiler.tracer) tracer_set_profiler(profiler.tracer, is_wanted ? profiler.wanted_id : NULL);
    if (is_wanted || worker_exists()) wake_worker();
}

/* Does what the lifecycle decided after an event, and logs it with EVENT as the reason. */
static void follow_step(struct lifecycle_step step, const char *event)
{
    if (step.message) sdk_debug("%s", step.message);
    switch (step.action) {
    case LIFECYCLE_RESTART:
    case LIFECYCLE_START:
        want_profiler(true);
        if (profiler.wanted_id[0]) sdk_debug("profiler %s starts: %s", profiler.wanted_id, event);
        break;
    case LIFECYCLE_STOP:
        sdk_debug("profiler %s stops: %s", profiler.wanted_id, event);
        want_profiler(false);
        break;
    case LIFECYCLE_FINISH_CHUNK: /* the worker asks at the end of each chunk */
        sdk_debug("profiler %s stops at the end of this chunk: %s", profiler.wanted_id, event);
        break;
    case LIFECYCLE_KEEP_ON:
        sdk_debug("profiler %s continues: %s", profiler.wanted_id, event);
        break;
    case LIFECYCLE_NOTHING:
        break;
    }
}

static void log_session(bool is_kept)
{
    const struct lifecycle *lifecycle = &profiler.lifecycle;
    if (lifecycle->options.has_v1)
        sdk_debug("no session: single transactions are profiled");
    else
        sdk_debug("the session is %ssampled: %s %g", lifecycle->is_sampled ? "" : "not ",
                  is_kept ? "the previous launch decided by profile_session_sample_rate, which is"
                          : "profile_session_sample_rate is",
                  lifecycle->options.profile_session_sample_rate);
}

/* --- Events of the program ---------------------------------------------------------------------------------------- */

/* Gives the lifecycle an event that the program causes, if the library is on. */
static void apply_event(struct lifecycle_step (*event)(struct lifecycle *lifecycle), const char *name)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return;
    HOLD_LOCK(LOCK_PROFILER);
    if (atomic_load(&library.is_on)) follow_step(event(&profiler.lifecycle), name);
}

static struct lifecycle_step foreground(struct lifecycle *lifecycle)
{
    uint32_t session = lifecycle->session;
    struct lifecycle_step step = lifecycle_foreground(lifecycle, sdk_random());
    if (lifecycle->session != session) log_session(false);
    return step;
}

void offbeat_start_profiler(void)
{
    apply_event(lifecycle_start_profiler, "offbeat_start_profiler was called");
}

void offbeat_stop_profiler(void)
{
    apply_event(lifecycle_stop_profiler, "offbeat_stop_profiler was called");
}

void offbeat_background(void)
{
    apply_event(lifecycle_background, "offbeat_background was called");
}

void offbeat_foreground(void)
{
    apply_event(foreground, "offbeat_foreground was called");
}

bool offbeat_profiler_id(char ret_id[OFFBEAT_ID_SIZE])
{
    KEEP_ERRNO;
    if (!ret_id) return false;
    ret_id[0] = '\0';
    if (!sdk_is_ours()) return false;
    profiler_wanted_id(ret_id);
    memory_sanitizer_written(ret_id, OFFBEAT_ID_SIZE);
    return ret_id[0] != '\0';
}

_Static_assert((int)OFFBEAT_ID_SIZE == (int)UUID_TEXT_SIZE, "an id fits");

static void add_measurement(const struct chunk_measurement *measurement)
{
    struct measurements *measurements = &profiler.measurements;
    (void)pthread_mutex_lock(&profiler.measurements_lock);
    bool has_room = measurements->are_wanted &&
                    array_reserve(&measurements->items, &measurements->capacity, measurements->count + 1,
                                  sizeof(*measurements->items), CHUNK_MEASUREMENTS_MAX);
    if (has_room && INVARIANT(measurements->count < measurements->capacity))
        measurements->items[measurements->count++] = *measurement;
    (void)pthread_mutex_unlock(&profiler.measurements_lock);
}

void offbeat_measure(const char *name, const char *unit, double value)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return;
    struct chunk_measurement measurement = {.time_ns = clock_utc_ns(), .value = value};
    if (!isfinite(value)) sdk_debug("a measurement is not a finite number: dropped");
    if (!name || !*name || !unit || !isfinite(value)) return;
    if (strlen(name) >= sizeof(measurement.name) || strlen(unit) >= sizeof(measurement.unit)) return;
    (void)memcpy(measurement.name, name, strlen(name));
    (void)memcpy(measurement.unit, unit, strlen(unit));
    add_measurement(&measurement);
}

void offbeat_frame_rendered(uint64_t duration_ns)
{
    /* Viewers draw these measurements (FMT-7); other clients have the same thresholds (facts §3). */
    static const uint64_t frozen_ns = 700 * SECOND_NS / 1000;
    double rate = atomic_load(&library.frame_rate_hz);
    uint64_t slow_ns = rate > 0 ? (uint64_t)(1.1 * (double)SECOND_NS / rate) : UINT64_MAX;
    if (duration_ns > frozen_ns)
        offbeat_measure("frozen_frame_renders", "nanosecond", (double)duration_ns);
    else if (duration_ns > slow_ns)
        offbeat_measure("slow_frame_renders", "nanosecond", (double)duration_ns);
}

/* --- Init and shutdown -------------------------------------------------------------------------------------------- */

enum lifecycle_kept profiler_begin(const struct lifecycle_options *options, enum lifecycle_kept kept, bool starts_now)
{
    HOLD_LOCK(LOCK_PROFILER);
    atomic_store(&library.is_on, true);
    atomic_store(&library.is_without_threads, false);
    profiler.has_worked = false;
    struct lifecycle_step step = lifecycle_init(&profiler.lifecycle, options, kept, sdk_random(), sdk_random());
    log_session(kept != LIFECYCLE_KEPT_NOTHING && profiler.lifecycle.for_next_launch != LIFECYCLE_KEPT_NOTHING);
    follow_step(step, "the program starts");
    if (starts_now && profiler.lifecycle.profiler == LIFECYCLE_IDLE)
        follow_step(lifecycle_start_profiler(&profiler.lifecycle), "the library was loaded, or the process forked");
    return profiler.lifecycle.for_next_launch;
}

/* Waits, under the lock, until the worker has sent all samples and has ended; it ends soon once the library is off. */
static bool end_worker(uint64_t deadline_ns)
{
    profiler.is_ending = true;
    if (worker_exists()) worker_wake();
    while (worker_exists()) {
        if (!profiler_wait_until(deadline_ns)) return false;
    }
    return true;
}

static void close_profiler(uint64_t deadline_ns)
{
    profiler.end_deadline_ns = deadline_ns;
    follow_step(lifecycle_close(&profiler.lifecycle), "the library shuts down");
    profiler.is_ending = true;
    if (worker_exists()) worker_wake();
}

void profiler_close(uint64_t deadline_ns)
{
    HOLD_LOCK(LOCK_PROFILER);
    close_profiler(deadline_ns);
}

bool profiler_end(uint64_t deadline_ns)
{
    HOLD_LOCK(LOCK_PROFILER);
    close_profiler(deadline_ns);
    bool has_ended = end_worker(deadline_ns + STORE_SECONDS * SECOND_NS);
    atomic_store(&library.is_on, false);
    profiler_changed(); /* wakes threads that flush */
    if (!has_ended) worker_wake();
    return has_ended;
}

bool profiler_await_late_worker(uint64_t deadline_ns)
{
    HOLD_LOCK(LOCK_PROFILER);
    bool has_ended = end_worker(deadline_ns);
    if (has_ended) profiler.is_ending = false;
    return has_ended;
}

bool profiler_flush(uint64_t deadline_ns)
{
    HOLD_LOCK(LOCK_PROFILER);
    if (!atomic_load(&library.is_on) || !profiler.has_worked) return true; /* there was never anything to send */
    uint64_t number = ++profiler.flushes_wanted;
    if (deadline_ns > profiler.flush_deadline_ns) profiler.flush_deadline_ns = deadline_ns;
    wake_worker();
    while (atomic_load(&library.is_on) && profiler.flushes_done < number) {
        if (!profiler_wait_until(deadline_ns)) break;
    }
    return profiler.flushes_done >= number && profiler.flushes_failed < number;
}

struct tracer *profiler_set_tracer(struct tracer *tracer)
{
    HOLD_LOCK(LOCK_PROFILER);
    struct tracer *before = profiler.tracer;
    profiler.tracer = tracer;
    return before;
}

void profiler_wake_worker(void)
{
    HOLD_LOCK(LOCK_PROFILER);
    wake_worker();
}

void profiler_forget(void)
{
    static const struct profiler nothing_wanted = NOTHING_WANTED;
    memcpy(&profiler, &nothing_wanted, sizeof(profiler));
}

/* --- Root spans --------------------------------------------------------------------------------------------------- */

struct tracer *profiler_tracer_ref(void)
{
    HOLD_LOCK(LOCK_PROFILER);
    return tracer_ref(profiler.tracer);
}

uint32_t profiler_root_started(bool is_sampled, double v1_rate, uint64_t trace, enum profiler_v1 *ret_v1)
{
    uint32_t token = 0;
    HOLD_LOCK(LOCK_PROFILER);
    struct lifecycle *lifecycle = &profiler.lifecycle;
    bool is_chosen = lifecycle_profiles_transaction(lifecycle, is_sampled, v1_rate, sdk_random());
    bool is_profiled = is_chosen && !lifecycle->is_limited;
    size_t place = 0;
    while (is_profiled && place < PROFILED_OPEN_MAX && profiler.profiled[place] != 0) place++;
    if (is_profiled && place < PROFILED_OPEN_MAX) profiler.profiled[place] = clock_monotonic_ns();
    bool counts = lifecycle->options.has_v1 ? is_profiled : is_sampled;
    follow_step(lifecycle_root_started(lifecycle, counts, trace, &token), "a sampled transaction started");
    *ret_v1 = is_profiled ? PROFILER_V1_YES : is_chosen ? PROFILER_V1_LIMITED : PROFILER_V1_NO;
    return token;
}

void profiler_root_ended(uint32_t token, bool is_sampled, bool is_profiled)
{
    HOLD_LOCK(LOCK_PROFILER);
    if (is_profiled) {
        /* It matters little whose place becomes free: the oldest one is removed last. */
        size_t latest = 0;
        for (size_t i = 1; i < PROFILED_OPEN_MAX; i++) {
            if (profiler.profiled[i] > profiler.profiled[latest]) latest = i;
        }
        profiler.profiled[latest] = 0;
    }
    bool counts = profiler.lifecycle.options.has_v1 ? is_profiled : is_sampled;
    follow_step(lifecycle_root_ended(&profiler.lifecycle, token, counts), "the last sampled transaction ended");
}

bool profiler_leave_transaction(struct trace_transaction *transaction)
{
    HOLD_LOCK(LOCK_PROFILER);
    if (!atomic_load(&library.is_on) || profiler.transaction_count == PROFILER_TRANSACTIONS_MAX) return false;
    profiler.transactions[profiler.transaction_count++] =
        (struct waiting_transaction){.transaction = transaction, .end_ns = clock_monotonic_ns()};
    wake_worker();
    return true;
}

/* --- For the worker ----------------------------------------------------------------------------------------------- */

bool profiler_has_v1(void)
{
    HOLD_LOCK(LOCK_PROFILER);
    return profiler.lifecycle.options.has_v1;
}

void profiler_wanted_id(char ret_id[UUID_TEXT_SIZE])
{
    HOLD_LOCK(LOCK_PROFILER);
    memcpy(ret_id, profiler.wanted_id, UUID_TEXT_SIZE);
}

bool profiler_continues_after_chunk(void)
{
    HOLD_LOCK(LOCK_PROFILER);
    struct lifecycle_step step = lifecycle_chunk_ended(&profiler.lifecycle);
    follow_step(step, "its chunk is complete");
    return step.action != LIFECYCLE_STOP;
}

void profiler_set_limited(bool is_limited)
{
    HOLD_LOCK(LOCK_PROFILER);
    follow_step(lifecycle_set_limited(&profiler.lifecycle, is_limited), "a rate limit of the server");
}

struct chunk_measurement *profiler_take_measurements(size_t *ret_count)
{
    (void)pthread_mutex_lock(&profiler.measurements_lock);
    struct measurements *measurements = &profiler.measurements;
    struct chunk_measurement *taken = measurements->items;
    *ret_count = measurements->count;
    *measurements = (struct measurements){.are_wanted = measurements->are_wanted};
    (void)pthread_mutex_unlock(&profiler.measurements_lock);
    return taken;
}

uint64_t profiler_take_flush(uint64_t *ret_deadline_ns)
{
    HOLD_LOCK(LOCK_PROFILER);
    bool is_new = profiler.flushes_wanted > profiler.flushes_taken;
    profiler.flushes_taken = profiler.flushes_wanted;
    *ret_deadline_ns = profiler.flush_deadline_ns;
    return is_new ? profiler.flushes_taken : 0;
}

uint64_t profiler_flush_deadline(void)
{
    HOLD_LOCK(LOCK_PROFILER);
    return profiler.flush_deadline_ns;
}

bool profiler_is_flushing(void)
{
    HOLD_LOCK(LOCK_PROFILER);
    return profiler.flushes_done < profiler.flushes_wanted;
}

void profiler_flushed(uint64_t number, bool is_done)
{
    HOLD_LOCK(LOCK_PROFILER);
    profiler.flushes_done = number;
    if (!is_done) profiler.flushes_failed = number;
    profiler_changed();
}

bool profiler_is_ending(uint64_t *ret_deadline_ns)
{
    HOLD_LOCK(LOCK_PROFILER);
    *ret_deadline_ns = profiler.end_deadline_ns;
    return profiler.is_ending;
}

bool profiler_wants_worker(void)
{
    return lock_check_held(LOCK_PROFILER) &&
           (profiler.wanted_id[0] != '\0' || profiler.flushes_done < profiler.flushes_wanted ||
            profiler.transaction_count > 0);
}

bool profiler_has_transactions(void)
{
    HOLD_LOCK(LOCK_PROFILER);
    return profiler.transaction_count > 0;
}

struct trace_transaction *profiler_take_transaction(uint64_t recorded_until_ns)
{
    HOLD_LOCK(LOCK_PROFILER);
    if (profiler.transaction_count == 0 || profiler.transactions[0].end_ns > recorded_until_ns) return NULL;
    struct trace_transaction *taken = profiler.transactions[0].transaction;
    profiler.transaction_count--;
    memmove(profiler.transactions, profiler.transactions + 1,
            profiler.transaction_count * sizeof(profiler.transactions[0]));
    return taken;
}

uint64_t profiler_oldest_start_ns(uint64_t otherwise_ns)
{
    HOLD_LOCK(LOCK_PROFILER);
    if (profiler.transaction_count > 0) return 0;
    uint64_t oldest = otherwise_ns;
    for (size_t i = 0; i < PROFILED_OPEN_MAX; i++) {
        if (profiler.profiled[i] != 0 && profiler.profiled[i] < oldest) oldest = profiler.profiled[i];
    }
    return oldest;
}
