/* The thread that has the sampler: starts and stops it as the program wants, and makes chunks from its recordings,
 * with the helper program if it can. It sleeps until the sampler or the program wakes it.  SPDX-License-Identifier:
 * MIT */
#include "base/file.h"
#include "base/invariant.h"
#include "base/percent.h"
#include "base/seccomp_filter.h"
#include "deliver/request_file.h"
#include "deliver/symbol_names.h"
#include "format/sentry/envelope.h"
#include "format/sentry/sentry_v2.h"
#include "sampler/sampler.h"
#include "sampler/process_info.h"
#include "sdk/callbacks.h"
#include "sdk/helper_process.h"
#include "sdk/orphans.h"
#include "sdk/profiler.h"
#include "sdk/sdk_private.h"
#include "sdk/sender.h"
#include "sdk/spans.h"
#include "sdk/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HELPER_SECONDS_MAX = 50, /* less than a chunk: one is made while the next is recorded */
    HELPER_FAILURES_MAX = 3, /* more than one: a busy machine may have time later */
    V1_SECONDS_MAX = 30,
    POLL_SECONDS = 1,     /* between two checks of a limit that is in force, or of a helper */
    HANDOVER_SECONDS = 5, /* longest time from a transaction's end until it waits here */
};

struct recording {
    char path[SAMPLER_PATH_SIZE];
    uint64_t end_ns; /* CLOCK_MONOTONIC; the recording has nothing later */
    struct chunk_measurement *measurements;
    size_t measurement_count;
};

struct worker {
    char folder[PATH_MAX], helper[PATH_MAX];
    bool has_helper;
    unsigned helper_failures; /* number of failures in a row */
    bool has_folder, has_session;
    struct stat root; /* root of the process when FOLDER was found */
    uint64_t began_ns;
    bool has_other_root;
    char profiler_id[UUID_TEXT_SIZE]; /* id of the profiler whose sampler runs; "": none */
    bool is_v1;
    bool is_late; /* recordings were not taken for a while */
    bool has_reported_lost;
    bool is_interrupted; /* the worker steps aside: nothing was made */
    uint64_t lost_count; /* number of the sampler's lost recordings that were counted */
    /* Finished recordings, the oldest first. */
    struct recording waiting[SAMPLER_FINISHED_MAX];
    size_t waiting_count;
    /* V1: recordings that transactions may need, the oldest first. */
    struct recording recordings[CHUNK_RECORDINGS_MAX];
    size_t recording_count;
};

/* Under LOCK_PROFILER. */
static bool exists;
static struct worker *left; /* state of a worker that has stepped aside */

static struct session session; /* used by the worker only */

/* --- Wrapping and sending ----------------------------------------------------------------------------------------- */

static enum category profile_category(const struct worker *worker)
{
    const char *platform = sdk_options()->platform;
    return worker->is_v1 ? CATEGORY_PROFILE : category_of_chunk(slice_of_text(platform ? platform : ""));
}

static void send_chunk(struct slice payload)
{
    struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX};
    const struct envelope_attributes attributes = {.sdk_name = slice_of_text("offbeat"),
                                                   .sdk_version = slice_of_text(OFFBEAT_VERSION)};
    char platform[SENTRY_PLATFORM_SIZE];
    sentry_payload_platform(payload, platform);
    if (!sender_may_send("profile_chunk", category_of_chunk(slice_of_text(platform)), payload)) return;
    envelope_begin(&envelope, &attributes);
    envelope_add_item(&envelope, "profile_chunk", platform, payload); /* V2-7: the payload's own */
    sender_send(&envelope);
    buffer_fini(&envelope);
}

/* Counts a profile that could not be made, by the reasons of client reports (facts §2.7). */
static void discard_profile(const struct worker *worker, enum status status, const char *message)
{
    bool has_too_few = reject_reason_of_message(message) == REJECT_NOT_ENOUGH_SAMPLES;
    enum discard_reason reason = has_too_few                  ? DISCARD_INSUFFICIENT_DATA
                                 : status == STATUS_MALFORMED ? DISCARD_INVALID
                                                              : DISCARD_INTERNAL_SDK_ERROR;
    sdk_debug("a profile is not sent: %s", message);
    sender_discard(reason, profile_category(worker), 1);
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
        .directory = worker->folder,
    };
    for (size_t i = 0; i < RECORDING_PROFILER_ID_SIZE; i++)
        (void)sscanf(profiler_id + 2 * i, "%2hhx", &sampler.profiler_id[i]);
    if (!worker->has_folder) {
        static const char line[] = "there is no folder to record in: set spool_directory to one that can be written";
        if (worker->has_other_root || filter_is_there() || folder_is_another_users(sdk_settings()))
            sdk_debug("%s", line);
        else
            sdk_say("%s", line);
        return false;
    }
    if (preload_is_recording()) {
        sdk_debug("the program is being recorded by `offbeat record`, and does not profile itself");
        return false;
    }
    if (sampler_start(&sampler)) return true;
    sdk_say("the sampler cannot be started: no memory, or no thread");
    return false;
}

/* Takes the finished recordings, as far as there is room. They wait here until they are sent. Returns their number. */
static size_t collect_recordings(struct worker *worker)
{
    size_t before = worker->waiting_count;
    bool continues = true;
    char path[SAMPLER_PATH_SIZE];
    while (worker->waiting_count < SAMPLER_FINISHED_MAX) {
        struct recording *recording = &worker->waiting[worker->waiting_count];
        if (!sampler_take_finished(recording->path)) break;
        worker->waiting_count++;
        recording->end_ns = clock_monotonic_ns();
        recording->measurements = worker->is_v1 ? NULL : profiler_take_measurements(&recording->measurement_count);
        if (worker->profiler_id[0]) continues = profiler_continues_after_chunk();
        if (!continues) worker->profiler_id[0] = '\0';
    }
    if (!continues) {
        sampler_stop();
        /* The few samples since the chunk ended are deleted. */
        while (!worker->is_late && sampler_take_finished(path)) (void)unlink(path);
    }
    return worker->waiting_count - before;
}

/* Starts and stops the sampler as the program wants. May run while a helper works, because recordings wait. */
static void follow_requests(struct worker *worker)
{
    char wanted[UUID_TEXT_SIZE];
    profiler_wanted_id(wanted);
    if (strcmp(wanted, worker->profiler_id) != 0) {
        if (worker->profiler_id[0]) sampler_stop();
        worker->profiler_id[0] = '\0';
        (void)collect_recordings(worker);
        if (wanted[0] && start_sampler(worker, wanted)) memcpy(worker->profiler_id, wanted, sizeof(wanted));
    }
    (void)collect_recordings(worker);
}

/* Stops sampling while a rate limit for profiles is in force (facts §3.7). True if one is. */
static bool follow_limits(const struct worker *worker)
{
    bool is_limited = sender_is_limited(profile_category(worker));
    profiler_set_limited(is_limited);
    return is_limited;
}

/* --- Making ------------------------------------------------------------------------------------------------------- */

static struct slice next_line(struct slice *text)
{
    const uint8_t *end = text->size > 0 ? memchr(text->data, '\n', text->size) : NULL;
    struct slice line = slice_of(text->data, end ? (size_t)(end - text->data) : 0);
    size_t taken = end ? line.size + 1 : text->size;
    *text = slice_of(text->data + taken, text->size - taken);
    return line;
}

/* True if the shutdown did not wait for this worker: it cannot send anything. */
static bool has_missed_end(void)
{
    return !atomic_load(&library.is_on);
}

/* Runs the helper, and follows requests of the program meanwhile. Returns its exit status, or -1. */
static int run_helper(struct worker *worker, const char *request_path, const char *payloads_path)
{
    struct helper *helper = helper_start(worker->helper, request_path, payloads_path, HELPER_SECONDS_MAX * SECOND_NS);
    uint32_t news = sampler_news();
    while (helper && !helper_has_ended(helper)) {
        if (has_missed_end() || own_threads_shall_leave()) helper_cancel(helper);
        if (worker->has_session) follow_requests(worker);
        (void)follow_limits(worker);
        sampler_wait(news, clock_monotonic_ns() + POLL_SECONDS * SECOND_NS); /* it wakes us when it has ended */
        news = sampler_news();
    }
    return helper ? helper_finish(helper) : -1;
}

/* Makes PAYLOADS with the helper. STATUS_UNSUPPORTED if the helper failed. */
static enum status make_by_helper(struct worker *worker, const struct chunk_request *request, struct buffer *payloads,
                                  struct error *error)
{
    char request_path[SAMPLER_PATH_SIZE + 16], payloads_path[SAMPLER_PATH_SIZE + 16];
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    const char *recording = request->recordings[request->recording_count - 1];
    (void)snprintf(request_path, sizeof(request_path), "%s.request", recording);
    (void)snprintf(payloads_path, sizeof(payloads_path), "%s.payloads", recording);
    chunk_request_write(request, &text);
    enum status status = text.failed ? STATUS_NO_MEMORY : file_write(request_path, buffer_slice(&text), error);
    buffer_fini(&text);
    int exit_status = -1;
    if (status == STATUS_OK) exit_status = run_helper(worker, request_path, payloads_path);
    if (exit_status == 0 || exit_status == 1)
        status = file_read(payloads_path, payloads, error);
    else
        status = error_set(error, STATUS_UNSUPPORTED, 0, "%s did not do it (status %d)", worker->helper, exit_status);
    if (status == STATUS_OK && exit_status == 1) /* it would be rejected, and this is why */
        status = error_set(error, STATUS_MALFORMED, 0, "%.*s", (int)payloads->size, (const char *)payloads->data);
    (void)unlink(request_path);
    (void)unlink(payloads_path);
    return status;
}

/* Makes PAYLOADS, which is empty. Its content has no meaning after a failure. */
static enum status make_payloads(struct worker *worker, const struct chunk_request *request, struct buffer *payloads,
                                 struct error *error)
{
    enum status status = STATUS_UNSUPPORTED;
    buffer_init(payloads, CHUNK_PAYLOADS_BYTES_MAX);
    worker->is_interrupted = own_threads_shall_leave();
    if (worker->is_interrupted) return status;
    if (worker->has_helper && !filter_is_there()) {
        status = make_by_helper(worker, request, payloads, error);
        worker->is_interrupted = status == STATUS_UNSUPPORTED && own_threads_shall_leave();
        if (worker->is_interrupted) return status;
        worker->helper_failures = status == STATUS_UNSUPPORTED ? worker->helper_failures + 1 : 0;
        worker->has_helper = worker->helper_failures < HELPER_FAILURES_MAX;
        if (status == STATUS_UNSUPPORTED && !has_missed_end())
            sdk_say("%s: functions have the names of symbol tables only%s", error->message,
                    worker->has_helper ? " this time" : " from here on");
    }
    if (status == STATUS_UNSUPPORTED && !has_missed_end()) {
        status = deliver_recordings(request, symbol_names_add, deliver_append_line, payloads, error);
        worker->is_late = true;
    }
    return status;
}

static struct chunk_request request_of(const struct chunk_measurement *measurements, size_t count)
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
        .measurements = measurements,
        .measurement_count = count,
    };
}

/* Deletes the recordings before it hands on the first payload: a process that is killed in between loses a chunk, but
 * does not send it twice. If nothing could be handed on, they stay for the next launch. */
static bool send_chunks(struct worker *worker, const struct chunk_request *request)
{
    struct error error = {0};
    struct buffer payloads;
    enum status status = make_payloads(worker, request, &payloads, &error);
    bool is_taken = !worker->is_interrupted && !has_missed_end();
    for (size_t i = 0; is_taken && i < request->recording_count; i++) (void)unlink(request->recordings[i]);
    if (is_taken && status != STATUS_OK) {
        discard_profile(worker, status, error.message);
    } else if (is_taken) {
        for (struct slice rest = buffer_slice(&payloads); rest.size > 0;) send_chunk(next_line(&rest));
    }
    buffer_fini(&payloads);
    return is_taken;
}

/* --- V1: profiles of transactions --------------------------------------------------------------------------------- */

static void forget_recordings(struct worker *worker, size_t count)
{
    if (!INVARIANT(count <= worker->recording_count)) return;
    for (size_t i = 0; i < count; i++) (void)unlink(worker->recordings[i].path);
    worker->recording_count -= count;
    memmove(worker->recordings, worker->recordings + count, worker->recording_count * sizeof(*worker->recordings));
}

static void send_transaction(struct worker *worker, struct trace_transaction *transaction)
{
    struct trace_facts facts = trace_transaction_facts(transaction);
    struct chunk_request request = request_of(NULL, 0);
    struct error error = {0};
    struct buffer payloads = {0};
    char profile_id[UUID_TEXT_SIZE] = "", thread_id[24];
    uint64_t end_max_ns = facts.start_ns + V1_SECONDS_MAX * SECOND_NS;
    (void)error_set(&error, STATUS_OK, 0, "%s: no recording", reject_reason_name(REJECT_NOT_ENOUGH_SAMPLES));
    (void)snprintf(thread_id, sizeof(thread_id), "%ld", (long)facts.thread);
    (void)uuid_new(profile_id);
    for (size_t i = 0; i < worker->recording_count && INVARIANT(i < CHUNK_RECORDINGS_MAX); i++) {
        request.recordings[request.recording_count++] = worker->recordings[i].path;
    }
    request.transaction = (struct chunk_transaction){
        .event_id = facts.event_id,
        .profile_id = profile_id,
        .name = facts.name,
        .trace_id = facts.trace_id,
        .thread_id = thread_id,
        .start_ns = facts.start_ns,
        .end_ns = facts.end_ns < end_max_ns ? facts.end_ns : end_max_ns,
    };
    enum status status = STATUS_MALFORMED;
    worker->is_interrupted = false;
    if (request.recording_count > 0) status = make_payloads(worker, &request, &payloads, &error);
    if (worker->is_interrupted && profiler_give_back(transaction)) {
        buffer_fini(&payloads);
        return;
    }
    if (status != STATUS_OK) {
        discard_profile(worker, status, error.message);
        buffer_clear(&payloads);
    }
    struct slice rest = buffer_slice(&payloads);
    spans_send(transaction, next_line(&rest));
    buffer_fini(&payloads);
}

/* --- Recordings, one by one --------------------------------------------------------------------------------------- */

/* Reports and counts profiles that could not be recorded. */
static void report_lost(struct worker *worker)
{
    uint64_t lost = sampler_lost_recordings() - worker->lost_count;
    if (lost == 0) return;
    if (folder_has_become_anothers(worker->folder))
        sdk_debug("recordings are lost: this process has no access to %s any more", worker->folder);
    else if (!worker->has_reported_lost)
        sdk_say("recordings are lost: %s cannot be written (is the disk full?), or they come faster than they are sent",
                worker->folder);
    worker->has_reported_lost = true;
    worker->lost_count += lost;
    if (!worker->is_v1) sender_discard(DISCARD_INTERNAL_SDK_ERROR, profile_category(worker), lost);
}

static void move_if_folder_is_lost(struct worker *worker);

/* Sends the oldest recording that waits, or keeps it for V1. False if no recording waits. */
static bool take_recording(struct worker *worker)
{
    (void)collect_recordings(worker);
    move_if_folder_is_lost(worker);
    report_lost(worker);
    if (worker->waiting_count == 0) return false;
    struct recording recording = worker->waiting[0];
    worker->is_interrupted = false;
    if (worker->is_v1) {
        if (worker->recording_count == CHUNK_RECORDINGS_MAX) forget_recordings(worker, 1);
        worker->recordings[worker->recording_count++] = recording;
    } else {
        struct chunk_request request = request_of(recording.measurements, recording.measurement_count);
        request.recordings[request.recording_count++] = recording.path;
        (void)send_chunks(worker, &request);
    }
    if (worker->is_interrupted) return true; /* it still waits */
    worker->waiting_count--;
    memmove(worker->waiting, worker->waiting + 1, worker->waiting_count * sizeof(*worker->waiting));
    free(recording.measurements);
    return true;
}

/* Sends the transactions that are completely recorded, after taking the recordings that they wait for. */
static void send_transactions(struct worker *worker)
{
    for (size_t i = 0; i < PROFILER_TRANSACTIONS_MAX; i++) {
        while (!own_threads_shall_leave() && take_recording(worker)) continue;
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

/* --- Processes that were killed ----------------------------------------------------------------------------------- */

static bool send_orphan(void *context, const struct chunk_request *request)
{
    sdk_debug("sending what a killed process has recorded: %s", request->recordings[0]);
    return send_chunks(context, request);
}

static void begin_session(struct worker *worker)
{
    struct chunk_request request = request_of(NULL, 0);
    char folder[PATH_MAX];
    memcpy(folder, worker->folder, sizeof(folder));
    /* Recordings for transactions of V1 are of no use without them. */
    worker->has_folder = session_begin(&session, folder, worker->is_v1 ? NULL : &request);
    if (!worker->has_folder) return;
    memcpy(worker->folder, session.folder, sizeof(worker->folder));
    worker->has_session = true;
    orphans_take(folder, &session, send_orphan, worker);
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

/* Continues the recording in another folder if the program has changed its user, its rights or its root. The next
 * launch sends the recordings made until then. Under another root there is no recording, because the helper and the
 * program's files cannot be found there. */
static void move_if_folder_is_lost(struct worker *worker)
{
    struct stat root;
    bool is_needed = worker->waiting_count > 0 || sampler_lost_recordings() != worker->lost_count;
    if (!worker->has_folder || !is_needed) return;
    worker->has_other_root =
        stat("/", &root) == 0 && (root.st_dev != worker->root.st_dev || root.st_ino != worker->root.st_ino);
    if (!worker->has_other_root && !folder_has_become_anothers(worker->folder)) return;
    sdk_debug("this process has no access to %s any more: the next launch sends what is there", worker->folder);
    if (worker->profiler_id[0]) sampler_stop();
    (void)collect_recordings(worker);
    for (size_t i = 0; i < worker->waiting_count; i++) free(worker->waiting[i].measurements);
    worker->waiting_count = worker->recording_count = 0;
    worker->lost_count = sampler_lost_recordings();
    worker->profiler_id[0] = '\0';
    worker->has_session = false;
    session_forget(&session);
    worker->has_folder = may_move(worker) && folder_of_recordings(sdk_settings(), worker->folder);
    if (worker->has_folder) begin_session(worker);
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

static void prepare_worker(struct worker *worker)
{
    const struct offbeat_options *options = sdk_options();
    *worker = (struct worker){.is_v1 = profiler_has_v1(), .lost_count = sampler_lost_recordings()};
    worker->has_helper = helper_find(options->helper, worker->helper);
    if (!worker->has_helper && options->symbols == OFFBEAT_SYMBOLS_LOCAL)
        sdk_debug("offbeat-helper was not found: functions have the names of symbol tables only");
    (void)stat("/", &worker->root);
    worker->began_ns = clock_monotonic_ns();
    worker->has_folder = folder_of_recordings(sdk_settings(), worker->folder);
    if (worker->has_folder) begin_session(worker);
}

/* True if the worker has sent everything and shall end. Another worker does what the program wants after that. */
static bool is_over(const struct worker *worker)
{
    bool has_sent = worker->waiting_count == 0 || !atomic_load(&library.is_on);
    return worker->profiler_id[0] == '\0' && has_sent && profiler_is_ending();
}

static bool end_if_over(struct worker *worker)
{
    bool is_on = atomic_load(&library.is_on);
    if (!is_over(worker)) return false;
    for (size_t i = 0; i < worker->waiting_count; i++) free(worker->waiting[i].measurements);
    forget_recordings(worker, worker->recording_count);
    if (is_on)
        session_end(&session);
    else
        session_forget(&session);
    HOLD_LOCK(LOCK_PROFILER);
    exists = false;
    profiler_changed();
    return true;
}

/* Ends the current recording, and waits until it has ended. */
static void cut_recording(struct worker *worker)
{
    uint32_t news = sampler_news();
    uint64_t deadline_ns = clock_monotonic_ns() + SECOND_NS;
    (void)collect_recordings(worker);
    if (worker->profiler_id[0] == '\0') return;
    sampler_cut();
    while (!own_threads_shall_leave() && collect_recordings(worker) == 0 && clock_monotonic_ns() < deadline_ns) {
        sampler_wait(news, deadline_ns);
        news = sampler_news();
    }
}

/* Sends the samples taken so far, if a flush was requested: at most as many recordings as there is room for, because
 * they may come faster than they are sent on a busy machine. */
static void flush_if_requested(struct worker *worker)
{
    if (!profiler_take_flush()) return;
    cut_recording(worker);
    for (size_t i = 0; i < SAMPLER_FINISHED_MAX && take_recording(worker); i++) continue;
    if (worker->is_v1) send_transactions(worker);
    profiler_flushed(!own_threads_shall_leave());
}

static bool leave_if_wanted(struct worker *worker)
{
    HOLD_LOCK(LOCK_PROFILER);
    bool leaves = own_threads_shall_leave();
    if (leaves) left = worker;
    profiler_changed();
    return leaves;
}

static void *work(void *context)
{
    struct worker *worker = context ? context : malloc(sizeof(*worker));
    own_threads_begin("offbeat-chunks");
    own_threads_take_descriptors();
    if (worker && !context) prepare_worker(worker);
    while (worker && !end_if_over(worker)) {
        if (leave_if_wanted(worker)) {
            own_threads_end_one();
            return NULL;
        }
        uint32_t news = sampler_news();
        session_keep(&session);
        follow_requests(worker);
        worker->is_late = false;
        bool is_busy = take_recording(worker);
        if (worker->is_v1) send_transactions(worker);
        flush_if_requested(worker);
        bool is_limited = follow_limits(worker);
        if (worker->is_v1 && profiler_has_transactions()) sampler_cut();
        uint64_t seconds = is_limited ? POLL_SECONDS : 3600;
        /* A sampler that ended before it was stopped sends no news, so nothing would wake a worker that is over. */
        if (!is_busy && !is_over(worker)) sampler_wait(news, clock_monotonic_ns() + seconds * SECOND_NS);
    }
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

bool worker_come_back(void)
{
    if (!lock_check_held(LOCK_PROFILER)) return false;
    if (!left) return true;
    struct worker *worker = left;
    left = NULL;
    if (thread_start(work, worker)) return true;
    left = worker;
    return false;
}

void worker_forget(void)
{
    session_forget(&session);
    session = (struct session){0};
    exists = false;
    left = NULL;
}

void worker_wake(void)
{
    if (!lock_check_held(LOCK_PROFILER)) return;
    (void)at_exit_prepare();
    if (!exists) {
        exists = thread_start(work, NULL);
        if (!exists) sdk_say("no thread can be made: nothing is profiled");
    }
    sampler_wake();
}
