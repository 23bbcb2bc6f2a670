/* The library as one: init, flush, shutdown, forks.  SPDX-License-Identifier: MIT */
#include "base/environment.h"
#include "base/futex.h"
#include "base/invariant.h"
#include "base/kernel.h"
#include "base/seccomp_filter.h"
#include "base/thread_denial.h"
#include "sampler/record/finished_recordings.h"
#include "sampler/sampler.h"
#include "sdk/callbacks.h"
#include "sdk/profiler.h"
#include "sdk/sdk_private.h"
#include "sdk/sender.h"
#include "sdk/spans.h"
#include "sdk/worker.h"
#include "spool/dsn.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    REBIRTH_AFTER_SECONDS = 1,
    LATE_WORKER_SECONDS = 1,
};
#define GRACE_NS (3 * SECOND_NS)          /* time to store what waits; <offbeat.h> promises it */
#define CALLS_AT_EXIT_NS (SECOND_NS / 10) /* time for running calls; the call of the thread that exits never ends */

struct library library;

static void *begin_again(void *context);

/* The thread that starts the library again in a forked child. Under LOCK_PROFILER. */
static struct {
    bool is_there;
    char *left; /* argument of the next such thread; NULL: the thread has not stepped aside */
    _Atomic uint32_t woken;
} rebirth;

static struct {
    _Atomic uint32_t is_wanted, has_ended; /* HAS_ENDED: a futex */
    bool has_turn;                         /* the worker has LOCK_TURN */
} at_exit;

static char yes, no; /* arguments of begin_again: whether the profiler starts, too */

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- Whose process this is ---------------------------------------------------------------------------------------- */

bool sdk_is_ours(void)
{
    return atomic_load_explicit(&library.process, memory_order_acquire) == process_number();
}

static void own_process(void)
{
    atomic_store(&library.pid, (pid_t)kernel_call3(SYS_getpid, 0, 0, 0)); /* libc's may be interposed */
    atomic_store_explicit(&library.process, process_number(), memory_order_release);
}

/* --- Small things ------------------------------------------------------------------------------------------------- */

double sdk_random(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits)) {
        bits = clock_monotonic_ns() * 0x9E3779B97F4A7C15u; /* the system has nothing better yet */
    }
    return (double)(bits >> 11) * 0x1p-53;
}

/* --- What the program asks for ------------------------------------------------------------------------------------ */

const char *offbeat_version(void)
{
    return OFFBEAT_VERSION;
}

struct offbeat_item_counts offbeat_counts(void)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return (struct offbeat_item_counts){0};
    struct item_counts counts = sender_counts();
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
    struct thread_denial denial = {0};
    int error;
    do error = pthread_create(&thread, &attributes, run, context);
    while (thread_denial_may_end(&denial, error));
    if (error != 0) own_threads_end_one();
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    (void)pthread_attr_destroy(&attributes);
    return error == 0;
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

static void begin_library(bool starts_profiler)
{
    const struct settings *settings = sdk_settings();
    struct lifecycle_options lifecycle = settings_lifecycle(settings);
    const char *warning;
    for (size_t i = 0; (warning = lifecycle_warning(&lifecycle, i)); i++) sdk_say("%s", warning);
    enum lifecycle_kept kept = LIFECYCLE_KEPT_NOTHING;
    if (lifecycle.starts_on_app_start) {
        kept = folder_read_decision(settings);
        if (!folder_keeps_decisions(settings))
            sdk_say("start_profiler_on_app_start has no effect: spool_directory keeps nothing");
    }
    tracer_free(profiler_set_tracer(spans_tracer_new(settings)));
    sender_reset_counts();
    enum lifecycle_kept for_next_launch = profiler_begin(&lifecycle, kept, starts_profiler);
    /* The rest of an earlier launch is sent even if nothing new follows. */
    if (spool_folder_has_rest(settings)) profiler_wake_worker();
    folder_keep_decision(settings, for_next_launch);
}

bool offbeat_flush(uint32_t timeout_ms)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return true;
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ms * (SECOND_NS / 1000);
    return profiler_flush(deadline_ns);
}

static uint64_t end_time(void)
{
    return clock_monotonic_ns() + atomic_load(&library.shutdown_timeout_ms) * (SECOND_NS / 1000);
}

static void end_library(void)
{
    tracer_free(profiler_set_tracer(NULL));
    if (!profiler_end(end_time()))
        sdk_debug("the last chunk was not stored within %u ms", atomic_load(&library.shutdown_timeout_ms));
    unsigned failures = invariant_failures();
    if (failures > 0)
        sdk_debug("%u internal checks have failed; with OFFBEAT_INVARIANTS=abort the first one stops the program",
                  failures);
    callbacks_end(UINT64_MAX);
    (void)own_threads_await_end(clock_monotonic_ns() + CALLS_AT_EXIT_NS); /* a late worker ends later */
    sampler_forget_left_out();
    folder_remove_temporary();
    /* A late worker still reads the settings: the next init frees them. */
}

void offbeat_shutdown(void)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return;
    lock_take(LOCK_TURN);
    if (atomic_load(&library.is_on)) end_library();
    lock_give(LOCK_TURN);
}

/* --- Forks and the end of the process ----------------------------------------------------------------------------- */

/* Resets the state of a forked child. The threads that hold locks are the parent's, and the thread that called fork may
 * have interrupted itself in any function here: the child takes over only atomic members and leaves other memory as it
 * is. */
static void forget_parent(void)
{
    const struct settings *settings = sdk_settings();
    locks_forget();
    worker_forget();
    profiler_forget();
    sender_forget();
    callbacks_forget();
    atomic_store(&library.is_on, false);
    atomic_store(&library.is_running, false);
    atomic_store(&library.is_without_threads, false);
    atomic_store(&library.shutdown_timeout_ms, settings ? settings->options.shutdown_timeout_ms : 0);
    atomic_store(&library.frame_rate_hz, settings ? settings->options.frame_rate_hz : 0);
    atomic_store(&at_exit.is_wanted, 0);
    atomic_store(&at_exit.has_ended, 0);
    own_threads_forget();
    rebirth.is_there = false;
    rebirth.left = NULL;
}

void rebirth_wake(void)
{
    atomic_fetch_add(&rebirth.woken, 1);
    futex_wake(&rebirth.woken);
}

bool rebirth_is_there(void)
{
    return lock_check_held(LOCK_PROFILER) && rebirth.is_there;
}

/* Starts the thread, under LOCK_PROFILER or in a child that has no other thread. */
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
    lock_take(LOCK_PROFILER);
    rebirth.is_there = false;
    rebirth.left = left;
    profiler_changed();
    callbacks_give_lock(LOCK_PROFILER);
    own_threads_end_one();
}

/* Waits for REBIRTH_AFTER_SECONDS, then for LOCK_TURN. False if the thread has to step aside. */
static bool await_rebirth(void)
{
    uint64_t begin_ns = clock_monotonic_ns() + REBIRTH_AFTER_SECONDS * SECOND_NS;
    for (;;) {
        uint32_t woken = atomic_load(&rebirth.woken);
        if (own_threads_shall_leave()) return false;
        uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= begin_ns && lock_take_until(LOCK_TURN, now_ns)) return true;
        futex_wait(&rebirth.woken, woken, now_ns >= begin_ns ? now_ns + SECOND_NS / 100 : begin_ns);
    }
}

static void *begin_again(void *context)
{
    bool starts_profiler = context == &yes;
    own_threads_begin("offbeat-begin");
    own_threads_take_descriptors();
    if (!await_rebirth()) {
        end_rebirth(context);
        return NULL;
    }
    callbacks_continue();
    if (!atomic_load(&library.is_on)) begin_library(starts_profiler);
    lock_give(LOCK_TURN);
    end_rebirth(NULL);
    return NULL;
}

/* Leaves the start of the library to a thread that waits a second first: most children call exec or end within it. */
static void after_fork_in_child(void)
{
    KEEP_ERRNO;
    bool was_on = atomic_load(&library.is_on) || atomic_load(&library.is_without_threads);
    bool was_running = atomic_load(&library.is_running);
    if (!preload_is_recording()) sampler_after_fork_in_child();
    forget_parent();
    own_process();
    if (was_on) (void)rebirth_start(was_running ? &yes : &no);
}

/* --- The end of the process ---------------------------------------------------------------------------------------
 *
 * exit may be called by a signal handler that interrupted malloc, or one of our own functions: the thread that exits
 * then holds locks that it will never give up. So it takes none and allocates nothing. The worker ends the library; the
 * exiting thread waits for it, at most as long as promised. Each wait of the worker has an end and nothing is freed. */

bool end_at_exit_is_wanted(void)
{
    return atomic_load(&at_exit.is_wanted) != 0;
}

void end_at_exit_begin(uint64_t deadline_ns)
{
    static struct tracer *tracer; /* the leak checker finds it here */
    at_exit.has_turn = lock_take_until(LOCK_TURN, deadline_ns);
    tracer = profiler_set_tracer(NULL);
    (void)tracer_close_until(tracer, clock_monotonic_ns() + CALLS_AT_EXIT_NS);
    profiler_close(deadline_ns);
}

void end_at_exit_finish(void)
{
    atomic_store(&library.is_on, false);
    callbacks_end(clock_monotonic_ns() + CALLS_AT_EXIT_NS);
    folder_remove_temporary();
    if (at_exit.has_turn) lock_give(LOCK_TURN);
    atomic_store(&at_exit.has_ended, 1);
    futex_wake(&at_exit.has_ended);
}

static void end_at_exit(void)
{
    uint64_t now_ns = 0, deadline_ns;
    /* Checked first: under a seccomp filter, where the library has ended, any system call may kill. */
    if (!atomic_load(&library.is_on) || !worker_is_there() || lock_any_is_held()) return;
    if (!sdk_is_ours() || kernel_call3(SYS_getpid, 0, 0, 0) != atomic_load(&library.pid)) return;
    atomic_store(&at_exit.is_wanted, 1);
    finished_recordings_wake();
    if (!kernel_clock_ns(CLOCK_MONOTONIC, &now_ns)) return;
    deadline_ns = now_ns + atomic_load(&library.shutdown_timeout_ms) * MILLISECOND_NS + GRACE_NS;
    while (!atomic_load(&at_exit.has_ended) && kernel_clock_ns(CLOCK_MONOTONIC, &now_ns) && now_ns < deadline_ns)
        futex_wait(&at_exit.has_ended, 0, deadline_ns);
}

static void prepare_library(void)
{
    own_process();
    (void)pthread_atfork(sampler_before_fork, NULL, after_fork_in_child);
}

/* Prepares at load, so that the library knows a process that forks ahead of its init. */
__attribute__((constructor)) static void prepare_at_load(void)
{
    KEEP_ERRNO;
    (void)pthread_once(&once, prepare_library);
}

__attribute__((destructor)) static void shutdown_at_the_end(void)
{
    KEEP_ERRNO;
    end_at_exit();
}

/* Logs what the library begins with, one option a line. */
static void log_settings(const struct settings *settings)
{
    struct buffer line = {.maximum = 1024};
    if (!settings->options.debug) return;
    sdk_debug("init of liboffbeat %s in process %d", OFFBEAT_VERSION, (int)atomic_load(&library.pid));
    for (size_t i = 0; settings_describe(settings, i, &line); i++) {
        sdk_debug("%.*s", (int)line.size, (const char *)line.data);
        buffer_clear(&line);
    }
    buffer_fini(&line);
}

static bool begin_with(const struct offbeat_options *options, bool starts_profiler)
{
    struct error error;
    struct dsn dsn;
    if (atomic_load(&library.is_on)) end_library();
    struct settings *settings = malloc(sizeof(*settings));
    if (!settings) return false;
    enum status status = settings_resolve(options, settings, &error);
    /* A late worker reads the settings until it ends. */
    if (!profiler_await_late_worker(clock_monotonic_ns() + LATE_WORKER_SECONDS * SECOND_NS)) {
        callbacks_write_line(&settings->options,
                             "the last chunk of an earlier init is not finished: offbeat_init does nothing");
        settings_fini(settings);
        free(settings);
        return false;
    }
    callbacks_begin(settings);
    atomic_store(&library.frame_rate_hz, settings->options.frame_rate_hz);
    atomic_store(&library.shutdown_timeout_ms, settings->options.shutdown_timeout_ms);
    atomic_store(&library.calls_program, settings->options.log || settings->options.before_send);
    const char *address = settings->options.dsn;
    log_settings(settings);
    if (status == STATUS_OK && (!address || !*address))
        status = error_set(&error, STATUS_NOT_FOUND, 0, "there is no DSN (option dsn, OFFBEAT_DSN)");
    if (status == STATUS_OK) status = dsn_parse(address, &dsn, &error);
    if (status != STATUS_OK) {
        sdk_say("%s; nothing is profiled", error.message);
        return false;
    }
    begin_library(starts_profiler);
    return true;
}

static bool init_library(const struct offbeat_options *options, bool starts_profiler)
{
    KEEP_ERRNO;
    if (atomic_load(&library.process) == 0)
        (void)pthread_once(&once, prepare_library); /* another constructor is earlier than ours */
    if (!sdk_is_ours() || atomic_load(&library.is_confined)) return false;
    lock_take(LOCK_TURN);
    bool is_on = begin_with(options, starts_profiler);
    lock_give(LOCK_TURN);
    return is_on;
}

bool offbeat_init(const struct offbeat_options *options)
{
    return init_library(options, false);
}

void sdk_init_preloaded(void)
{
    /* The program is profiled from its start, unless variables choose sessions or transactions. */
    bool has_rate =
        environment_get("OFFBEAT_PROFILE_SESSION_SAMPLE_RATE") || environment_get("OFFBEAT_PROFILES_SAMPLE_RATE");
    struct offbeat_options options = {.size = sizeof(options), .profile_session_sample_rate = has_rate ? 0 : 1};
    filter_try();
    (void)init_library(&options, true);
}
