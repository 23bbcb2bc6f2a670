/* The program gets our standard streams, our process group and our signal dispositions. While it runs we only wait: a
 * signal from the terminal reached it already, any other that we get is passed on.  SPDX-License-Identifier: MIT */
#include "cli/record_run.h"

#include "base/clocks.h"
#include "base/environment.h"
#include "base/percent.h"
#include "base/unsigned.h"
#include "binary/preload_check.h"
#include "cli/message.h"
#include "cli/record_library.h"
#include "format/recording/record_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 4096, SCRIPT_LEVELS_MAX = 5 };

/* --- Finding ------------------------------------------------------------------------------------------------------ */

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static char *find_in_path(const char *program)
{
    const char *search = environment_get("PATH");
    if (!search) search = "/usr/local/bin:/usr/bin:/bin";
    char candidate[PATH_BYTES_MAX];
    for (;;) {
        size_t length = strcspn(search, ":");
        int written =
            snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)length, search, length ? "/" : "", program);
        if (written > 0 && (size_t)written < sizeof(candidate) && is_program(candidate)) return strdup(candidate);
        if (search[length] == '\0') return NULL;
        search += length + 1;
    }
}

/* False after a line on standard error. */
static bool check_preload(const char *path)
{
    char current[PRELOAD_INTERPRETER_SIZE], interpreter[PRELOAD_INTERPRETER_SIZE];
    (void)snprintf(current, sizeof(current), "%s", path);
    for (int level = 0; level < SCRIPT_LEVELS_MAX; level++) {
        enum preload_answer answer;
        struct error error;
        if (preload_check(current, &answer, interpreter, &error) != STATUS_OK) {
            /* A file that we may not read can still run; only statically linked or privileged ones escape us. */
            if (error.errno_value == EACCES) return true;
            message("cannot run %s: %s", path, error.message);
            return false;
        }
        switch (answer) {
        case PRELOAD_POSSIBLE:
            return true;
        case PRELOAD_NOT_ELF:
            return true; /* some shells run such a file themselves; else exec says what is wrong */
        case PRELOAD_SCRIPT:
            (void)snprintf(current, sizeof(current), "%s", interpreter);
            continue;
        case PRELOAD_STATIC:
            message("%s is statically linked, so the sampler cannot be loaded into it; --engine bpf records it from "
                    "outside",
                    current);
            return false;
        case PRELOAD_PRIVILEGED:
            message("%s gains privileges when it starts, so the system does not let the sampler be loaded into it; "
                    "run it as the user that it becomes",
                    current);
            return false;
        case PRELOAD_WRONG_ARCHITECTURE:
            message("%s is for another processor or word size than the sampler", current);
            return false;
        case PRELOAD_OTHER_LIBC:
            message("%s uses another libc than the sampler (its loader is %s); --engine bpf records it from outside",
                    current, interpreter);
            return false;
        }
    }
    return true;
}

char *run_find_program(const char *program, bool is_preloaded)
{
    char *path = strchr(program, '/') ? strdup(program) : find_in_path(program);
    if (!path) {
        message("cannot find a program called \"%s\" in PATH", program);
        return NULL;
    }
    if (!is_program(path)) {
        message("cannot run %s: %s", path,
                access(path, F_OK) ? "there is no such file" : "it is not an executable file");
    } else if (!is_preloaded || check_preload(path)) {
        return path;
    }
    free(path);
    return NULL;
}

/* --- Starting ----------------------------------------------------------------------------------------------------- */

static void set_number(const char *name, uint64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
    (void)setenv(name, digits, 1);
}

/* A program that shares the library of AddressSanitizer rejects to run if another library is preloaded before it. The
 * children of the program inherit LD_PRELOAD, so no order in it is right for all; but none is needed, because
 * liboffbeat replaces none of the functions that the sanitizer must see first. */
static void allow_sanitizer(void)
{
    static const char option[] = "verify_asan_link_order";
    const char *given = environment_get("ASAN_OPTIONS");
    char *options;
    if (given && strstr(given, option)) return;
    if (asprintf(&options, "%s%s%s=0", given ? given : "", given && *given ? ":" : "", option) < 0) return;
    (void)setenv("ASAN_OPTIONS", options, 1);
    free(options);
}

static void set_percent(const char *name, uint64_t ppm)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%llu.%04llu", (unsigned long long)(ppm / PERCENT_PPM),
                   (unsigned long long)(ppm % PERCENT_PPM));
    (void)setenv(name, text, 1);
}

static void set_environment(const struct run_options *options)
{
    allow_sanitizer();
    const char *preloaded = environment_get("LD_PRELOAD");
    char list[4 * PATH_BYTES_MAX], first[PATH_MAX];
    bool has_first = record_library_first(options->library, first);
    (void)snprintf(list, sizeof(list), "%s%s%s%s%s", options->library, has_first ? ":" : "", has_first ? first : "",
                   preloaded && *preloaded ? ":" : "", preloaded ? preloaded : "");
    (void)setenv("LD_PRELOAD", list, 1);
    (void)setenv(RECORD_ENVIRONMENT_DIRECTORY, options->directory, 1);
    if (options->cache_directory) (void)setenv(RECORD_ENVIRONMENT_CACHE_DIRECTORY, options->cache_directory, 1);
    (void)setenv(RECORD_ENVIRONMENT_MODE, options->is_cpu_mode ? "cpu" : "wall", 1);
    set_number(RECORD_ENVIRONMENT_FREQUENCY, options->frequency_hz);
    set_percent(RECORD_ENVIRONMENT_CPU_MAX, options->cpu_max_ppm);
    if (options->shows_interpreter) set_number(RECORD_ENVIRONMENT_NATIVE, 1);
    if (options->duration_ns) set_number(RECORD_ENVIRONMENT_DURATION_MS, options->duration_ns / 1000000);
    if (options->no_children) set_number(RECORD_ENVIRONMENT_ONLY_PID, (uint64_t)getpid()); /* exec keeps it */
}

/* State that this process changes for itself and that the program must find as it was. */
struct inherited {
    sigset_t mask;
    struct sigaction of_children; /* SIGCHLD */
    bool ignores_quit;            /* true if Ctrl-\ is for this process, and the program starts with SIGQUIT ignored */
};

/* The pipes between this process and the one that becomes the program, ends for reading first. All end with exec. */
struct start {
    int failure[2]; /* gives the error of exec */
    int go[2];      /* ends when the program may start; -1: it may at once */
};

_Noreturn static void become_program(const char *path, char *const *arguments, const struct run_options *options,
                                     const struct inherited *inherited, const struct start *start)
{
    if (start->go[0] >= 0) {
        char none;
        (void)close(start->go[1]);
        while (read(start->go[0], &none, 1) < 0 && errno == EINTR) {
        }
    }
    if (options->library) set_environment(options);
    if (options->stdout_is_taken) (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)sigaction(SIGCHLD, &inherited->of_children, NULL);
    if (inherited->ignores_quit) (void)signal(SIGQUIT, SIG_IGN);
    (void)sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
    (void)execv(path, arguments);
    int errno_value = errno;
    if (write(start->failure[1], &errno_value, sizeof(errno_value)) < 0) errno_value = 0;
    _exit(127);
}

/* 0, or why exec failed. The pipe closes automatically when exec succeeds. */
static int read_failure(int pipe_end)
{
    int errno_value = 0;
    ssize_t got;
    do got = read(pipe_end, &errno_value, sizeof(errno_value));
    while (got < 0 && errno == EINTR);
    return got == sizeof(errno_value) ? errno_value : 0;
}

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

enum {
    SAME_STOP_NS = 250000000,
    SAME_STOP_MAX = 16,
    CONTINUED_NS = 20000000,
    SAMPLING_ENDS_NS = 150000000, /* time that samplers have to write their last samples */
};

/* The program while it runs. */
struct running {
    pid_t child;
    const struct run_options *options;
    struct descendants *descendants; /* NULL: nothing is noted */
    struct run_result *result;
    bool is_stopped;
    uint64_t sampled_until_ns; /* time at which sampling ends, CLOCK_MONOTONIC; UINT64_MAX: with the program */
};

static bool has_terminal(void)
{
    int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    bool is_ours = terminal >= 0 && tcgetpgrp(terminal) == getpgrp();
    if (terminal >= 0) (void)close(terminal);
    return is_ours;
}

/* True if SIGCONT is pending, which is blocked: this process was stopped and continued. */
static bool was_continued(void)
{
    const struct timespec no_time = {0};
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGCONT);
    return sigtimedwait(&signals, NULL, &no_time) == SIGCONT;
}

/* Stops this process with its program, so that the shell gets its terminal back. Ctrl-Z has stopped this process, too:
 * when the shell continues both, the child's stop may still be reported although it is over, so it is checked after a
 * moment. */
static void stop_with(pid_t child)
{
    const struct timespec moment = {.tv_nsec = CONTINUED_NS};
    siginfo_t information = {0};
    (void)nanosleep(&moment, NULL);
    if (waitid(P_PID, (id_t)child, &information, WSTOPPED | WCONTINUED | WEXITED | WNOHANG | WNOWAIT) == 0 &&
        information.si_pid == child && information.si_code != CLD_STOPPED)
        return;
    if (!was_continued()) (void)raise(SIGSTOP);
    (void)kill(child, SIGCONT);
}

static uint64_t microseconds(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* Notes that the program has stopped or continues. Whoever stops it without the terminal may continue it: this process
 * waits. */
static void note_stop(struct running *running, int status)
{
    running->is_stopped = WIFSTOPPED(status);
    if (running->is_stopped && WSTOPSIG(status) == SIGTSTP && has_terminal()) stop_with(running->child);
}

/* True when the program has ended. The first process of a container also reaps the orphans of all others. */
static bool has_ended(struct running *running)
{
    const pid_t reaped = getpid() == 1 ? -1 : running->child;
    for (;;) {
        int status = 0;
        struct rusage usage = {0};
        pid_t found = wait4(reaped, &status, WNOHANG | WUNTRACED | WCONTINUED, &usage);
        if (found == 0 || (found < 0 && errno == EINTR)) return false;
        if (found < 0) return true;
        if (found != running->child) continue;
        if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
            note_stop(running, status);
            continue;
        }
        running->result->status = status;
        running->result->cpu_ns = 1000 * (microseconds(&usage.ru_utime) + microseconds(&usage.ru_stime));
        return true;
    }
}

/* Handles signal NUMBER, which came to this process. */
static void handle_signal(const struct running *running, int number, const siginfo_t *information)
{
    const struct run_options *options = running->options;
    bool is_from_terminal = information->si_code > 0;
    if (number == SIGCHLD) return;
    if (number == SIGCONT) {
        siginfo_t stop = {0}; /* a stop that is not noted yet */
        (void)waitid(P_PID, (id_t)running->child, &stop, WSTOPPED | WNOHANG | WNOWAIT);
        if (running->is_stopped || stop.si_pid == running->child) (void)kill(running->child, SIGCONT);
    } else if (options->write && (number == SIGUSR1 || (number == SIGQUIT && is_from_terminal))) {
        options->write(options->context, false);
    } else if (!is_from_terminal) {
        (void)kill(running->child, number);
    }
}

static uint64_t ns_until(uint64_t time_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    return time_ns == UINT64_MAX ? UINT64_MAX : time_ns > now_ns ? time_ns - now_ns : 0;
}

static void end_sampling(struct running *running)
{
    running->sampled_until_ns = UINT64_MAX;
    running->descendants = NULL;
    running->options->write(running->options->context, true);
}

static void wait_for(struct running *running, const sigset_t *signals)
{
    bool was_signalled = false;
    while (!has_ended(running)) {
        siginfo_t information = {0};
        uint64_t wait_ns = running->descendants ? descendants_scan(running->descendants, running->child) : UINT64_MAX;
        if (running->options->work) wait_ns = least(wait_ns, running->options->work(running->options->context));
        uint64_t left_ns = ns_until(running->sampled_until_ns);
        if (left_ns == 0) {
            end_sampling(running);
            continue;
        }
        if (left_ns < wait_ns) wait_ns = left_ns;
        const struct timespec timeout = {.tv_sec = (time_t)(wait_ns / SECOND_NS),
                                         .tv_nsec = (long)(wait_ns % SECOND_NS)};
        int number = sigtimedwait(signals, &information, &timeout);
        was_signalled |= number > 0 && number != SIGCHLD && number != SIGCONT;
        if (number > 0) handle_signal(running, number, &information);
    }
    run_take_signals(signals, was_signalled || WIFSIGNALED(running->result->status));
}

void run_take_signals(const sigset_t *signals, bool was_signalled)
{
    const struct timespec soon = {.tv_nsec = was_signalled ? SAME_STOP_NS : 0};
    for (unsigned i = 0; i < SAME_STOP_MAX && sigtimedwait(signals, NULL, &soon) > 0; i++) {
    }
}

bool run_program(const char *path, char *const *arguments, const struct run_options *options,
                 struct descendants *descendants, struct run_result *ret_result)
{
    /* Our parent may ignore SIGCHLD, which would leave us no status to wait for. The program inherits what it ignores.
     */
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    struct inherited inherited;
    struct start start = {.go = {-1, -1}};
    sigset_t signals;
    if (pipe2(start.failure, O_CLOEXEC) != 0 || (options->forked && pipe2(start.go, O_CLOEXEC) != 0)) {
        message("cannot make a pipe: %s", strerror(errno));
        return false;
    }
    static const int watched[] = {SIGCHLD, SIGINT,  SIGQUIT,  SIGTERM, SIGHUP,
                                  SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM, SIGCONT};
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) (void)sigaddset(&signals, watched[i]);
    (void)sigprocmask(SIG_BLOCK, &signals, &inherited.mask);
    (void)sigaction(SIGCHLD, &usual, &inherited.of_children);
    inherited.ignores_quit = options->write && has_terminal();
    ret_result->started_ns = clock_monotonic_ns();
    pid_t child = fork();
    if (child == 0) become_program(path, arguments, options, &inherited, &start);
    int errno_value = child < 0 ? errno : 0;
    (void)close(start.failure[1]);
    if (options->forked) {
        (void)close(start.go[0]);
        if (child > 0) options->forked(options->context, child);
        (void)close(start.go[1]);
    }
    if (child > 0) errno_value = read_failure(start.failure[0]);
    (void)close(start.failure[0]);
    if (child > 0 && errno_value == 0 && options->started) options->started(options->context, child);
    struct running running = {.child = child,
                              .options = options,
                              .descendants = errno_value == 0 ? descendants : NULL,
                              .result = ret_result,
                              .sampled_until_ns = UINT64_MAX};
    if (options->duration_ns && options->write && errno_value == 0)
        running.sampled_until_ns = clock_monotonic_ns() + options->duration_ns + SAMPLING_ENDS_NS;
    if (child > 0) wait_for(&running, &signals);
    ret_result->wall_ns = clock_monotonic_ns() - ret_result->started_ns;
    (void)sigaction(SIGCHLD, &inherited.of_children, NULL);
    (void)sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
    if (errno_value == 0) return true;
    message("cannot run %s: %s", path, strerror(errno_value));
    return false;
}

/* --- Ending ------------------------------------------------------------------------------------------------------- */

static char last_words[PATH_BYTES_MAX + 256];

static void end_with_last_words(int number)
{
    ssize_t written = write(STDERR_FILENO, last_words, strlen(last_words));
    (void)written; /* a failure could not be reported */
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void run_end_with_words(const char *words)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = end_with_last_words};
    (void)snprintf(last_words, sizeof(last_words), "%s", words);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct sigaction before;
        bool is_ignored = sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (!is_ignored) (void)sigaction(ends[i], &action, NULL);
    }
}

void run_end_without_words(void)
{
    last_words[0] = '\0';
}

void run_end_alike(int status)
{
    if (WIFSIGNALED(status)) {
        /* The program has left its core file, if any; ours would show nothing. */
        struct rlimit none = {0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(WTERMSIG(status), SIG_DFL);
        sigset_t mask;
        (void)sigemptyset(&mask);
        (void)sigaddset(&mask, WTERMSIG(status));
        (void)raise(WTERMSIG(status));
        (void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
        _exit(128 + WTERMSIG(status));
    }
    exit(WEXITSTATUS(status));
}
