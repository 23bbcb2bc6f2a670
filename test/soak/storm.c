/* Runs one storm:  storm NAME SECONDS  (without arguments: lists them). SPDX-License-Identifier: MIT */
#include "storm.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

const char *storm_program, *storm_folder;
static uint64_t end_ns;

void storm_fail(const char *file, int line, const char *what)
{
    int errno_value = errno;
    const char *slash = strrchr(file, '/');
    char text[512];
    int length = snprintf(text, sizeof(text), "%s:%d: %s (errno: %s)\n", slash ? slash + 1 : file, line, what,
                          strerror(errno_value));
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0) _exit(2);
    _exit(1);
}

void storm_note(const char *name, long long number)
{
    printf("%s: %lld\n", name, number);
}

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_ns(uint64_t duration_ns)
{
    struct timespec left = {.tv_sec = (time_t)(duration_ns / 1000000000u),
                            .tv_nsec = (long)(duration_ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0) {
    }
}

bool storm_continues(void)
{
    return now_ns() < end_ns;
}

int storm_seconds_left(void)
{
    uint64_t now = now_ns();
    return now < end_ns ? (int)((end_ns - now) / 1000000000u) + 1 : 0;
}

/* --- Work --------------------------------------------------------------------------------------------------------- */

enum { SEEDS = 16, WORK_DEPTH = 24 };
static uint64_t results[SEEDS];

__attribute__((noinline)) static uint64_t descend(unsigned depth, uint64_t value)
{
    for (unsigned i = 0; i < 400; i++) value = value * 6364136223846793005u + depth;
    if (depth == 0) return value;
    return descend(depth - 1, value ^ value >> 31) + depth;
}

void storm_work(unsigned seed)
{
    CHECK(descend(WORK_DEPTH, seed % SEEDS) == results[seed % SEEDS]);
}

static pthread_t crowd[CROWD_MAX];
static unsigned crowd_count;

static void *run_crowd(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    for (unsigned i = 0; storm_continues(); i++) {
        storm_work(i);
        if (number % 2 == 0 && i % 8 == 0) sleep_ns(1000000);
    }
    return NULL;
}

void storm_crowd(unsigned count)
{
    for (uintptr_t i = 0; i < count && crowd_count < CROWD_MAX; i++) {
        crowd[crowd_count++] = storm_thread(run_crowd, (void *)i);
    }
}

void storm_crowd_join(void)
{
    while (crowd_count > 0) storm_join(crowd[--crowd_count]);
}

pthread_t storm_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    CHECK((errno = pthread_create(&thread, NULL, run, argument)) == 0);
    return thread;
}

void storm_join(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}

/* --- Children ----------------------------------------------------------------------------------------------------- */

static int wait_for(pid_t child)
{
    int status = 0;
    pid_t ended;
    CHECK(child > 0);
    do ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    CHECK(ended == child);
    return status;
}

void storm_expect_exit(pid_t child, int expected)
{
    int status = wait_for(child);
    errno = WIFSIGNALED(status) ? -WTERMSIG(status) : 0; /* printed as "Unknown error -11" */
    CHECK(WIFEXITED(status));
    errno = WEXITSTATUS(status);
    CHECK(WEXITSTATUS(status) == expected);
}

void storm_expect_signal(pid_t child, int number)
{
    int status = wait_for(child);
    errno = status;
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == number);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct storm *const tables[] = {storms_of_limits,  storms_of_modules, storms_of_processes,
                                             storms_of_signals, storms_of_threads, storms_of_seccomp};
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

static const struct storm *storm_named(const char *name)
{
    for (unsigned i = 0; i < TABLES; i++) {
        for (const struct storm *storm = tables[i]; storm->name; storm++) {
            if (!name) puts(storm->name);
            if (name && strcmp(storm->name, name) == 0) return storm;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static char program[4096], folder[4096];
    CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    strcpy(folder, program);
    *strrchr(folder, '/') = '\0';
    storm_program = program;
    storm_folder = folder;
    for (unsigned i = 0; i < SEEDS; i++) results[i] = descend(WORK_DEPTH, i);
    if (argc > 2 && strcmp(argv[1], "process") == 0) return process_main(argc - 2, argv + 2);
    const struct storm *storm = storm_named(argc == 3 ? argv[1] : NULL);
    if (!storm) return argc == 1 ? 0 : 2;
    end_ns = now_ns() + (uint64_t)(strtod(argv[2], NULL) * 1e9);
    storm->run();
    return 0;
}
