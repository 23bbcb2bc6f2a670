/* A program with known waits, to be recorded by `--mode off-cpu`: threads that sleep, and pairs of which one wakes the
 * other by a condition or a pipe. Each prints its name and the time for which it had no processor, microseconds.
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, noclone))

enum { ROUNDS = 25, PAUSE_US = 20000, SHORT_ROUNDS = 2000, SHORT_US = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned turns;
static int ends[2];

static int64_t microseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

FRAME static void pauses(long duration_us)
{
    const struct timespec duration = {.tv_nsec = duration_us * 1000};
    (void)nanosleep(&duration, NULL);
    __asm__ volatile("" ::: "memory"); /* no jump in place of the call */
}

static void sleeps_long(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) pauses(PAUSE_US);
}

static void sleeps_short(void)
{
    for (unsigned i = 0; i < SHORT_ROUNDS; i++) pauses(SHORT_US);
}

static void awaits_turn(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        while (turns == 0) pthread_cond_wait(&changed, &lock);
        turns--;
        pthread_mutex_unlock(&lock);
    }
}

static void gives_turn(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        pauses(PAUSE_US);
        pthread_mutex_lock(&lock);
        turns++;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&changed);
    }
}

static void reads_pipe(void)
{
    char byte;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (read(ends[0], &byte, 1) != 1) abort();
    }
}

static void fills_pipe(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        pauses(PAUSE_US);
        if (write(ends[1], "x", 1) != 1) abort();
    }
}

struct job {
    const char *name;
    void (*work)(void);
};

static void *run(void *argument)
{
    const struct job *job = argument;
    prctl(PR_SET_NAME, job->name);
    int64_t start_us = microseconds(CLOCK_MONOTONIC), start_cpu_us = microseconds(CLOCK_THREAD_CPUTIME_ID);
    job->work();
    int64_t cpu_us = microseconds(CLOCK_THREAD_CPUTIME_ID) - start_cpu_us;
    printf("%s %lld\n", job->name, (long long)(microseconds(CLOCK_MONOTONIC) - start_us - cpu_us));
    return NULL;
}

int main(void)
{
    static struct job jobs[] = {{"sleeps_long", sleeps_long}, {"sleeps_short", sleeps_short},
                                {"awaits_turn", awaits_turn}, {"gives_turn", gives_turn},
                                {"reads_pipe", reads_pipe},   {"fills_pipe", fills_pipe}};
    enum { JOBS = sizeof(jobs) / sizeof(jobs[0]) };
    pthread_t threads[JOBS];
    pauses(10 * PAUSE_US); /* the recorder begins */
    if (pipe(ends) != 0) abort();
    for (unsigned i = 0; i < JOBS; i++) pthread_create(&threads[i], NULL, run, &jobs[i]);
    for (unsigned i = 0; i < JOBS; i++) pthread_join(threads[i], NULL);
    return 0;
}
