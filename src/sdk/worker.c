/* The thread that has the sampler: starts and stops it as the program wants, and puts what it has recorded, and the
 * envelopes of transactions, into the spool, for the helper. It sleeps until the sampler or the program wakes it.
 * SPDX-License-Identifier: MIT */
#include "sdk/worker.h"

#include "base/invariant.h"
#include "base/percent.h"
#include "base/seccomp_filter.h"
#include "sampler/record/finished_recordings.h"
#include "sampler/sampler.h"
#include "sdk/callbacks.h"
#include "sdk/profiler.h"
#include "sdk/sdk_private.h"
#include "sdk/sender.h"
#include "sdk/spans.h"
#include "sdk/spooler.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    V1_SECONDS_MAX = 30,
    POLL_SECONDS = 1,     /* between two checks of a limit that is in force, or for lines of the helper */
    HANDOVER_SECONDS = 5, /* longest time from a transaction's end until it waits here */
    IDLE_SECONDS = 10,    /* time without work after which the worker ends */
};

/* A recording that transactions of V1 may need. */
struct recording {
    char path[RECORDING_PATH_SIZE];
    uint64_t end_ns; /* CLOCK_MONOTONIC; the recording has nothing later */
};

struct worker {
    struct spooler spooler;
    struct stat root; /* root of the process when the spool's folder was found */
    uint64_t began_ns;
    bool has_other_root;
    char profiler_id[UUID_TEXT_SIZE]; /* id of the profiler whose sampler runs; "": none */
    bool is_v1;
    bool has_reported_lost;
    bool ends_process;   /* the process exits, and this thread ends the library */
    uint64_t lost_count; /* number of the sampler's lost recordings that were counted */
    uint64_t busy_at_ns; /* CLOCK_MONOTONIC time of the last work */
    /* V1: recordings that transactions may need, the oldest first. */
    struct recording recordings[CHUNK_RECORDINGS_MAX];
    size_t recording_count;
};

/* Under LOCK_PROFILER. */
static bool exists;
static struct worker *left; /* state of a worker that has stepped aside */

static atomic_bool is_there; /* copy of EXISTS without LEFT, for a thread that exits */

static enum category profile_category(const struct worker *worker)
{
    const char *platform = sdk_options()->platform;
    return worker->is_v1 ? CATEGORY_PROFILE : category_of_chunk(slice_of_text(platform ? platform : ""));
}

/* --- The sampler -------------------------------------------------------------------------------------------------- */

static bool start_sampler(struct worker *worker, const char *profiler_id)
{
    const struct offbeat_options *options = sdk_options();
    struct sampler_options sampler = {
        .frequency_hz = options->frequency_hz,
        .cpu_max_ppm = (uint32_t)(options->cpu_max_percent * PERCENT_PPM),
        .mode = options->mode == OFFBEAT_MODE_CPU ? RECORDING_CPU : RECORDING_WALL,
        .recording_ns = (uint64_t)(worker->is_v1 ? V1_SECONDS_MAX : options->chunk_seconds) * SECOND_NS,
        .ignores_children = true,
        .cache_directory = sdk_settings()->cache_folder,
        .directory = spooler_session(),
    };
    for (size_t i = 0; i < RECORDING_PROFILER_ID_SIZE; i++)
        (void)sscanf(profiler_id + 2 * i, "%2hhx", &sampler.profiler_id[i]);
    if (!worker->spooler.has_folder) return false;
    if (preload_is_recording()) {
        sdk_debug("the program is being recorded by `offbeat record`, and does not profile itself");
        return false;
    }
    if (sampler_start(&sampler)) return true;
    sdk_say("the sampler cannot be started: no memory, or no thread");
    return false;
}

static struct chunk_request request_of(const struct worker *worker)
{
    const struct offbeat_options *options = sdk_options();
    return (struct chunk_request){
        .release = options->release,
        .environment = options->environment,
        .dist = options->dist,
        .platform = options->platform,
        .in_app_include = options->in_app_include,
        .in_app_exclude = options->in_app_exclude,
        .repeats_idle = options->repeats_idle,
        .has_names = options->symbols == OFFBEAT_SYMBOLS_LOCAL,
        .asks = options->before_send != NULL,
        .is_v1 = worker->is_v1,
    };
}

static void forget_recordings(struct worker *worker, size_t count)
{
    if (!INVARIANT(count <= worker->recording_count)) return;
    for (size_t i = 0; i < count; i++) (void)unlink(worker->recordings[i].path);
    worker->recording_count -= count;
    memmove(worker->recordings, worker->recordings + count, worker->recording_count * sizeof(*worker->recordings));
}

/* Leaves the finished recording at PATH to the helper, or keeps it for transactions of V1. */
static void take_recording(struct worker *worker, const char *path)
{
    if (worker->is_v1) {
        if (worker->recording_count == CHUNK_RECORDINGS_MAX) forget_recordings(worker, 1);
        struct recording *recording = &worker->recordings[worker->recording_count++];
        (void)snprintf(recording->path, sizeof(recording->path), "%s", path);
        recording->end_ns = clock_monotonic_ns();
        return;
    }
    struct chunk_request request = request_of(worker);
    struct chunk_measurement *measurements = profiler_take_measurements(&request.measurement_count);
    request.measurements = measurements;
    request.recordings[request.recording_count++] = path_base_name_text(path);
    if (!spooler_request(&worker->spooler, &request)) {
        (void)unlink(path);
        sender_discard(DISCARD_INTERNAL_SDK_ERROR, profile_category(worker), 1);
    }
    free(measurements);
}

/* Takes the finished recordings. Returns their number. */
static size_t collect_recordings(struct worker *worker)
{
    size_t count = 0;
    bool continues = true;
    char path[RECORDING_PATH_SIZE];
    while (finished_recordings_take(path)) {
        count++;
        take_recording(worker, path);
        if (worker->profiler_id[0]) continues = profiler_continues_after_chunk();
        if (!continues) worker->profiler_id[0] = '\0';
    }
    if (!continues) {
        sampler_stop();
        while (finished_recordings_take(path)) (void)unlink(path); /* the few samples since the chunk ended */
    }
    return count;
}

/* Starts and stops the sampler as the program wants. */
static void follow_requests(struct worker *worker)
{
    char wanted[UUID_TEXT_SIZE];
    profiler_wanted_id(wanted);
    (void)collect_recordings(worker);
    if (strcmp(wanted, worker->profiler_id) == 0) return;
    if (worker->profiler_id[0]) sampler_stop();
    worker->profiler_id[0] = '\0';
    (void)collect_recordings(worker);
    profiler_wanted_id(wanted);
    if (wanted[0] && start_sampler(worker, wanted)) memcpy(worker->profiler_id, wanted, sizeof(wanted));
}

/* Stops sampling while a rate limit for profiles is in force (facts §3.7). True if one is. */
static bool follow_limits(struct worker *worker)
{
    spooler_read_state(&worker->spooler);
    bool is_limited = sender_is_limited(profile_category(worker));
    profiler_set_limited(is_limited);
    return is_limited;
}

/* --- V1: profiles of transactions --------------------------------------------------------------------------------- */

static void send_transaction(struct worker *worker, struct trace_transaction *transaction)
{
    struct trace_facts facts = trace_transaction_facts(transaction);
    struct chunk_request request = request_of(worker);
    struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX};
    char profile_id[UUID_TEXT_SIZE] = "", thread_id[24], event_id[UUID_TEXT_SIZE], trace_id[UUID_TEXT_SIZE];
    const char *paths[CHUNK_RECORDINGS_MAX];
    uint64_t end_max_ns = facts.start_ns + V1_SECONDS_MAX * SECOND_NS;
    bool is_limited = sender_is_limited(CATEGORY_PROFILE); /* since after the transaction's start */
    (void)snprintf(thread_id, sizeof(thread_id), "%ld", (long)facts.thread);
    (void)snprintf(event_id, sizeof(event_id), "%s", facts.event_id);
    (void)snprintf(trace_id, sizeof(trace_id), "%s", facts.trace_id);
    (void)uuid_new(profile_id);
    for (size_t i = 0; i < worker->recording_count && INVARIANT(i < CHUNK_RECORDINGS_MAX); i++)
        paths[i] = worker->recordings[i].path;
    request.transaction = (struct chunk_transaction){
        .event_id = event_id,
        .profile_id = profile_id,
        .name = facts.name,
        .trace_id = trace_id,
        .thread_id = thread_id,
        .start_ns = facts.start_ns,
        .end_ns = facts.end_ns < end_max_ns ? facts.end_ns : end_max_ns,
    };
    if (!spans_write(transaction, &envelope)) {
        sender_discard(DISCARD_BEFORE_SEND, CATEGORY_PROFILE, 1);
    } else if (is_limited || worker->recording_count == 0) {
        sender_discard(is_limited ? DISCARD_RATELIMIT_BACKOFF : DISCARD_INSUFFICIENT_DATA, CATEGORY_PROFILE, 1);
        sender_send(&envelope);
    } else if (!spooler_request_v1(&worker->spooler, &request, paths, worker->recording_count, &envelope)) {
        sender_discard(DISCARD_INTERNAL_SDK_ERROR, CATEGORY_PROFILE, 1);
        sender_send(&envelope);
    }
    trace_transaction_free(transaction);
    buffer_fini(&envelope);
}

/* Sends the transactions that are completely recorded. */
static void send_transactions(struct worker *worker)
{
    for (size_t i = 0; i < PROFILER_TRANSACTIONS_MAX; i++) {
        (void)collect_recordings(worker);
        if (own_threads_shall_leave()) return;
        size_t count = worker->recording_count;
        uint64_t recorded_until_ns = count > 0 ? worker->recordings[count - 1].end_ns : 0;
        if (worker->profiler_id[0] == '\0') recorded_until_ns = UINT64_MAX;
        struct trace_transaction *transaction = profiler_take_transaction(recorded_until_ns);
        if (!transaction) break;
        send_transaction(worker, transaction);
    }
    /* A transaction that has just ended may not be in the queue yet. */
    uint64_t oldest_ns = profiler_oldest_start_ns(clock_monotonic_ns() - HANDOVER_SECONDS * SECOND_NS);
    size_t old = 0;
    while (old < worker->recording_count && worker->recordings[old].end_ns < oldest_ns) old++;
    forget_recordings(worker, old);
}

/* --- The folder --------------------------------------------------------------------------------------------------- */

static void report_lost(struct worker *worker)
{
    uint64_t lost = finished_recordings_lost() - worker->lost_count;
    const char *folder = spooler_session();
    if (lost == 0) return;
    if (folder_has_become_anothers(folder))
        sdk_debug("recordings are lost: this process has no access to %s any more", folder);
    else if (!worker->has_reported_lost)
        sdk_say("recordings are lost: %s cannot be written (is the disk full?), or they come too fast", folder);
    worker->has_reported_lost = true;
    worker->lost_count += lost;
    if (!worker->is_v1) sender_discard(DISCARD_INTERNAL_SDK_ERROR, profile_category(worker), lost);
}

static void begin_session(struct worker *worker)
{
    static const char line[] =
        "there is no folder to record in: %s; OFFBEAT_SPOOL_DIRECTORY can name one that can be written";
    struct chunk_request metadata = request_of(worker);
    struct error error;
    spooler_begin(&worker->spooler, &metadata, &error);
    if (worker->spooler.has_folder) return;
    if (worker->has_other_root || filter_is_there())
        sdk_debug(line, error.message);
    else
        sdk_say(line, error.message);
}

/* False soon after the start: a program that changes its user at once is about to run another program, which would not
 * know a new folder. */
static bool may_move(const struct worker *worker)
{
    char wanted[UUID_TEXT_SIZE];
    profiler_wanted_id(wanted);
    bool is_wanted = atomic_load(&library.is_on) && wanted[0] != '\0';
    return is_wanted && !worker->has_other_root && clock_monotonic_ns() - worker->began_ns >= SECOND_NS;
}

/* Continues the recording in another folder if the program has changed its user, its rights or its root. The helper of
 * the first folder sends the recordings made until then. Under another root there is no recording, because the helper
 * and the program's files cannot be found there. */
static void move_if_folder_is_lost(struct worker *worker)
{
    struct stat root;
    bool is_needed =
        clock_monotonic_ns() - worker->began_ns >= SECOND_NS || finished_recordings_lost() != worker->lost_count;
    if (!worker->spooler.has_folder || !is_needed) return;
    worker->has_other_root =
        stat("/", &root) == 0 && (root.st_dev != worker->root.st_dev || root.st_ino != worker->root.st_ino);
    if (!worker->has_other_root && !folder_has_become_anothers(spooler_session())) return;
    sdk_debug("this process has no access to %s any more: what is there is sent when it ends", spooler_session());
    if (worker->profiler_id[0]) sampler_stop();
    char path[RECORDING_PATH_SIZE];
    while (finished_recordings_take(path)) continue;
    worker->recording_count = 0;
    worker->lost_count = finished_recordings_lost();
    worker->profiler_id[0] = '\0';
    spooler_leave(&worker->spooler);
    if (may_move(worker)) begin_session(worker);
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

static void prepare_worker(struct worker *worker)
{
    *worker = (struct worker){.is_v1 = profiler_has_v1(), .lost_count = finished_recordings_lost()};
    (void)stat("/", &worker->root);
    worker->busy_at_ns = worker->began_ns = clock_monotonic_ns();
    begin_session(worker);
}

/* True if all that this worker has is in the spool. */
static bool has_stored(const struct worker *worker)
{
    return worker->profiler_id[0] == '\0' && !profiler_has_transactions() && !sender_has_work() &&
           !spooler_has_questions(&worker->spooler);
}

/* True if the worker shall end: at the end of the library, once the helper has sent everything, or there is no time
 * left; or without work. Another worker does what the program wants after that. */
static bool is_over(struct worker *worker)
{
    if (!atomic_load(&library.is_on)) return worker->profiler_id[0] == '\0';
    uint64_t now_ns = clock_monotonic_ns(), deadline_ns;
    if (profiler_is_ending(&deadline_ns)) {
        if (worker->profiler_id[0] != '\0') return false;
        if (now_ns >= deadline_ns) return true;
        bool has_asked = !profiler_has_transactions() && !spooler_has_questions(&worker->spooler);
        return has_asked && spooler_flush(&worker->spooler, deadline_ns) != SPOOLER_WAITS;
    }
    bool is_idle = has_stored(worker) && !profiler_is_flushing();
    if (!is_idle) worker->busy_at_ns = now_ns;
    return is_idle && now_ns - worker->busy_at_ns >= IDLE_SECONDS * SECOND_NS;
}

/* Ends the worker if it is over. If the program wants something meanwhile, and does not exit, the worker begins again.
 */
static bool end_if_over(struct worker *worker)
{
    if (!is_over(worker)) return false;
    spooler_store(&worker->spooler); /* without time for more */
    forget_recordings(worker, worker->recording_count);
    spooler_end(&worker->spooler);
    lock_take(LOCK_PROFILER);
    bool goes_on =
        !worker->ends_process && atomic_load(&library.is_on) && (profiler_wants_worker() || sender_has_work());
    exists = goes_on;
    atomic_store(&is_there, goes_on);
    profiler_changed();
    callbacks_give_lock(LOCK_PROFILER);
    if (goes_on) prepare_worker(worker);
    return !goes_on;
}

/* Ends the current recording, and waits until it has ended. */
static void cut_recording(struct worker *worker)
{
    uint32_t news = finished_recordings_news();
    uint64_t deadline_ns = clock_monotonic_ns() + SECOND_NS;
    follow_requests(worker);
    if (worker->profiler_id[0] == '\0') return;
    sampler_cut();
    while (!own_threads_shall_leave() && collect_recordings(worker) == 0 && clock_monotonic_ns() < deadline_ns) {
        finished_recordings_wait(news, deadline_ns);
        news = finished_recordings_news();
    }
}

/* Has the helper send the samples taken so far, if the program waits for that. */
static void flush_if_requested(struct worker *worker)
{
    uint64_t deadline_ns, number = profiler_take_flush(&deadline_ns);
    if (number > 0) {
        cut_recording(worker);
        if (worker->is_v1) send_transactions(worker);
        spooler_restart_flush(&worker->spooler, number);
    }
    if (worker->spooler.flush_number == 0) return;
    spooler_store(&worker->spooler);
    enum spooler_flush flush = spooler_flush(&worker->spooler, profiler_flush_deadline());
    if (flush == SPOOLER_WAITS) return;
    (void)follow_limits(worker);
    profiler_flushed(worker->spooler.flush_number, flush == SPOOLER_FLUSHED);
    worker->spooler.flush_number = 0;
}

static bool leave_if_wanted(struct worker *worker)
{
    if (own_threads_shall_leave()) spooler_store(&worker->spooler);
    HOLD_LOCK(LOCK_PROFILER);
    bool leaves = own_threads_shall_leave();
    if (leaves) left = worker;
    if (leaves) atomic_store(&is_there, false);
    profiler_changed();
    return leaves;
}

static void end_process_if_wanted(struct worker *worker)
{
    if (worker->ends_process || !end_at_exit_is_wanted()) return;
    worker->ends_process = true;
    end_at_exit_begin(clock_monotonic_ns() + atomic_load(&library.shutdown_timeout_ms) * MILLISECOND_NS);
}

/* Returns the longest time to sleep, ns. */
static uint64_t pause_ns(struct worker *worker, bool is_limited)
{
    uint64_t deadline_ns, pause_ns = 3600 * SECOND_NS;
    if (is_limited || sdk_options()->debug) pause_ns = POLL_SECONDS * SECOND_NS;
    if (has_stored(worker) && pause_ns > IDLE_SECONDS * SECOND_NS) pause_ns = IDLE_SECONDS * SECOND_NS;
    uint64_t spooler_ns = spooler_pause_ns(&worker->spooler);
    if (profiler_is_ending(&deadline_ns) && pause_ns > MILLISECOND_NS * 100) pause_ns = MILLISECOND_NS * 100;
    return spooler_ns < pause_ns ? spooler_ns : pause_ns;
}

static void work_once(struct worker *worker)
{
    end_process_if_wanted(worker);
    spooler_keep(&worker->spooler);
    move_if_folder_is_lost(worker);
    follow_requests(worker);
    report_lost(worker);
    if (worker->is_v1) send_transactions(worker);
    spooler_ask(&worker->spooler);
    spooler_store(&worker->spooler);
    flush_if_requested(worker);
    if (worker->is_v1 && profiler_has_transactions()) sampler_cut();
}

static void *work(void *context)
{
    own_threads_begin("offbeat-chunks");
    struct worker *worker = context ? context : malloc(sizeof(*worker));
    own_threads_take_descriptors();
    if (worker && !context) prepare_worker(worker);
    while (worker) {
        if (leave_if_wanted(worker)) {
            own_threads_end_one();
            return NULL;
        }
        uint32_t news = finished_recordings_news();
        work_once(worker);
        bool is_limited = follow_limits(worker);
        if (end_if_over(worker)) break;
        finished_recordings_wait(news, clock_monotonic_ns() + pause_ns(worker, is_limited));
    }
    if (worker && worker->ends_process) end_at_exit_finish();
    free(worker);
    own_threads_end_one();
    return NULL;
}

/* --- For other threads -------------------------------------------------------------------------------------------- */

bool worker_exists(void)
{
    return lock_check_held(LOCK_PROFILER) && exists;
}

bool worker_is_running(void)
{
    return worker_exists() && !left;
}

bool worker_is_there(void)
{
    return atomic_load(&is_there);
}

bool worker_come_back(void)
{
    if (!lock_check_held(LOCK_PROFILER)) return false;
    if (!left) return true;
    struct worker *worker = left;
    left = NULL;
    atomic_store(&is_there, true);
    if (thread_start(work, worker)) return true;
    left = worker;
    atomic_store(&is_there, false);
    return false;
}

void worker_forget(void)
{
    spooler_forget();
    exists = false;
    atomic_store(&is_there, false);
    left = NULL;
}

void worker_wake(void)
{
    if (!lock_check_held(LOCK_PROFILER)) return;
    if (!exists) {
        exists = thread_start(work, NULL);
        atomic_store(&is_there, exists);
        if (!exists) sdk_say("no thread can be made: nothing is profiled");
    }
    finished_recordings_wake();
}
