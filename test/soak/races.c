/* The sampler, built with TSan: its thread, those that it samples, and those that start, stop and cut it and take what
 * it finished. Its signal handler and what that calls are not instrumented, because TSan's runtime may not be entered
 * at any instruction; slots are handed over by one atomic word.
 *
 *   races SECONDS FOLDER
 *
 * FOLDER is for its recordings. TSan makes the status 66 if it has seen a race. SPDX-License-Identifier: MIT */
#include "sampler/record/finished_recordings.h"
#include "sampler/sampler.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, LATEST_NEWS_NS = 50000000, CUTS_EVERY = 3 };

static atomic_bool is_over;
static unsigned taken_count;

static void spin(unsigned rounds)
{
    for (volatile unsigned i = 0; i < rounds; i++) {
    }
}

static void *wait_and_work(void *number)
{
    while (!is_over) {
        (void)poll(NULL, 0, (int)(uintptr_t)number % 4);
        spin(20000 * ((unsigned)(uintptr_t)number % 3));
    }
    return NULL;
}

static void *end_at_once(void *unused)
{
    spin(10000);
    return NULL;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *take_recordings(void *unused)
{
    char path[RECORDING_PATH_SIZE];
    sampler_leave_out();
    while (!is_over) {
        uint32_t news = finished_recordings_news();
        for (; finished_recordings_take(path); taken_count++) (void)unlink(path);
        if (taken_count % CUTS_EVERY == 0) sampler_cut();
        finished_recordings_wait(news, now_ns() + LATEST_NEWS_NS);
    }
    return NULL;
}

static void make(pthread_t *thread, void *(*run)(void *), uintptr_t number)
{
    if (pthread_create(thread, NULL, run, (void *)number) != 0) exit(1);
}

static void sample_for(const struct sampler_options *options, uint64_t ns)
{
    uint64_t end_ns = now_ns() + ns;
    if (!sampler_start(options)) exit(1);
    while (now_ns() < end_ns) {
        pthread_t brief;
        make(&brief, end_at_once, 0);
        (void)pthread_join(brief, NULL);
        (void)poll(NULL, 0, 2);
    }
    sampler_stop();
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    uint64_t ns = strtoul(argv[1], NULL, 10) * 1000000000u;
    struct sampler_options options = {.frequency_hz = 1009, .recording_ns = 100000000, .directory = argv[2]};
    pthread_t threads[THREADS + 1];
    for (uintptr_t i = 0; i < THREADS; i++) make(&threads[i], wait_and_work, i);
    make(&threads[THREADS], take_recordings, 0);
    for (unsigned turn = 0; turn < 4; turn++) {
        options.mode = turn & 1 ? RECORDING_CPU : RECORDING_WALL;
        sample_for(&options, ns / 4);
    }
    is_over = true;
    finished_recordings_wake();
    for (unsigned i = 0; i <= THREADS; i++) (void)pthread_join(threads[i], NULL);
    printf("%u recordings\n", taken_count);
    return taken_count > 0 ? 0 : 1;
}
