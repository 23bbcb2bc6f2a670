/* Threads that sleep, and what the process costs meanwhile. Prints its CPU time in nanoseconds a second. Arguments:
 *
 *   sleepers THREADS WAKES SECONDS [timer]
 *   sleepers unperfed COMMAND...
 *
 * WAKES: how often a second each thread wakes up; 0: never. timer: one more thread does nothing 101 times a second,
 * which is what any sampler has to do. unperfed: runs COMMAND, which is denied perf_event_open, as in most containers.
 * The filter is inherited, because the sampler ends when its program installs one.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 20000, STACK_BYTES = 64 << 10, NANOSECONDS = 1000000000, TICKS_A_SECOND = 101 };

static uint64_t wakes;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / NANOSECONDS), .tv_nsec = (long)(ns % NANOSECONDS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static void *repeat(uint64_t period_ns, uint64_t offset_ns)
{
    for (uint64_t next_ns = clock_ns(CLOCK_MONOTONIC) + offset_ns;; next_ns += period_ns) sleep_until(next_ns);
    return NULL;
}

static void *run_sleeper(void *number)
{
    if (wakes == 0)
        for (;;) pause();
    uint64_t period_ns = NANOSECONDS / wakes;
    return repeat(period_ns, period_ns * ((uintptr_t)number % 97) / 97);
}

static void *run_timer(void *unused)
{
    return repeat(NANOSECONDS / TICKS_A_SECOND, 0);
}

static int deny_perf(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int start(void *(*run)(void *), uintptr_t number)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    return pthread_create(&thread, &attributes, run, (void *)number);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "unperfed") == 0) return deny_perf() == 0 ? execvp(argv[2], argv + 2) : 1;
    if (argc < 4) return 2;
    uintptr_t threads = strtoul(argv[1], NULL, 10);
    wakes = strtoul(argv[2], NULL, 10);
    uint64_t seconds = strtoul(argv[3], NULL, 10);
    sleep_until(clock_ns(CLOCK_MONOTONIC) + NANOSECONDS / 5); /* a profiler that is preloaded has started by now */
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "timer") == 0 && start(run_timer, 0) != 0) return 1;
    }
    for (uintptr_t i = 0; i < threads && i < THREADS_MAX; i++)
        if (start(run_sleeper, i) != 0) return 1;
    sleep_until(clock_ns(CLOCK_MONOTONIC) + 2ull * NANOSECONDS);
    uint64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    sleep_until(clock_ns(CLOCK_MONOTONIC) + seconds * NANOSECONDS);
    printf("%lu\n", (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns) / seconds);
    return 0;
}
