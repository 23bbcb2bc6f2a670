/* The library as a whole: init, shutdown, forks, and what the program asks of the profiler.  SPDX-License-Identifier:
 * MIT */
#include "sampler/sampler.h"
#include "sdk/sdk_private.h"
#include "transport/dsn.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((uint64_t)1000000000)

enum {
    REBIRTH_AFTER_SECONDS = 1,
    LATE_WORKER_SECONDS = 1,
    LINE_SIZE = 1024,
    ENVELOPES_WAITING_MAX = 1000 /* each transaction is one */
};

struct sdk sdk = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .measurements.lock = PTHREAD_MUTEX_INITIALIZER,
    .tracer_lock = PTHREAD_RWLOCK_INITIALIZER,
    .calling_lock = PTHREAD_RWLOCK_INITIALIZER,
};

/* --- Small things ------------------------------------------------------------------------------------------------- */

void sdk_lock(void)
{
    (void)pthread_mutex_lock(&sdk.lock);
}

void sdk_unlock(void)
{
    (void)pthread_mutex_unlock(&sdk.lock);
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t sdk_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t sdk_utc_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

double sdk_random(void)
{
    uint64_t bits = sdk_monotonic_ns() * 0x9E3779B97F4A7C15u; /* if the system has nothing better yet */
    (void)getrandom(&bits, sizeof(bits), GRND_NONBLOCK);
    return (double)(bits >> 11) * 0x1p-53;
}

bool sdk_begin_call(void)
{
    (void)pthread_rwlock_rdlock(&sdk.calling_lock);
    if (atomic_load(&sdk.may_call)) return true;
    (void)pthread_rwlock_unlock(&sdk.calling_lock);
    return false;
}

void sdk_end_call(void)
{
    (void)pthread_rwlock_unlock(&sdk.calling_lock);
}

/* Waits for calls that go on. */
static void end_calls(void)
{
    atomic_store(&sdk.may_call, false); /* first, so that no new ones keep us waiting */
    (void)pthread_rwlock_wrlock(&sdk.calling_lock);
    (void)pthread_rwlock_unlock(&sdk.calling_lock);
}

static void say_line(const struct offbeat_options *options, const char *line)
{
    if (options->log)
        options->log(options->log_data, line);
    else
        (void)dprintf(STDERR_FILENO, "offbeat: %s\n", line);
}

static void say(const char *format, va_list arguments)
{
    char line[LINE_SIZE];
    int kept_errno = errno;
    (void)vsnprintf(line, sizeof(line), format, arguments);
    if (sdk_begin_call()) {
        say_line(&sdk.settings.options, line);
        sdk_end_call();
    }
    errno = kept_errno;
}

void sdk_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void sdk_debug(const char *format, ...)
{
    va_list arguments;
    if (!sdk.settings.options.debug) return;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

/* --- The profiler ------------------------------------------------------------------------------------------------- */

/* Spans that start from now on are linked to the profiler of this id; NULL: to none. Under LOCK. */
static void link_spans(const char *profiler_id)
{
    if (sdk.tracer) tracer_set_profiler(sdk.tracer, profiler_id);
}

static void want_profiler(void)
{
    if (!uuid_new(sdk.wanted.profiler_id)) {
        sdk_say("the system gives no random numbers: no profile");
        return;
    }
    measurements_want(&sdk.measurements, true);
    /* Profiles of V1 go with their transactions: no chunk will have this id. */
    if (!sdk.lifecycle.options.has_v1) link_spans(sdk.wanted.profiler_id);
    worker_wake();
}

static void want_nothing(void)
{
    sdk.wanted.profiler_id[0] = '\0';
    measurements_want(&sdk.measurements, false);
    link_spans(NULL);
    worker_wake();
}

void sdk_follow(struct lifecycle_step step)
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

/* One thing that the program tells the lifecycle, if the library is on. */
static void tell(struct lifecycle_step (*event)(struct lifecycle *lifecycle))
{
    int kept_errno = errno;
    sdk_lock();
    if (sdk.is_on) sdk_follow(event(&sdk.lifecycle));
    sdk_unlock();
    errno = kept_errno;
}

static struct lifecycle_step foreground(struct lifecycle *lifecycle)
{
    return lifecycle_foreground(lifecycle, sdk_random());
}

void offbeat_start_profiler(void)
{
    tell(lifecycle_start_profiler);
}

void offbeat_stop_profiler(void)
{
    tell(lifecycle_stop_profiler);
}

void offbeat_background(void)
{
    tell(lifecycle_background);
}

void offbeat_foreground(void)
{
    tell(foreground);
}

bool offbeat_profiler_id(char ret_id[OFFBEAT_ID_SIZE])
{
    sdk_lock();
    memcpy(ret_id, sdk.wanted.profiler_id, OFFBEAT_ID_SIZE);
    sdk_unlock();
    return ret_id[0] != '\0';
}

/* --- Measurements ------------------------------------------------------------------------------------------------- */

void offbeat_measure(const char *name, const char *unit, double value)
{
    int kept_errno = errno;
    measurements_add(&sdk.measurements, name, unit, sdk_utc_ns(), value);
    errno = kept_errno;
}

/* As viewers draw them (FMT-7), with the thresholds that other clients have (facts §3). */
void offbeat_frame_rendered(uint64_t duration_ns)
{
    static const uint64_t frozen_ns = 700 * SECOND_NS / 1000;
    double rate = sdk.settings.options.frame_rate_hz;
    uint64_t slow_ns = rate > 0 ? (uint64_t)(1.1 * (double)SECOND_NS / rate) : UINT64_MAX;
    if (duration_ns > frozen_ns)
        offbeat_measure("frozen_frame_renders", "nanosecond", (double)duration_ns);
    else if (duration_ns > slow_ns)
        offbeat_measure("slow_frame_renders", "nanosecond", (double)duration_ns);
}

/* --- Sending ------------------------------------------------------------------------------------------------------ */

static void transport_says(void *context, const char *message)
{
    sdk_debug("%s", message);
}

/* A limit may have begun. */
static void transport_answered(void *context, const struct transport_answer *answer)
{
    if (answer->status == 429 || answer->rate_limits[0] || answer->retry_after[0]) sampler_wake();
}

static void transport_started(void *context)
{
    (void)sampler_leave_out();
}

struct transport *sdk_transport(void)
{
    struct error error;
    if (sdk.transport || !sdk.is_on) return sdk.transport;
    const struct offbeat_options *options = &sdk.settings.options;
    const char *spool =
        options->spool_directory && options->spool_directory[0] == '/' ? options->spool_directory : NULL;
    struct transport_options transport = {
        .dsn = options->dsn,
        .client = "offbeat/" OFFBEAT_VERSION,
        .spool_folder = spool,
        .spool_bytes_max = options->spool_bytes_max,
        .spool_count_max = ENVELOPES_WAITING_MAX,
        .queue_count_max = ENVELOPES_WAITING_MAX,
        .proxy = options->proxy,
        .ca_file = options->ca_file,
        .debug = transport_says,
        .answered = transport_answered,
        .started = transport_started,
    };
    sdk.transport = transport_start(&transport, &error);
    if (!sdk.transport) sdk_say("nothing can be sent: %s", error.message);
    return sdk.transport;
}

bool sdk_may_send(const char *type, enum category category, struct slice payload)
{
    const struct offbeat_options *options = &sdk.settings.options;
    if (!options->before_send) return true;
    struct buffer text = {.maximum = payload.size + 1};
    buffer_append(&text, payload.data, payload.size);
    buffer_append_byte(&text, 0);
    bool may = !text.failed && sdk_begin_call();
    if (may) {
        may = options->before_send(options->before_send_data, type, (const char *)text.data, payload.size);
        sdk_end_call();
    }
    buffer_fini(&text);
    if (!may) sdk_discard(DISCARD_BEFORE_SEND, category, 1);
    return may;
}

void sdk_send(struct buffer *envelope)
{
    sdk_lock();
    struct transport *transport = sdk_transport();
    if (transport && !envelope->failed) (void)transport_send(transport, envelope);
    sdk_unlock();
}

void sdk_discard(enum discard_reason reason, enum category category, uint64_t quantity)
{
    sdk_lock();
    struct transport *transport = sdk_transport();
    if (transport) transport_discard(transport, reason, category, quantity);
    sdk_unlock();
}

struct offbeat_item_counts offbeat_counts(void)
{
    sdk_lock();
    struct transport_counts counts = sdk.transport ? transport_counts(sdk.transport) : sdk.counts;
    sdk_unlock();
    return (struct offbeat_item_counts){
        .made = counts.made, .sent = counts.sent, .limited = counts.limited, .discarded = counts.discarded};
}

/* --- Threads and locks -------------------------------------------------------------------------------------------- */

bool thread_start(void *(*run)(void *context), void *context)
{
    enum { STACK_BYTES = 256 << 10 };
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, mask;
    if (pthread_attr_init(&attributes) != 0) return false;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
    bool is_started = pthread_create(&thread, &attributes, run, context) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    (void)pthread_attr_destroy(&attributes);
    return is_started;
}

static void prepare_locks(void)
{
    pthread_condattr_t attributes;
    (void)pthread_mutex_init(&sdk.lock, NULL); /* on Linux these cannot fail */
    (void)pthread_mutex_init(&sdk.measurements.lock, NULL);
    (void)pthread_rwlock_init(&sdk.tracer_lock, NULL);
    (void)pthread_rwlock_init(&sdk.calling_lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&sdk.changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

static void set_tracer(struct tracer *tracer)
{
    (void)pthread_rwlock_wrlock(&sdk.tracer_lock);
    sdk_lock();
    struct tracer *before = sdk.tracer;
    sdk.tracer = tracer;
    sdk_unlock();
    (void)pthread_rwlock_unlock(&sdk.tracer_lock);
    tracer_free(before);
}

/* What lies there from an earlier launch is sent, though nothing new may come. */
static void send_what_was_left(void)
{
    char folder[PATH_MAX];
    if (folder_of_leftovers(&sdk.settings, folder) && leftovers_exist(folder)) worker_wake();
    const char *spool = sdk.settings.options.spool_directory;
    if (spool && spool[0] == '/' && access(spool, R_OK | X_OK) == 0) (void)sdk_transport();
}

static void begin(bool starts_profiler)
{
    struct lifecycle_options lifecycle = settings_lifecycle(&sdk.settings);
    const char *warning;
    for (size_t i = 0; (warning = lifecycle_warning(&lifecycle, i)); i++) sdk_say("%s", warning);
    enum lifecycle_kept kept = LIFECYCLE_KEPT_NOTHING;
    if (lifecycle.starts_on_app_start) kept = folder_read_decision(&sdk.settings);
    set_tracer(spans_tracer_new(&sdk.settings));
    sdk_lock();
    sdk.is_on = true;
    sdk.counts = (struct transport_counts){0};
    sdk_follow(lifecycle_init(&sdk.lifecycle, &lifecycle, kept, sdk_random(), sdk_random()));
    if (starts_profiler && sdk.lifecycle.profiler == LIFECYCLE_IDLE) {
        sdk_follow(lifecycle_start_profiler(&sdk.lifecycle));
    }
    enum lifecycle_kept for_next_launch = sdk.lifecycle.for_next_launch;
    send_what_was_left();
    sdk_unlock();
    folder_keep_decision(&sdk.settings, for_next_launch);
}

/* Waits for CHANGED until DEADLINE_NS. Under LOCK. False once that is over. */
static bool wait_until(uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / SECOND_NS),
                                .tv_nsec = (long)(deadline_ns % SECOND_NS)};
    return pthread_cond_timedwait(&sdk.changed, &sdk.lock, &deadline) == 0;
}

static bool flush_worker(uint64_t deadline_ns)
{
    uint64_t before = sdk.flushes;
    if (!sdk.has_worker) return true;
    sdk.wanted.is_flushing = true;
    worker_wake();
    while (sdk.has_worker && sdk.flushes == before) {
        if (!wait_until(deadline_ns)) return false;
    }
    return true;
}

/* Init, flush and shutdown, one at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

bool offbeat_flush(uint32_t timeout_ms)
{
    int kept_errno = errno;
    uint64_t deadline_ns = sdk_monotonic_ns() + timeout_ms * (SECOND_NS / 1000);
    (void)pthread_mutex_lock(&turn);
    sdk_lock();
    bool is_done = flush_worker(deadline_ns);
    struct transport *transport = sdk.transport;
    sdk_unlock();
    uint64_t now_ns = sdk_monotonic_ns();
    if (transport && !transport_flush(transport, deadline_ns > now_ns ? deadline_ns - now_ns : 0)) is_done = false;
    (void)pthread_mutex_unlock(&turn);
    errno = kept_errno;
    return is_done;
}

/* The worker ends by itself once it has given over all that there is; after the end, soon. Under LOCK. */
static bool end_worker(uint64_t deadline_ns)
{
    sdk.wanted.is_ending = true;
    if (sdk.has_worker) worker_wake();
    while (sdk.has_worker) {
        if (!wait_until(deadline_ns)) return false;
    }
    return true;
}

static void end(void)
{
    uint64_t deadline_ns = sdk_monotonic_ns() + sdk.settings.options.shutdown_timeout_ms * (SECOND_NS / 1000);
    set_tracer(NULL);
    sdk_lock();
    sdk_follow(lifecycle_close(&sdk.lifecycle));
    bool has_ended = end_worker(deadline_ns);
    sdk.is_on = false;
    if (!has_ended) worker_wake();
    struct transport *transport = sdk.transport;
    if (transport) sdk.counts = transport_counts(transport);
    struct transport_counts counts = sdk.counts;
    sdk.transport = NULL;
    sdk_unlock();
    if (!has_ended) sdk_debug("the last chunk was not ready within %u ms", sdk.settings.options.shutdown_timeout_ms);
    uint64_t now_ns = sdk_monotonic_ns();
    (void)transport_stop(transport, deadline_ns > now_ns ? deadline_ns - now_ns : 0, &counts);
    sdk_lock();
    sdk.counts = counts;
    sdk_unlock();
    end_calls();
    sampler_forget_left_out();
    folder_remove_temporary();
    /* A worker that is late still reads the settings: they are forgotten with the next init. */
}

void offbeat_shutdown(void)
{
    int kept_errno = errno;
    (void)pthread_mutex_lock(&turn);
    if (sdk.is_on) end();
    (void)pthread_mutex_unlock(&turn);
    errno = kept_errno;
}

/* --- Forks and the end of the process ----------------------------------------------------------------------------- */

/* What was begun is the parent's, and so is who holds the locks. The settings stay. */
static void forget_parent(void)
{
    struct tracer *tracer = sdk.tracer;
    struct settings settings = sdk.settings;
    session_forget(&sdk.session);
    memset(&sdk, 0, sizeof(sdk));
    sdk.settings = settings;
    (void)pthread_mutex_init(&turn, NULL);
    prepare_locks();
    tracer_free(tracer);
}

static void *begin_again(void *context)
{
    bool starts_profiler = context != NULL;
    struct timespec moment = {.tv_sec = REBIRTH_AFTER_SECONDS};
    while (nanosleep(&moment, &moment) != 0) continue;
    (void)pthread_mutex_lock(&turn);
    atomic_store(&sdk.may_call, true);
    if (!sdk.is_on) begin(starts_profiler);
    (void)pthread_mutex_unlock(&turn);
    return NULL;
}

/* Not at once: most children call exec or end before the second is over, and shall cost no more than this thread. */
static void after_fork_in_child(void)
{
    int kept_errno = errno;
    static char yes;
    bool was_on = sdk.is_on, was_running = sdk.wanted.profiler_id[0] != '\0';
    sampler_after_fork_in_child();
    forget_parent();
    if (was_on) (void)thread_start(begin_again, was_running ? &yes : NULL);
    errno = kept_errno;
}

/* Registered anew when libcurl has been loaded: what ends it must not run before this. */
static void shutdown_before_libraries(void)
{
    (void)atexit(offbeat_shutdown);
}

static void prepare(void)
{
    prepare_locks();
    (void)pthread_atfork(NULL, NULL, after_fork_in_child);
    transport_when_loaded(shutdown_before_libraries);
}

__attribute__((destructor)) static void shutdown_at_the_end(void)
{
    offbeat_shutdown();
}

static bool begin_with(const struct offbeat_options *options, bool starts_profiler)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct error error;
    struct dsn dsn;
    struct settings settings;
    (void)pthread_once(&once, prepare);
    if (sdk.is_on) end();
    enum status status = settings_resolve(options, &settings, &error);
    sdk_lock();
    bool has_ended = end_worker(sdk_monotonic_ns() + LATE_WORKER_SECONDS * SECOND_NS);
    sdk_unlock();
    if (!has_ended) {
        say_line(&settings.options, "the last chunk is still being made: not begun anew");
        settings_fini(&settings);
        return false;
    }
    settings_fini(&sdk.settings);
    sdk.settings = settings;
    sdk.wanted.is_ending = false;
    atomic_store(&sdk.may_call, true);
    const char *address = sdk.settings.options.dsn;
    if (status == STATUS_OK && (!address || !*address)) {
        sdk_debug("no DSN: nothing is profiled");
        return false;
    }
    if (status == STATUS_OK) status = dsn_parse(address, &dsn, &error);
    if (status != STATUS_OK) {
        sdk_say("%s; nothing is profiled", error.message);
        return false;
    }
    begin(starts_profiler);
    return true;
}

bool offbeat_init(const struct offbeat_options *options)
{
    int kept_errno = errno;
    (void)pthread_mutex_lock(&turn);
    bool is_on = begin_with(options, false);
    (void)pthread_mutex_unlock(&turn);
    errno = kept_errno;
    return is_on;
}

/* A program that knows nothing of the library is profiled from its start on, unless variables say when. */
void sdk_init_preloaded(void)
{
    bool says_when = getenv("OFFBEAT_PROFILE_SESSION_SAMPLE_RATE") || getenv("OFFBEAT_PROFILES_SAMPLE_RATE");
    struct offbeat_options options = {.size = sizeof(options), .profile_session_sample_rate = says_when ? 0 : 1};
    (void)pthread_mutex_lock(&turn);
    (void)begin_with(&options, true);
    (void)pthread_mutex_unlock(&turn);
}
