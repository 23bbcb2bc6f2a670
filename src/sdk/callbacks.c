/* SPDX-License-Identifier: MIT */
#include "sdk/callbacks.h"

#include "base/invariant.h"
#include "base/kernel.h"
#include "base/timespec.h"
#include "sdk/sdk_private.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* See other_libc.c. */
#pragma weak pthread_rwlock_clockwrlock

enum { LINES_MAX = 8, LINE_SIZE = 1024 };

static __thread bool holds_lines __attribute__((tls_model("initial-exec")));

static struct {
    pthread_rwlock_t calls;
    atomic_bool may_call; /* true from init until the end of the shutdown */
    _Atomic(struct settings *) settings;
    atomic_bool is_debug;             /* copy from the settings, for threads of the program */
    char lines[LINES_MAX][LINE_SIZE]; /* guarded by LOCK_LINES */
    _Atomic size_t line_count;        /* written under LOCK_LINES */
} callbacks = {.calls = PTHREAD_RWLOCK_INITIALIZER};

const struct settings *sdk_settings(void)
{
    return atomic_load(&callbacks.settings);
}

const struct offbeat_options *sdk_options(void)
{
    static const struct offbeat_options none;
    const struct settings *settings = sdk_settings();
    return settings ? &settings->options : &none;
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

bool callback_begin(void)
{
    if (!atomic_load(&callbacks.may_call)) return false; /* checked first: rejected calls do not make the end wait */
    lock_check_order(LOCK_CALLS);
    if (pthread_rwlock_rdlock(&callbacks.calls) != 0) return false;
    lock_note_taken(LOCK_CALLS);
    if (atomic_load(&callbacks.may_call)) return true;
    callback_end();
    return false;
}

void callback_end(void)
{
    lock_note_given(LOCK_CALLS);
    (void)pthread_rwlock_unlock(&callbacks.calls);
}

void callbacks_begin(struct settings *settings)
{
    callbacks_forbid();
    if (!INVARIANT(!lock_is_held(LOCK_CALLS))) return;
    lock_check_order(LOCK_CALLS);
    (void)pthread_rwlock_wrlock(&callbacks.calls);
    struct settings *earlier = atomic_exchange(&callbacks.settings, settings);
    atomic_store(&callbacks.is_debug, settings->options.debug);
    atomic_store(&callbacks.may_call, true);
    (void)pthread_rwlock_unlock(&callbacks.calls);
    if (!earlier) return;
    settings_fini(earlier);
    free(earlier);
}

void callbacks_continue(void)
{
    atomic_store(&callbacks.may_call, true);
}

void callbacks_forbid(void)
{
    atomic_store(&callbacks.may_call, false);
}

void callbacks_end(uint64_t deadline_ns)
{
    const struct timespec deadline = timespec_of(deadline_ns);
    callbacks_forbid(); /* no new call makes this wait longer */
    if (pthread_rwlock_clockwrlock(&callbacks.calls, CLOCK_MONOTONIC, &deadline) != 0) return;
    (void)pthread_rwlock_unlock(&callbacks.calls);
}

void callbacks_forget(void)
{
    static const pthread_rwlock_t free_calls = PTHREAD_RWLOCK_INITIALIZER;
    callbacks_forbid();
    memcpy(&callbacks.calls, &free_calls, sizeof(free_calls));
    atomic_store(&callbacks.line_count, 0);
}

/* --- Lines for people --------------------------------------------------------------------------------------------- */

/* Writes LINE without the signals that end a program whose standard error is a closed pipe or a file at its largest. */
static void write_on_standard_error(const char *line)
{
    char text[LINE_SIZE + 16];
    const struct timespec no_time = {0};
    sigset_t ours, before, pending;
    int length = snprintf(text, sizeof(text), "offbeat: %s\n", line);
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGPIPE);
    (void)sigaddset(&ours, SIGXFSZ);
    (void)sigaddset(&ours, SIGTTOU);
    (void)pthread_sigmask(SIG_BLOCK, &ours, &before);
    (void)sigpending(&pending);
    int error = own_threads_open_standard_error();
    long written = kernel_write(error, text, (size_t)length);
    if (error > STDERR_FILENO) kernel_close(error);
    int raised = written == -EPIPE ? SIGPIPE : written == -EFBIG ? SIGXFSZ : 0;
    if (raised && !sigismember(&pending, raised)) {
        (void)sigemptyset(&ours);
        (void)sigaddset(&ours, raised);
        while (sigtimedwait(&ours, NULL, &no_time) < 0 && errno == EINTR) continue;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void callbacks_write_line(const struct offbeat_options *options, const char *line)
{
    char plain[LINE_SIZE]; /* LINE may contain strings of the program and of servers: no control characters */
    size_t size = 0;
    for (; line[size] && size < sizeof(plain) - 1; size++) {
        unsigned char byte = (unsigned char)line[size];
        plain[size] = byte < ' ' || byte == 0x7F ? '?' : (char)byte;
    }
    plain[size] = '\0';
    if (!options->log) write_on_standard_error(plain);
    if (!options->log || own_threads_have_descriptors()) return; /* a thread is left of an earlier init, without it */
    memory_sanitizer_written(plain, size + 1);
    memory_sanitizer_arguments();
    options->log(options->log_data, plain);
}

static void say_line(const char *line)
{
    KEEP_ERRNO;
    if (!callback_begin()) return;
    callbacks_write_line(sdk_options(), line);
    callback_end();
}

__attribute__((noinline)) static void write_queued_lines(void)
{
    char lines[LINES_MAX][LINE_SIZE];
    lock_take(LOCK_LINES);
    size_t count = atomic_exchange(&callbacks.line_count, 0);
    memcpy(lines, callbacks.lines, count * sizeof(*lines));
    lock_give(LOCK_LINES);
    for (size_t i = 0; i < count; i++) say_line(lines[i]);
}

void callbacks_give_lock(enum sdk_lock lock)
{
    lock_give(lock);
    if (atomic_load(&callbacks.line_count) > 0 && !lock_any_is_held() && !holds_lines) write_queued_lines();
}

void callbacks_hold_lines(void)
{
    holds_lines = true;
}

void callbacks_release_lines(void)
{
    if (!holds_lines) return;
    holds_lines = false;
    if (atomic_load(&callbacks.line_count) > 0 && !lock_any_is_held()) write_queued_lines();
}

static void say(const char *format, va_list arguments)
{
    char line[LINE_SIZE];
    KEEP_ERRNO;
    (void)vsnprintf(line, sizeof(line), format, arguments);
    if (!lock_any_is_held() && !holds_lines) {
        say_line(line);
        return;
    }
    if (lock_is_held(LOCK_LINES)) return; /* a signal handler has interrupted the code below */
    lock_take(LOCK_LINES);
    size_t count = atomic_load(&callbacks.line_count);
    if (count < LINES_MAX) {
        memcpy(callbacks.lines[count], line, LINE_SIZE);
        atomic_store(&callbacks.line_count, count + 1);
    }
    lock_give(LOCK_LINES);
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
    if (!atomic_load(&callbacks.is_debug)) return;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}
