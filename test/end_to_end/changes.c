/* A program that changes while it is recorded, once it has read a line: it executes itself again, loads and unloads two
 * libraries at the same addresses, forks, or has a process number used again. SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each function is its own frame, by its own name: never inlined, copied, or left by a jump. */
#define FRAME __attribute__((noinline, noclone))
#define STAY_A_FRAME() __asm__ volatile("" ::: "memory")

static volatile uint64_t sink;

FRAME static void burn(unsigned milliseconds)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    int64_t end_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec + milliseconds * INT64_C(1000000);
    do {
        for (uint64_t i = 0; i < 1000; i++) sink = sink * 31 + i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < end_ns);
}

FRAME static void burns_as_odd(void)
{
    burn(10);
    STAY_A_FRAME();
}

FRAME static void burns_as_even(void)
{
    volatile char room[512] = {0};
    burn(10 + (unsigned)room[1]);
    STAY_A_FRAME();
}

/* Executes itself REST more times, in turn as an odd and an even program. */
static int executes(const char *program, unsigned rest)
{
    char number[16];
    if (rest % 2 != 0)
        burns_as_odd();
    else
        burns_as_even();
    if (rest == 0) return 0;
    (void)snprintf(number, sizeof(number), "%u", rest - 1);
    (void)execl(program, program, "executes", number, (char *)NULL);
    return 1;
}

/* Calls a function of FIRST and one of SECOND in turn. */
static int loads(const char *first, const char *second, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        void *library = dlopen(i % 2 == 0 ? first : second, RTLD_NOW | RTLD_LOCAL);
        void (*call)(void (*)(unsigned)) = NULL;
        if (library) *(void **)&call = dlsym(library, "call_back");
        if (!call) return 1;
        call(burn);
        (void)dlclose(library);
    }
    return 0;
}

static int forks(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            burns_as_odd();
            _exit(0);
        }
        (void)waitpid(child, NULL, 0);
    }
    return 0;
}

/* Burns as a child, which is killed and followed by another one with the same number. Returns 2 if this is denied. */
static int reuses(void)
{
    pid_t first = fork();
    if (first == 0) {
        for (;;) burns_as_odd();
    }
    (void)printf("%d\n", (int)first);
    (void)fflush(stdout);
    (void)getchar();
    (void)kill(first, SIGKILL);
    (void)waitpid(first, NULL, 0);
    struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&first, .set_tid_size = 1};
    long second = syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (second < 0) return 2;
    if (second == 0) {
        for (unsigned i = 0; i < 30; i++) burns_as_even();
        _exit(0);
    }
    (void)waitpid((pid_t)second, NULL, 0);
    return 0;
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "";
    if (strcmp(mode, "reuses") == 0) return reuses();
    bool is_first = getenv("CHANGES_HAS_BEGUN") == NULL;
    if (is_first) {
        (void)puts("ready");
        (void)fflush(stdout);
        (void)getchar();
        (void)setenv("CHANGES_HAS_BEGUN", "1", 1);
    }
    unsigned times = count > 2 ? (unsigned)strtoul(arguments[2], NULL, 10) : 0;
    if (strcmp(mode, "executes") == 0) return executes(arguments[0], times);
    if (strcmp(mode, "loads") == 0 && count > 4) return loads(arguments[3], arguments[4], times);
    if (strcmp(mode, "forks") == 0) return forks(times);
    return 2;
}
