/* SPDX-License-Identifier: MIT */
#include "helper/make.h"

#include "base/clocks.h"
#include "base/file.h"
#include "base/timespec.h"
#include "deliver/request_file.h"
#include "symbolize/index_store.h"
#include "symbolize/symbolizer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_MAX = 50 /* less than a chunk lasts */, LATE_NICE = 10 };

static char **variables; /* environment of this process */

void make_keep_environment(char **environment)
{
    variables = environment;
}

/* --- The process that makes them ---------------------------------------------------------------------------------- */

static void name_frames(struct profile *profile)
{
    const struct symbolizer_options options = {.sources = SYMBOLS_OF_THIS_MACHINE, .trusts_paths = true};
    (void)symbolize_profile(profile, &options, NULL, NULL);
    index_store_make_room();
}

/* Enters the folder of PATH, where the recordings are. */
static bool enter_folder(const char *path)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    return slash && chdir(folder) == 0;
}

static enum status deliver(const char *path, bool has_names, struct buffer *payloads, struct error *error)
{
    struct buffer bytes;
    struct request_file file = {0};
    buffer_init(&bytes, REQUEST_BYTES_MAX);
    enum status status = file_read(path, &bytes, error);
    if (status == STATUS_OK) status = chunk_request_read(buffer_slice(&bytes), &file, error);
    if (status == STATUS_OK && !enter_folder(path)) status = error_set_errno(error, "cannot enter its folder");
    if (status == STATUS_OK)
        status =
            deliver_recordings(&file.request, has_names ? name_frames : NULL, deliver_append_line, payloads, error);
    chunk_request_fini(&file);
    buffer_fini(&bytes);
    return status;
}

static const char with_names[] = "names", at_once[] = "at-once";

int make_payloads(const char *const *words)
{
    struct error error = {0};
    struct buffer payloads;
    struct make_options options = {0};
    for (size_t i = 1; words[0] && words[i]; i++) {
        options.has_names = options.has_names || strcmp(words[i], with_names) == 0;
        options.is_awaited = options.is_awaited || strcmp(words[i], at_once) == 0;
    }
    if (!words[0]) return MAKE_FAILED;
    if (!options.is_awaited) (void)setpriority(PRIO_PROCESS, 0, LATE_NICE);
    buffer_init(&payloads, CHUNK_PAYLOADS_BYTES_MAX);
    enum status status = deliver(words[0], options.has_names, &payloads, &error);
    int outcome = status == STATUS_OK ? MAKE_DONE : status == STATUS_MALFORMED ? MAKE_REJECTED : MAKE_FAILED;
    if (outcome != MAKE_DONE) {
        buffer_clear(&payloads);
        buffer_append_text(&payloads, error.message);
    }
    if (file_write_descriptor(STDOUT_FILENO, buffer_slice(&payloads), &error) != STATUS_OK) outcome = MAKE_FAILED;
    buffer_fini(&payloads);
    return outcome;
}

/* --- The process that waits --------------------------------------------------------------------------------------- */

static bool start(const char *path, struct make_options options, int output, pid_t *ret_process)
{
    const char *words[6] = {"offbeat-helper", "--make", path};
    size_t count = 3;
    if (options.has_names) words[count++] = with_names;
    if (options.is_awaited) words[count] = at_once;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    (void)sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    int error =
        posix_spawn(ret_process, "/proc/self/exe", &actions, &attributes, (char *const *)(uintptr_t)words, variables);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return error == 0;
}

/* Appends what comes from INPUT to OUT until its end. False after DEADLINE_NS or on a failure. */
static bool read_until_end(int input, uint64_t deadline_ns, struct buffer *out)
{
    for (;;) {
        uint64_t now_ns = clock_monotonic_ns();
        struct pollfd wait = {.fd = input, .events = POLLIN};
        if (now_ns >= deadline_ns || poll(&wait, 1, (int)((deadline_ns - now_ns) / MILLISECOND_NS + 1)) == 0)
            return false;
        enum { ROOM = 1 << 16 };
        uint8_t *room = buffer_reserve(out, ROOM);
        ssize_t got = room ? read(input, room, ROOM) : -1;
        if (got < 0 && room && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        buffer_grow(out, (size_t)got);
    }
}

int make_in_process(const char *path, struct make_options options, struct buffer *payloads, struct error *error)
{
    int ends[2], status = 0;
    pid_t process = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        (void)error_set_errno(error, "no pipe");
        return MAKE_FAILED;
    }
    bool is_started = start(path, options, ends[1], &process);
    (void)close(ends[1]);
    bool is_read = is_started && read_until_end(ends[0], clock_monotonic_ns() + SECONDS_MAX * SECOND_NS, payloads);
    (void)close(ends[0]);
    if (is_started && !is_read) (void)kill(process, SIGKILL);
    while (is_started && waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    if (is_read && WIFEXITED(status) && WEXITSTATUS(status) <= MAKE_REJECTED) return WEXITSTATUS(status);
    if (is_read && WIFEXITED(status))
        (void)error_set(error, STATUS_UNSUPPORTED, 0, "%.*s", (int)payloads->size, (const char *)payloads->data);
    else
        (void)error_set(error, STATUS_UNSUPPORTED, 0,
                        is_started ? "it took too long, or ended by a signal" : "no process can be started");
    return MAKE_FAILED;
}
