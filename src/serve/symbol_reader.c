/* SPDX-License-Identifier: MIT */
#include "serve/symbol_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENDS = 2, READ_AT_ONCE = 1 << 16 };

struct running {
    pid_t pid;
    int request, answer; /* pipes; -1: closed */
    uint64_t begun_ms;
};

static void close_open(int *descriptor)
{
    if (*descriptor >= 0) (void)close(*descriptor);
    *descriptor = -1;
}

/* --- Start -------------------------------------------------------------------------------------------------------- */

/* SOURCES are the numbers of the process's descriptors 0, 1, 3, 4 and 5, all above those, so that none is overwritten
 * before it is copied. */
static int spawn(const char *program, const int sources[5], pid_t *ret_pid)
{
    static const int targets[5] = {STDIN_FILENO, STDOUT_FILENO, SYMBOL_READER_FILE, SYMBOL_READER_KEPT,
                                   SYMBOL_READER_INTO};
    char *const arguments[] = {(char[]){"offbeat"}, (char[]){SYMBOL_READER_ARGUMENT}, NULL};
    char *const environment[] = {NULL}; /* nothing of the server's is for it */
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) failed = posix_spawnattr_setsigmask(&attributes, &none);
    if (!failed) failed = posix_spawnattr_setsigdefault(&attributes, &all);
    /* Its own group: Ctrl-C is for the server, which ends it. */
    if (!failed) failed = posix_spawnattr_setpgroup(&attributes, 0);
    if (!failed)
        failed = posix_spawnattr_setflags(&attributes,
                                          POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    for (size_t i = 0; i < 5 && !failed; i++)
        failed = posix_spawn_file_actions_adddup2(&actions, sources[i], targets[i]);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failed) failed = posix_spawn(ret_pid, program, &actions, &attributes, arguments, environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static enum status start(const struct symbol_reader *reader, struct running *running, struct error *error)
{
    enum { ABOVE = SYMBOL_READER_INTO + 1 };
    int request[ENDS] = {-1, -1}, answer[ENDS] = {-1, -1}, sources[5] = {-1, -1, -1, -1, -1};
    *running = (struct running){.request = -1, .answer = -1};
    bool is_open = pipe2(request, O_CLOEXEC) == 0 && pipe2(answer, O_CLOEXEC) == 0;
    const int given[5] = {request[0], answer[1], reader->file, reader->kept, reader->into};
    for (size_t i = 0; i < 5 && is_open; i++) is_open = (sources[i] = fcntl(given[i], F_DUPFD_CLOEXEC, ABOVE)) >= 0;
    if (!is_open) (void)error_set_errno(error, "cannot start the reader of debug files");
    int failed = is_open ? spawn(reader->program, sources, &running->pid) : 0;
    if (failed) {
        errno = failed;
        (void)error_set_errno(error, "cannot start the reader of debug files");
    }
    close_open(&request[0]);
    close_open(&answer[1]);
    for (size_t i = 0; i < 5; i++) close_open(&sources[i]);
    if (!is_open || failed) {
        close_open(&request[1]);
        close_open(&answer[0]);
        return STATUS_IO;
    }
    running->request = request[1];
    running->answer = answer[0];
    running->begun_ms = monotonic_ms();
    (void)fcntl(running->request, F_SETFL, O_NONBLOCK);
    return STATUS_OK;
}

/* --- Talk --------------------------------------------------------------------------------------------------------- */

static enum status may_continue(const struct symbol_reader *reader, const struct running *running, struct error *error)
{
    uint64_t waited_ms = monotonic_ms() - running->begun_ms;
    if (atomic_load(reader->is_ending)) return error_set(error, STATUS_IO, 0, "the server is stopping");
    if (waited_ms >= (uint64_t)SYMBOL_READER_SECONDS * 1000)
        return error_set(error, STATUS_MALFORMED, 0, "reading the debug file took longer than %d s",
                         SYMBOL_READER_SECONDS);
    return reader->wait && waited_ms >= SYMBOL_READER_PATIENCE_MS ? reader->wait(reader->context, error) : STATUS_OK;
}

/* Sends the request LEFT and reads the answer, until the process ends it. */
static enum status talk(const struct symbol_reader *reader, struct running *running, struct slice left,
                        struct buffer *answer, struct error *error)
{
    while (running->answer >= 0) {
        struct pollfd polled[ENDS] = {{.fd = running->request, .events = POLLOUT},
                                      {.fd = running->answer, .events = POLLIN}};
        enum status status = may_continue(reader, running, error);
        if (status != STATUS_OK) return status;
        if (poll(polled, ENDS, SYMBOL_READER_POLL_MS) <= 0) continue;
        if (polled[0].revents) {
            ssize_t size = left.size ? write(running->request, left.data, left.size) : 0;
            bool is_later = size < 0 && (errno == EAGAIN || errno == EINTR);
            if (size > 0) left = slice_of(left.data + size, left.size - (size_t)size);
            /* The process sees the end of its request when the pipe is closed. */
            if (!is_later && (size < 0 || left.size == 0)) close_open(&running->request);
        }
        if (polled[1].revents) {
            uint8_t *room = buffer_reserve(answer, READ_AT_ONCE);
            ssize_t size = room ? read(running->answer, room, READ_AT_ONCE) : 0;
            if (size > 0) buffer_grow(answer, (size_t)size);
            if (size == 0 || (size < 0 && errno != EINTR)) close_open(&running->answer);
        }
    }
    return STATUS_OK;
}

/* Ends the process and returns its status. One that ended its answer has a second to end; one that continues after that
 * was taken over by a debug file. */
static int finish(struct running *running, bool has_answered)
{
    int status = 0;
    struct timespec pause = {.tv_nsec = 100000};
    close_open(&running->request);
    close_open(&running->answer);
    for (; has_answered && pause.tv_nsec < 1000000000; pause.tv_nsec *= 2) {
        if (waitpid(running->pid, &status, WNOHANG) == running->pid) return status;
        (void)nanosleep(&pause, NULL);
    }
    (void)kill(running->pid, SIGKILL);
    while (waitpid(running->pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

static enum status explain(int status, struct error *error)
{
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
        return error_set(error, STATUS_MALFORMED, 0,
                         "reading the debug file needed more than %d s of processor time, or did not end",
                         SYMBOL_READER_CPU_SECONDS);
    if (WIFSIGNALED(status))
        return error_set(error, STATUS_MALFORMED, 0, "the reader of the debug file ended by signal %d",
                         WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return error_set(error, STATUS_IO, 0, "the reader of the debug file ended with status %d", WEXITSTATUS(status));
    return STATUS_OK;
}

enum status symbol_reader_ask(const struct symbol_reader *reader, struct slice request, struct buffer *answer,
                              struct error *error)
{
    struct running running;
    enum status status = start(reader, &running, error);
    if (status != STATUS_OK) return status;
    status = talk(reader, &running, request, answer, error);
    int how = finish(&running, status == STATUS_OK);
    if (status == STATUS_OK) status = explain(how, error);
    if (answer->failed) /* then the process may have ended by SIGPIPE */
        status = error_set(error, STATUS_MALFORMED, 0, "the names of a debug file are too long");
    return status;
}
