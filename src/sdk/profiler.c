/* SPDX-License-Identifier: MIT */
#include "sdk/profiler.h"

#include "base/invariant.h"
#include "sdk/callbacks.h"
#include "sdk/locks.h"
#include "sdk/sdk_private.h"
#include "sdk/worker.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SECOND_NS ((uint64_t)1000000000)

enum { PROFILED_OPEN_MAX = 64 };

/* A V1 transaction that is complete and waits for its profile. */
struct waiting_transaction {
    struct trace_transaction *transaction;
    uint64_t end_ns; /* CLOCK_MONOTONIC */
};

struct profiler {
    pthread_cond_t changed; /* of what follows, and of the states of the worker */
    struct lifecycle lifecycle;
    struct tracer *tracer; /* a reference */
    /* What the worker shall do; the id is empty if no profiler shall run. */
    char wanted_id[UUID_TEXT_SIZE];
    bool is_ending, is_flushing;
    struct waiting_transaction transactions[PROFILER_TRANSACTIONS_MAX];
    size_t transaction_count;
    uint64_t flushes;                     /* that the worker has done */
    uint64_t profiled[PROFILED_OPEN_MAX]; /* V1: when the open profiled transactions began; 0: free */
    struct measurements measurements;     /* with its own lock */
};

#define NOTHING_WANTED                                                                                                 \
    {                                                                                                                  \
        .changed = PTHREAD_COND_INITIALIZER, .measurements.lock = PTHREAD_MUTEX_INITIALIZER                            \
    }
static struct profiler profiler = NOTHING_WANTED;

/* --- The lock ----------------------------------------------------------------------------------------------------- */

void profiler_lock(void)
{
    lock_take(LOCK_PROFILER);
}

void profiler_unlock(void)
{
    lock_give(LOCK_PROFILER);
    callbacks_write_lines();
}

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

/* Spans that start from now on are linked to the profiler of this id; NULL: to none. */
static void link_spans(const char *profiler_id)
{
    if (profiler.tracer) tracer_set_profiler(profiler.tracer, profiler_id);
}

static void want_profiler(void)
{
    if (!uuid_new(profiler.wanted_id)) {
        sdk_say("the system gives no random numbers: no profile");
        return;
    }
    atomic_store(&library.is_running, true);
    measurements_want(&profiler.measurements, true);
    /* Profiles of V1 are sent with their transactions: no chunk will have this id. */
    if (!profiler.lifecycle.options.has_v1) link_spans(profiler.wanted_id);
    worker_wake();
}

static void want_nothing(void)
{
    profiler.wanted_id[0] = '\0';
    atomic_store(&library.is_running, false);
    measurements_want(&profiler.measurements, false);
    link_spans(NULL);
    worker_wake();
}

/* Does what the lifecycle decided, and prints its message. */
static void follow(struct lifecycle_step step)
{
    if (step.message) sdk_debug("%s", step.message);
    switch (step.action) {
    case LIFECYCLE_START:
    case LIFECYCLE_RESTART:
        want_profiler();
        break;
    case LIFECYCLE_STOP:
        want_nothing();
        break;
    case LIFECYCLE_NOTHING:
    case LIFECYCLE_FINISH_CHUNK: /* the worker asks at the end of each chunk */
    case LIFECYCLE_KEEP_ON:
        break;
    }
}

/* --- Events of the program ---------------------------------------------------------------------------------------- */

/* One event of the lifecycle that the program causes, if the library is on. */
static void apply_event(struct lifecycle_step (*event)(struct lifecycle *lifecycle))
{
    int kept_errno = errno;
    if (!sdk_is_ours()) return;
    profiler_lock();
    if (atomic_load(&library.is_on)) follow(event(&profiler.lifecycle));
    profiler_unlock();
    errno = kept_errno;
}

static struct lifecycle_step foreground(struct lifecycle *lifecycle)
{
    return lifecycle_foreground(lifecycle, sdk_random());
}

void offbeat_start_profiler(void)
{
    apply_event(lifecycle_start_profiler);
}

void offbeat_stop_profiler(void)
{
    apply_event(lifecycle_stop_profiler);
}

void offbeat_background(void)
{
    apply_event(lifecycle_background);
}

void offbeat_foreground(void)
{
    apply_event(foreground);
}

bool offbeat_profiler_id(char ret_id[OFFBEAT_ID_SIZE])
{
    int kept_errno = errno;
    if (!ret_id) return false;
    ret_id[0] = '\0';
    if (!sdk_is_ours()) return false;
    profiler_wanted_id(ret_id);
    errno = kept_errno;
    return ret_id[0] != '\0';
}

_Static_assert((int)OFFBEAT_ID_SIZE == (int)UUID_TEXT_SIZE, "an id fits");

void offbeat_measure(const char *name, const char *unit, double value)
{
    int kept_errno = errno;
    if (!sdk_is_ours()) return;
    if (!isfinite(value)) sdk_debug("a measurement is not a finite number: dropped");
    measurements_add(&profiler.measurements, name, unit, sdk_utc_ns(), value);
    errno = kept_errno;
}

/* As viewers draw them (FMT-7), with the thresholds that other clients have (facts §3). */
void offbeat_frame_rendered(uint64_t duration_ns)
{
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
    profiler_lock();
    atomic_store(&library.is_on, true);
    atomic_store(&library.is_without_threads, false);
    follow(lifecycle_init(&profiler.lifecycle, options, kept, sdk_random(), sdk_random()));
    if (starts_now && profiler.lifecycle.profiler == LIFECYCLE_IDLE) {
        follow(lifecycle_start_profiler(&profiler.lifecycle));
    }
    enum lifecycle_kept for_next_launch = profiler.lifecycle.for_next_launch;
    profiler_unlock();
    return for_next_launch;
}

/* The worker ends when it has sent all that was sampled; soon, once the library is off. Under the lock. */
static bool end_worker(uint64_t deadline_ns)
{
    profiler.is_ending = true;
    if (worker_exists()) worker_wake();
    while (worker_exists()) {
        if (!profiler_wait_until(deadline_ns)) return false;
    }
    return true;
}

bool profiler_end(uint64_t deadline_ns)
{
    profiler_lock();
    follow(lifecycle_close(&profiler.lifecycle));
    bool has_ended = end_worker(deadline_ns);
    atomic_store(&library.is_on, false);
    profiler_changed(); /* a thread that flushes waits no longer */
    if (!has_ended) worker_wake();
    profiler_unlock();
    return has_ended;
}

bool profiler_await_late_worker(uint64_t deadline_ns)
{
    profiler_lock();
    bool has_ended = end_worker(deadline_ns);
    if (has_ended) profiler.is_ending = false;
    profiler_unlock();
    return has_ended;
}

bool profiler_flush(uint64_t deadline_ns)
{
    bool is_in_time = true;
    profiler_lock();
    uint64_t before = profiler.flushes;
    if (worker_exists()) {
        profiler.is_flushing = true;
        worker_wake();
    }
    while (is_in_time && worker_exists() && atomic_load(&library.is_on) && profiler.flushes == before) {
        is_in_time = profiler_wait_until(deadline_ns);
    }
    profiler_unlock();
    return is_in_time;
}

struct tracer *profiler_set_tracer(struct tracer *tracer)
{
    profiler_lock();
    struct tracer *before = profiler.tracer;
    profiler.tracer = tracer;
    profiler_unlock();
    return before;
}

void profiler_wake_worker(void)
{
    profiler_lock();
    worker_wake();
    profiler_unlock();
}

void profiler_forget(void)
{
    static const struct profiler nothing_wanted = NOTHING_WANTED;
    memcpy(&profiler, &nothing_wanted, sizeof(profiler));
}

/* --- Root spans --------------------------------------------------------------------------------------------------- */

struct tracer *profiler_tracer_ref(void)
{
    profiler_lock();
    struct tracer *tracer = tracer_ref(profiler.tracer);
    profiler_unlock();
    return tracer;
}

static void note_profiled(uint64_t start_ns)
{
    for (size_t i = 0; i < PROFILED_OPEN_MAX; i++) {
        if (profiler.profiled[i] != 0) continue;
        profiler.profiled[i] = start_ns;
        return;
    }
}

/* Which of them ended matters little: the oldest one is removed last. */
static void forget_profiled(void)
{
    size_t latest = 0;
    for (size_t i = 1; i < PROFILED_OPEN_MAX; i++) {
        if (profiler.profiled[i] > profiler.profiled[latest]) latest = i;
    }
    profiler.profiled[latest] = 0;
}

uint32_t profiler_root_started(bool is_sampled, double v1_rate, uint64_t trace, bool *ret_is_profiled)
{
    uint32_t token = 0;
    profiler_lock();
    struct lifecycle *lifecycle = &profiler.lifecycle;
    bool is_profiled = lifecycle_profiles_transaction(lifecycle, is_sampled, v1_rate, sdk_random());
    if (is_profiled) note_profiled(sdk_monotonic_ns());
    bool counts = lifecycle->options.has_v1 ? is_profiled : is_sampled;
    follow(lifecycle_root_started(lifecycle, counts, trace, &token));
    profiler_unlock();
    *ret_is_profiled = is_profiled;
    return token;
}

void profiler_root_ended(uint32_t token, bool is_sampled, bool is_profiled)
{
    profiler_lock();
    if (is_profiled) forget_profiled();
    bool counts = profiler.lifecycle.options.has_v1 ? is_profiled : is_sampled;
    follow(lifecycle_root_ended(&profiler.lifecycle, token, counts));
    profiler_unlock();
}

bool profiler_leave_transaction(struct trace_transaction *transaction)
{
    profiler_lock();
    bool has_room = atomic_load(&library.is_on) && profiler.transaction_count < PROFILER_TRANSACTIONS_MAX;
    if (has_room) {
        profiler.transactions[profiler.transaction_count++] =
            (struct waiting_transaction){.transaction = transaction, .end_ns = sdk_monotonic_ns()};
        worker_wake();
    }
    profiler_unlock();
    return has_room;
}

/* --- For the worker ----------------------------------------------------------------------------------------------- */

bool profiler_has_v1(void)
{
    profiler_lock();
    bool has_v1 = profiler.lifecycle.options.has_v1;
    profiler_unlock();
    return has_v1;
}

void profiler_wanted_id(char ret_id[UUID_TEXT_SIZE])
{
    profiler_lock();
    memcpy(ret_id, profiler.wanted_id, UUID_TEXT_SIZE);
    profiler_unlock();
}

bool profiler_continues_after_chunk(void)
{
    profiler_lock();
    struct lifecycle_step step = lifecycle_chunk_ended(&profiler.lifecycle);
    follow(step);
    profiler_unlock();
    return step.action != LIFECYCLE_STOP;
}

void profiler_set_limited(bool is_limited)
{
    profiler_lock();
    follow(lifecycle_set_limited(&profiler.lifecycle, is_limited));
    profiler_unlock();
}

struct chunk_measurement *profiler_take_measurements(size_t *ret_count)
{
    return measurements_take(&profiler.measurements, ret_count);
}

bool profiler_take_flush(void)
{
    profiler_lock();
    bool is_wanted = profiler.is_flushing;
    profiler.is_flushing = false;
    profiler_unlock();
    return is_wanted;
}

void profiler_flushed(bool is_done)
{
    profiler_lock();
    if (is_done) {
        profiler.flushes++;
        profiler_changed();
    } else {
        profiler.is_flushing = true;
    }
    profiler_unlock();
}

bool profiler_is_ending(void)
{
    profiler_lock();
    bool is_ending = profiler.is_ending && profiler.transaction_count == 0;
    profiler_unlock();
    return is_ending;
}

bool profiler_has_transactions(void)
{
    profiler_lock();
    bool has = profiler.transaction_count > 0;
    profiler_unlock();
    return has;
}

struct trace_transaction *profiler_take_transaction(uint64_t recorded_until_ns)
{
    struct trace_transaction *taken = NULL;
    profiler_lock();
    if (profiler.transaction_count > 0 && profiler.transactions[0].end_ns <= recorded_until_ns) {
        taken = profiler.transactions[0].transaction;
        profiler.transaction_count--;
        memmove(profiler.transactions, profiler.transactions + 1,
                profiler.transaction_count * sizeof(profiler.transactions[0]));
    }
    profiler_unlock();
    return taken;
}

bool profiler_give_back(struct trace_transaction *transaction)
{
    profiler_lock();
    bool has_room = profiler.transaction_count < PROFILER_TRANSACTIONS_MAX;
    if (has_room) {
        memmove(profiler.transactions + 1, profiler.transactions,
                profiler.transaction_count * sizeof(profiler.transactions[0]));
        profiler.transactions[0] = (struct waiting_transaction){.transaction = transaction};
        profiler.transaction_count++;
    }
    profiler_unlock();
    return has_room;
}

uint64_t profiler_oldest_start_ns(uint64_t otherwise_ns)
{
    uint64_t oldest = otherwise_ns;
    profiler_lock();
    for (size_t i = 0; i < PROFILED_OPEN_MAX; i++) {
        if (profiler.profiled[i] != 0 && profiler.profiled[i] < oldest) oldest = profiler.profiled[i];
    }
    if (profiler.transaction_count > 0) oldest = 0;
    profiler_unlock();
    return oldest;
}
