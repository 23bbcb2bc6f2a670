/* The library as a whole: init, shutdown, forks, and what the program asks of the profiler.  SPDX-License-Identifier:
 * MIT */
#include "base/environment.h"
#include "base/kernel.h"
#include "base/thread_refusal.h"
#include "sampler/sampler.h"
#include "sdk/sdk_private.h"
#include "transport/dsn.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
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
    ENVELOPES_WAITING_MAX = 1000 /* each transaction is one */
};
#define CALLS_AT_EXIT_NS (SECOND_NS / 10) /* for calls that are running; that of the thread that exits never ends */

#define SDK_AT_FIRST                                                                                                   \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER,                                        \
        .measurements.lock = PTHREAD_MUTEX_INITIALIZER, .calling_lock = PTHREAD_RWLOCK_INITIALIZER                     \
    }
struct sdk sdk = SDK_AT_FIRST;

/* Init and shutdown, one at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *begin_again(void *context);

/* The thread that begins again in a forked child. */
static struct {
    bool is_there;
    char *left; /* what the next one begins with; NULL: it has not stepped aside */
    _Atomic uint32_t woken;
} rebirth;

static char yes, no;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- Whose process this is ---------------------------------------------------------------------------------------- */

bool sdk_is_ours(void)
{
    return atomic_load_explicit(&sdk.process, memory_order_acquire) == process_number();
}

static void own_process(void)
{
    atomic_store(&sdk.pid, (pid_t)kernel_call3(SYS_getpid, 0, 0, 0)); /* libc's may be interposed */
    atomic_store_explicit(&sdk.process, process_number(), memory_order_release);
}

/* See other_libc.c. */
#pragma weak pthread_mutex_clocklock
#pragma weak pthread_rwlock_clockwrlock
#pragma weak pthread_cond_clockwait

bool sdk_take_turn(uint64_t deadline_ns)
{
    const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / SECOND_NS),
                                      .tv_nsec = (long)(deadline_ns % SECOND_NS)};
    return pthread_mutex_clocklock(&turn, CLOCK_MONOTONIC, &deadline) == 0;
}

void sdk_give_turn(void)
{
    (void)pthread_mutex_unlock(&turn);
}

/* --- Small things ------------------------------------------------------------------------------------------------- */

/* Initial-exec: see trace/thread.c. */
static __thread bool holds_lock __attribute__((tls_model("initial-exec")));

void sdk_lock(void)
{
    (void)pthread_mutex_lock(&sdk.lock);
    holds_lock = true;
}

static void say_line(const char *line);

/* What was said under the lock is reported now: the program's log may wait for its own lock, whose owner waits for
 * ours. */
__attribute__((noinline)) static void unlock_and_say(void)
{
    char lines[SDK_LINES_WAITING_MAX][SDK_LINE_SIZE];
    size_t count = sdk.line_count;
    memcpy(lines, sdk.lines, count * sizeof(*lines));
    sdk.line_count = 0;
    holds_lock = false;
    (void)pthread_mutex_unlock(&sdk.lock);
    for (size_t i = 0; i < count; i++) say_line(lines[i]);
}

void sdk_unlock(void)
{
    if (sdk.line_count > 0) {
        unlock_and_say();
        return;
    }
    holds_lock = false;
    (void)pthread_mutex_unlock(&sdk.lock);
}

bool sdk_holds_lock(void)
{
    return holds_lock;
}

const struct settings *sdk_settings(void)
{
    return atomic_load(&sdk.settings);
}

const struct offbeat_options *sdk_options(void)
{
    static const struct offbeat_options none;
    const struct settings *settings = sdk_settings();
    return settings ? &settings->options : &none;
}

static struct timespec timespec_of(uint64_t time_ns)
{
    if (time_ns > INT64_MAX) time_ns = INT64_MAX;
    return (struct timespec){.tv_sec = (time_t)(time_ns / SECOND_NS), .tv_nsec = (long)(time_ns % SECOND_NS)};
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
    uint64_t bits;
    if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits)) {
        bits = sdk_monotonic_ns() * 0x9E3779B97F4A7C15u; /* the system has nothing better yet */
    }
    return (double)(bits >> 11) * 0x1p-53;
}

/* Looks first, so that calls that are refused keep nobody waiting. */
bool sdk_begin_call(void)
{
    if (!atomic_load(&sdk.may_call) || pthread_rwlock_rdlock(&sdk.calling_lock) != 0) return false;
    if (atomic_load(&sdk.may_call)) return true;
    (void)pthread_rwlock_unlock(&sdk.calling_lock);
    return false;
}

void sdk_end_call(void)
{
    (void)pthread_rwlock_unlock(&sdk.calling_lock);
}

/* Waits for running calls, until DEADLINE_NS. */
static void end_calls(uint64_t deadline_ns)
{
    const struct timespec deadline = timespec_of(deadline_ns);
    atomic_store(&sdk.may_call, false); /* first, so that no new ones keep us waiting */
    if (pthread_rwlock_clockwrlock(&sdk.calling_lock, CLOCK_MONOTONIC, &deadline) != 0) return;
    (void)pthread_rwlock_unlock(&sdk.calling_lock);
}

/* A standard error that is a closed pipe, or a file at its largest, must not end the program. */
static void write_line(const char *line)
{
    char text[SDK_LINE_SIZE + 16];
    const struct timespec no_time = {0};
    sigset_t ours, before, pending;
    int length = snprintf(text, sizeof(text), "offbeat: %s\n", line);
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGPIPE);
    (void)sigaddset(&ours, SIGXFSZ);
    (void)sigaddset(&ours, SIGTTOU);
    (void)pthread_sigmask(SIG_BLOCK, &ours, &before);
    (void)sigpending(&pending);
    long written = kernel_write(STDERR_FILENO, text, (size_t)length);
    int raised = written == -EPIPE ? SIGPIPE : written == -EFBIG ? SIGXFSZ : 0;
    if (raised && !sigismember(&pending, raised)) {
        (void)sigemptyset(&ours);
        (void)sigaddset(&ours, raised);
        while (sigtimedwait(&ours, NULL, &no_time) < 0 && errno == EINTR) continue;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Texts of the program and of servers may be in it: one line, and nothing that commands a terminal. */
static void write_plainly(const struct offbeat_options *options, const char *line)
{
    char plain[SDK_LINE_SIZE];
    size_t size = 0;
    for (; line[size] && size < sizeof(plain) - 1; size++) {
        unsigned char byte = (unsigned char)line[size];
        plain[size] = byte < ' ' || byte == 0x7F ? '?' : (char)byte;
    }
    plain[size] = '\0';
    if (options->log)
        options->log(options->log_data, plain);
    else
        write_line(plain);
}

static void say_line(const char *line)
{
    int kept_errno = errno;
    if (sdk_begin_call()) {
        write_plainly(sdk_options(), line);
        sdk_end_call();
    }
    errno = kept_errno;
}

static void say(const char *format, va_list arguments)
{
    char line[SDK_LINE_SIZE];
    int kept_errno = errno;
    (void)vsnprintf(line, sizeof(line), format, arguments);
    if (!holds_lock)
        say_line(line);
    else if (sdk.line_count < SDK_LINES_WAITING_MAX)
        memcpy(sdk.lines[sdk.line_count++], line, sizeof(line));
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
    if (!atomic_load(&sdk.is_debug)) return;
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
    atomic_store(&sdk.is_running, true);
    measurements_want(&sdk.measurements, true);
    /* Profiles of V1 go with their transactions: no chunk will have this id. */
    if (!sdk.lifecycle.options.has_v1) link_spans(sdk.wanted.profiler_id);
    worker_wake();
}

static void want_nothing(void)
{
    sdk.wanted.profiler_id[0] = '\0';
    atomic_store(&sdk.is_running, false);
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

/* One event of the lifecycle that the program causes, if the library is on. */
static void apply_event(struct lifecycle_step (*event)(struct lifecycle *lifecycle))
{
    int kept_errno = errno;
    if (!sdk_is_ours()) return;
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
    sdk_lock();
    memcpy(ret_id, sdk.wanted.profiler_id, OFFBEAT_ID_SIZE);
    sdk_unlock();
    errno = kept_errno;
    return ret_id[0] != '\0';
}

/* --- Measurements ------------------------------------------------------------------------------------------------- */

void offbeat_measure(const char *name, const char *unit, double value)
{
    int kept_errno = errno;
    if (!sdk_is_ours()) return;
    if (!isfinite(value)) sdk_debug("a measurement is no finite number: it is not kept");
    measurements_add(&sdk.measurements, name, unit, sdk_utc_ns(), value);
    errno = kept_errno;
}

/* As viewers draw them (FMT-7), with the thresholds that other clients have (facts §3). */
void offbeat_frame_rendered(uint64_t duration_ns)
{
    static const uint64_t frozen_ns = 700 * SECOND_NS / 1000;
    double rate = atomic_load(&sdk.frame_rate_hz);
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

static void transport_will_start(void *context)
{
    own_threads_expect();
}

static void transport_started(void *context)
{
    own_threads_begin("offbeat-send");
}

static void transport_ended(void *context)
{
    own_threads_end_one();
}

struct transport *sdk_transport(void)
{
    struct error error;
    if (!sdk.is_on) return NULL;
    if (sdk.transport) return sdk.transport;
    const struct offbeat_options *options = sdk_options();
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
        .will_start = transport_will_start,
        .started = transport_started,
        .ended = transport_ended,
    };
    (void)at_exit_prepare();
    sdk.transport = transport_start(&transport, &error);
    if (!sdk.transport) sdk_say("nothing can be sent: %s", error.message);
    return sdk.transport;
}

bool sdk_may_send(const char *type, enum category category, struct slice payload)
{
    const struct offbeat_options *options = sdk_options();
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

const char *offbeat_version(void)
{
    return OFFBEAT_VERSION;
}

struct offbeat_item_counts offbeat_counts(void)
{
    int kept_errno = errno;
    if (!sdk_is_ours()) return (struct offbeat_item_counts){0};
    sdk_lock();
    struct transport_counts counts = sdk.transport ? transport_counts(sdk.transport) : sdk.counts;
    sdk_unlock();
    errno = kept_errno;
    return (struct offbeat_item_counts){
        .made = counts.made, .sent = counts.sent, .limited = counts.limited, .discarded = counts.discarded};
}

/* --- Threads ----------------------------------------------------------------------------------------------------- */

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
    own_threads_expect();
    struct thread_refusal refusal = {0};
    int error;
    do error = pthread_create(&thread, &attributes, run, context);
    while (thread_refusal_may_end(&refusal, error));
    if (error != 0) own_threads_end_one();
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    (void)pthread_attr_destroy(&attributes);
    return error == 0;
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

/* Returns the one before, which is the caller's now. */
static struct tracer *set_tracer(struct tracer *tracer)
{
    sdk_lock();
    struct tracer *before = sdk.tracer;
    sdk.tracer = tracer;
    sdk_unlock();
    return before;
}

/* What is there from an earlier launch is sent, though nothing new may come. */
static void send_what_was_left(void)
{
    char folder[PATH_MAX];
    if (folder_of_orphans(sdk_settings(), folder) && orphans_exist(folder)) worker_wake();
    const char *spool = sdk_options()->spool_directory;
    if (spool && spool[0] == '/' && access(spool, R_OK | X_OK) == 0) (void)sdk_transport();
}

static void begin(bool starts_profiler)
{
    const struct settings *settings = sdk_settings();
    struct lifecycle_options lifecycle = settings_lifecycle(settings);
    const char *warning;
    for (size_t i = 0; (warning = lifecycle_warning(&lifecycle, i)); i++) sdk_say("%s", warning);
    enum lifecycle_kept kept = LIFECYCLE_KEPT_NOTHING;
    if (lifecycle.starts_on_app_start) {
        kept = folder_read_decision(settings);
        if (!folder_keeps_decisions(settings))
            sdk_say("start_profiler_on_app_start has no effect: spool_directory is no folder that keeps the decision");
    }
    tracer_free(set_tracer(spans_tracer_new(settings)));
    sdk_lock();
    sdk.is_on = true;
    atomic_store(&sdk.is_without_threads, false);
    sdk.counts = (struct transport_counts){0};
    sdk_follow(lifecycle_init(&sdk.lifecycle, &lifecycle, kept, sdk_random(), sdk_random()));
    if (starts_profiler && sdk.lifecycle.profiler == LIFECYCLE_IDLE) {
        sdk_follow(lifecycle_start_profiler(&sdk.lifecycle));
    }
    enum lifecycle_kept for_next_launch = sdk.lifecycle.for_next_launch;
    send_what_was_left();
    sdk_unlock();
    folder_keep_decision(settings, for_next_launch);
}

bool sdk_wait_until(uint64_t deadline_ns)
{
    const struct timespec deadline = timespec_of(deadline_ns);
    holds_lock = false;
    bool is_woken = pthread_cond_clockwait(&sdk.changed, &sdk.lock, CLOCK_MONOTONIC, &deadline) == 0;
    holds_lock = true;
    return is_woken;
}

static bool flush_worker(uint64_t deadline_ns)
{
    uint64_t before = sdk.flushes;
    if (!sdk.has_worker) return true;
    sdk.wanted.is_flushing = true;
    worker_wake();
    while (sdk.has_worker && sdk.is_on && sdk.flushes == before) {
        if (!sdk_wait_until(deadline_ns)) return false;
    }
    return true;
}

bool offbeat_flush(uint32_t timeout_ms)
{
    int kept_errno = errno;
    if (!sdk_is_ours()) return true;
    uint64_t deadline_ns = sdk_monotonic_ns() + timeout_ms * (SECOND_NS / 1000);
    sdk_lock();
    sdk.flusher_count++;
    bool is_done = flush_worker(deadline_ns);
    struct transport *transport = sdk.is_on ? sdk.transport : NULL;
    sdk_unlock();
    uint64_t now_ns = sdk_monotonic_ns();
    if (transport && !transport_flush(transport, deadline_ns > now_ns ? deadline_ns - now_ns : 0)) is_done = false;
    sdk_lock();
    sdk.flusher_count--;
    (void)pthread_cond_broadcast(&sdk.changed);
    sdk_unlock();
    errno = kept_errno;
    return is_done;
}

/* The worker ends automatically once it has given over all that there is; after the end, soon. Under LOCK. */
static bool end_worker(uint64_t deadline_ns)
{
    sdk.wanted.is_ending = true;
    if (sdk.has_worker) worker_wake();
    while (sdk.has_worker) {
        if (!sdk_wait_until(deadline_ns)) return false;
    }
    return true;
}

/* Takes from the library what is to be ended, and waits for the worker. */
static struct transport *take_transport(uint64_t deadline_ns)
{
    sdk_lock();
    sdk_follow(lifecycle_close(&sdk.lifecycle));
    bool has_ended = end_worker(deadline_ns);
    atomic_store(&sdk.is_on, false);
    (void)pthread_cond_broadcast(&sdk.changed); /* the one who flushes waits no longer */
    if (!has_ended) worker_wake();
    struct transport *transport = sdk.transport;
    if (transport) sdk.counts = transport_counts(transport);
    sdk.transport = NULL;
    sdk_unlock();
    if (!has_ended) sdk_debug("the last chunk was not ready within %u ms", atomic_load(&sdk.shutdown_timeout_ms));
    return transport;
}

static void end_transport(struct transport *transport, uint64_t deadline_ns)
{
    uint64_t now_ns = sdk_monotonic_ns();
    struct transport_counts counts;
    if (!transport) return;
    (void)transport_end(transport, deadline_ns > now_ns ? deadline_ns - now_ns : 0, &counts);
    sdk_lock();
    sdk.counts = counts;
    sdk_unlock();
}

static void wait_for_flushers(void)
{
    sdk_lock();
    while (sdk.flusher_count > 0) (void)sdk_wait_until(sdk_monotonic_ns() + SECOND_NS);
    sdk_unlock();
}

static uint64_t end_time(void)
{
    return sdk_monotonic_ns() + atomic_load(&sdk.shutdown_timeout_ms) * (SECOND_NS / 1000);
}

static void end(void)
{
    uint64_t deadline_ns = end_time();
    tracer_free(set_tracer(NULL));
    struct transport *transport = take_transport(deadline_ns);
    end_transport(transport, deadline_ns);
    wait_for_flushers();
    transport_release(transport);
    end_calls(UINT64_MAX);
    at_exit_leave();
    (void)own_threads_await_end(sdk_monotonic_ns() + CALLS_AT_EXIT_NS); /* a late worker ends later */
    sampler_forget_left_out();
    folder_remove_temporary();
    /* A worker that is late still reads the settings: they are forgotten with the next init. */
}

/* The thread that exits, or one that is in the midst of a call, may hold any lock forever: nothing is waited for
 * without an end, and nothing is freed. The leak checker finds here what is left. */
void sdk_end_at_exit(void)
{
    static struct tracer *tracer;
    static struct transport *transport;
    uint64_t deadline_ns = end_time();
    const struct timespec deadline = timespec_of(deadline_ns);
    if (pthread_mutex_clocklock(&turn, CLOCK_MONOTONIC, &deadline) != 0) return;
    if (atomic_load(&sdk.is_on)) {
        tracer = set_tracer(NULL);
        (void)tracer_close_until(tracer, sdk_monotonic_ns() + CALLS_AT_EXIT_NS);
        transport = take_transport(deadline_ns);
        end_transport(transport, deadline_ns);
        end_calls(sdk_monotonic_ns() + CALLS_AT_EXIT_NS);
        folder_remove_temporary();
    }
    (void)pthread_mutex_unlock(&turn);
}

void offbeat_shutdown(void)
{
    int kept_errno = errno;
    if (!sdk_is_ours()) return;
    (void)pthread_mutex_lock(&turn);
    if (atomic_load(&sdk.is_on)) end();
    (void)pthread_mutex_unlock(&turn);
    errno = kept_errno;
}

/* --- Forks and the end of the process ----------------------------------------------------------------------------- */

/* What was begun is the parent's, and so is the one who holds the locks; the thread that called fork may have
 * interrupted itself in any function here. Only what is atomic is taken over. The memory of the rest stays as it is. */
static void forget_parent(void)
{
    static const struct sdk at_first = SDK_AT_FIRST;
    static const pthread_mutex_t free_turn = PTHREAD_MUTEX_INITIALIZER;
    struct settings *settings = atomic_load(&sdk.settings);
    bool is_debug = atomic_load(&sdk.is_debug), is_confined = atomic_load(&sdk.is_confined);
    session_forget(&sdk.session);
    memcpy(&sdk, &at_first, sizeof(sdk));
    memcpy(&turn, &free_turn, sizeof(turn));
    atomic_store(&sdk.settings, settings);
    atomic_store(&sdk.is_debug, is_debug);
    atomic_store(&sdk.is_confined, is_confined);
    atomic_store(&sdk.shutdown_timeout_ms, settings ? settings->options.shutdown_timeout_ms : 0);
    atomic_store(&sdk.frame_rate_hz, settings ? settings->options.frame_rate_hz : 0);
    at_exit_forget();
    own_threads_forget();
    worker_forget();
    rebirth.is_there = false;
    rebirth.left = NULL;
    holds_lock = false;
}

void rebirth_wake(void)
{
    atomic_fetch_add(&rebirth.woken, 1);
    (void)kernel_call3(SYS_futex, (long)(uintptr_t)&rebirth.woken, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

bool rebirth_is_there(void)
{
    return rebirth.is_there;
}

/* Under LOCK. */
static bool rebirth_start(char *starts_profiler)
{
    rebirth.left = NULL;
    rebirth.is_there = thread_start(begin_again, starts_profiler);
    return rebirth.is_there;
}

bool rebirth_come_back(void)
{
    return !rebirth.left || rebirth_start(rebirth.left);
}

static void end_rebirth(char *left)
{
    sdk_lock();
    rebirth.is_there = false;
    rebirth.left = left;
    (void)pthread_cond_broadcast(&sdk.changed);
    sdk_unlock();
    own_threads_end_one();
}

/* Waits for the moment and then for the turn. False if it has to step aside. */
static bool await_rebirth(void)
{
    uint64_t begin_ns = sdk_monotonic_ns() + REBIRTH_AFTER_SECONDS * SECOND_NS;
    for (;;) {
        uint32_t woken = atomic_load(&rebirth.woken);
        if (own_threads_shall_leave()) return false;
        uint64_t now_ns = sdk_monotonic_ns();
        if (now_ns >= begin_ns && sdk_take_turn(now_ns)) return true;
        const struct timespec until = timespec_of(now_ns >= begin_ns ? now_ns + SECOND_NS / 100 : begin_ns);
        (void)kernel_call6(SYS_futex, (long)(uintptr_t)&rebirth.woken, FUTEX_WAIT_BITSET_PRIVATE, woken,
                           kernel_address(&until), 0, FUTEX_BITSET_MATCH_ANY);
    }
}

static void *begin_again(void *context)
{
    bool starts_profiler = context == &yes;
    own_threads_begin("offbeat-begin");
    if (!await_rebirth()) {
        end_rebirth(context);
        return NULL;
    }
    atomic_store(&sdk.may_call, true);
    if (!atomic_load(&sdk.is_on)) begin(starts_profiler);
    (void)pthread_mutex_unlock(&turn);
    end_rebirth(NULL);
    return NULL;
}

/* Not at once: most children call exec or end before the second is over, and shall cost no more than this thread. */
static void after_fork_in_child(void)
{
    int kept_errno = errno;
    bool was_on = atomic_load(&sdk.is_on) || atomic_load(&sdk.is_without_threads);
    bool was_running = atomic_load(&sdk.is_running);
    if (!preload_is_recording()) sampler_after_fork_in_child();
    forget_parent();
    own_process();
    if (was_on) (void)rebirth_start(was_running ? &yes : &no);
    errno = kept_errno;
}

/* Registered again when libcurl has been loaded: what ends it must not run before this. */
static void shutdown_before_libraries(void)
{
    (void)atexit(at_exit_run);
}

static void prepare(void)
{
    own_process();
    (void)pthread_atfork(NULL, NULL, after_fork_in_child);
    transport_guard_forks();
    transport_when_loaded(shutdown_before_libraries);
}

/* At load, so that a process that forks before it calls init is known, too. */
__attribute__((constructor)) static void prepare_at_load(void)
{
    int kept_errno = errno;
    (void)pthread_once(&once, prepare);
    errno = kept_errno;
}

__attribute__((destructor)) static void shutdown_at_the_end(void)
{
    int kept_errno = errno;
    at_exit_run();
    errno = kept_errno;
}

/* Replaces the settings of the last init, which nobody reads any more. */
static void set_settings(struct settings *settings)
{
    atomic_store(&sdk.may_call, false);
    (void)pthread_rwlock_wrlock(&sdk.calling_lock);
    struct settings *before = atomic_exchange(&sdk.settings, settings);
    atomic_store(&sdk.is_debug, settings->options.debug);
    atomic_store(&sdk.frame_rate_hz, settings->options.frame_rate_hz);
    atomic_store(&sdk.shutdown_timeout_ms, settings->options.shutdown_timeout_ms);
    atomic_store(&sdk.may_call, true);
    (void)pthread_rwlock_unlock(&sdk.calling_lock);
    if (!before) return;
    settings_fini(before);
    free(before);
}

/* A worker that is late reads the settings until it ends. */
static bool wait_for_late_worker(void)
{
    sdk_lock();
    bool has_ended = end_worker(sdk_monotonic_ns() + LATE_WORKER_SECONDS * SECOND_NS);
    if (has_ended) sdk.wanted.is_ending = false;
    sdk_unlock();
    return has_ended;
}

static void discard_settings(struct settings *settings, const char *line)
{
    write_plainly(&settings->options, line);
    settings_fini(settings);
    free(settings);
}

static bool begin_with(const struct offbeat_options *options, bool starts_profiler)
{
    struct error error;
    struct dsn dsn;
    if (atomic_load(&sdk.is_on)) end();
    struct settings *settings = malloc(sizeof(*settings));
    if (!settings) return false;
    enum status status = settings_resolve(options, settings, &error);
    if (!wait_for_late_worker()) {
        discard_settings(settings, "the last chunk is still being made: not begun again");
        return false;
    }
    set_settings(settings);
    const char *address = settings->options.dsn;
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

static bool init(const struct offbeat_options *options, bool starts_profiler)
{
    int kept_errno = errno;
    if (atomic_load(&sdk.process) == 0)
        (void)pthread_once(&once, prepare); /* another constructor is earlier than ours */
    if (!sdk_is_ours() || atomic_load(&sdk.is_confined)) return false;
    (void)pthread_mutex_lock(&turn);
    bool is_on = begin_with(options, starts_profiler);
    (void)pthread_mutex_unlock(&turn);
    errno = kept_errno;
    return is_on;
}

bool offbeat_init(const struct offbeat_options *options)
{
    return init(options, false);
}

/* A program that knows nothing of the library is profiled from its start on, unless variables say when. */
void sdk_init_preloaded(void)
{
    bool says_when =
        environment_get("OFFBEAT_PROFILE_SESSION_SAMPLE_RATE") || environment_get("OFFBEAT_PROFILES_SAMPLE_RATE");
    struct offbeat_options options = {.size = sizeof(options), .profile_session_sample_rate = says_when ? 0 : 1};
    (void)init(&options, true);
}
