/* A program that does for some seconds, once it has read a line, what a recorder may stumble over: processes that end
 * at once, threads that end at once, code that is made and unloaded all the time, or stacks too deep to walk in the
 * kernel. It prints its CPU time and that of its children in ns. Arguments: the storm, seconds, libraries.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each function is its own frame, by its own name: never inlined, copied, or left by a jump. */
#define FRAME __attribute__((noinline, noclone))
#define STAY_A_FRAME() __asm__ volatile("" ::: "memory")

enum { DEPTH = 400, CHILDREN_A_SECOND = 1000 };

static volatile uint64_t sink;
static const char *own_path;
static char **libraries;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

FRAME static void burn(unsigned microseconds)
{
    uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + microseconds * UINT64_C(1000);
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
        for (uint64_t i = 0; i < 500; i++) sink = sink * 31 + i;
    STAY_A_FRAME();
}

/* --- Processes and threads that end at once ------------------------------------------------------------------------
 */

FRAME static void works_as_child(void)
{
    burn(200);
    STAY_A_FRAME();
}

static void forks(uint64_t end_ns)
{
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    for (unsigned i = 0; clock_ns(CLOCK_MONOTONIC) < end_ns; i++) {
        pid_t child = fork();
        if (child < 0) _exit(1);
        if (child == 0) {
            works_as_child();
            if (i % 4 == 0) (void)execl(own_path, own_path, "ends", (char *)NULL);
            _exit(0);
        }
        (void)waitpid(child, NULL, 0);
        uint64_t passed_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
        uint64_t due_ns = i * (UINT64_C(1000000000) / CHILDREN_A_SECOND);
        if (due_ns > passed_ns) (void)usleep((useconds_t)((due_ns - passed_ns) / 1000));
    }
}

FRAME static void *works_as_thread(void *unused)
{
    burn(200);
    STAY_A_FRAME();
    return unused;
}

static void starts_threads(uint64_t end_ns)
{
    pthread_t thread;
    while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
        if (pthread_create(&thread, NULL, works_as_thread, NULL) != 0) _exit(1);
        (void)pthread_join(thread, NULL);
    }
}

/* --- Code that comes and goes --------------------------------------------------------------------------------------
 */

/* Makes a function that calls its argument, with a frame of SIZE bytes, at a new place; calls it; unmaps it. */
FRAME static void calls_made_code(uint8_t size)
{
    const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, size, 0x48, 0x89, 0xf8,
                            0xbf, 0xc8, 0,    0,    0,    0xff, 0xd0, 0xc9, 0xc3}; /* push rbp; mov rbp, rsp; sub; mov
                                                                                      rax, rdi; mov 200; call; leave */
    void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*call)(void (*)(unsigned)) = NULL;
    if (place == MAP_FAILED) _exit(1);
    memcpy(place, code, sizeof(code));
    *(void **)&call = place;
    call(burn);
    (void)munmap(place, 4096);
    STAY_A_FRAME();
}

/* Burns long enough for the library that calls it to be listed. */
FRAME static void burn_longer(unsigned microseconds)
{
    burn(microseconds * 1000);
    STAY_A_FRAME();
}

FRAME static void calls_loaded_code(const char *path, bool is_long)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*call)(void (*)(unsigned)) = NULL;
    if (library) *(void **)&call = dlsym(library, "call_back");
    if (!call) _exit(1);
    call(is_long ? burn_longer : burn);
    (void)dlclose(library);
    STAY_A_FRAME();
}

static void changes_code(uint64_t end_ns)
{
    for (unsigned i = 0; clock_ns(CLOCK_MONOTONIC) < end_ns; i++) {
        calls_made_code((uint8_t)(16 + i % 4 * 16));
        calls_loaded_code(libraries[i % 2], i % 16 < 2);
    }
}

/* --- Deep stacks ---------------------------------------------------------------------------------------------------
 */

/* Burns SECONDS of CPU time at the end of a recursion. */
FRAME static void descends(unsigned depth, uint64_t seconds)
{
    volatile char room[64] = {0};
    if (depth > 0) {
        descends(depth - 1, seconds + (uint64_t)room[depth % 64]);
    } else {
        while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < seconds * UINT64_C(1000000000)) burn(1000);
    }
    STAY_A_FRAME();
}

static uint64_t used_ns(int who)
{
    struct rusage used;
    (void)getrusage(who, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u;
}

int main(int count, char **arguments)
{
    const char *storm = count > 1 ? arguments[1] : "";
    if (strcmp(storm, "ends") == 0) return 0;
    if (count < 3) return 2;
    own_path = arguments[0];
    libraries = arguments + 3;
    (void)puts("ready");
    (void)fflush(stdout);
    (void)getchar();
    uint64_t seconds = strtoull(arguments[2], NULL, 10);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + seconds * UINT64_C(1000000000);
    if (strcmp(storm, "processes") == 0) forks(end_ns);
    if (strcmp(storm, "threads") == 0) starts_threads(end_ns);
    if (strcmp(storm, "code") == 0 && count > 4) changes_code(end_ns);
    if (strcmp(storm, "deep") == 0) descends(DEPTH, seconds);
    (void)printf("%llu\n", (unsigned long long)(used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN)));
    return 0;
}
