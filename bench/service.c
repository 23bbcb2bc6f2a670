/* A service of 50 threads for SECONDS: busy, where they share about one processor among requests of some milliseconds,
 * with stacks of many shapes; or idle, where each wakes up once a second. Profiles itself if OFFBEAT_DSN says where to.
 * At its end a JSON object on standard output: what it did, and what processor time went where.
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <inttypes.h>
#include <offbeat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 50, DEPTH_MAX = 24, WORK_NS = 2000000, BUSY_PAUSE_NS = 98000000, IDLE_PAUSE_NS = 999000000 };

static atomic_bool is_over;
static atomic_ulong rounds;
static long pause_ns;
static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Steps that call each other along a path that the request chooses. */
static void step(uint64_t path, unsigned depth);

#define STEP(number)                                                                                                   \
    __attribute__((noinline)) static void step_##number(uint64_t path, unsigned depth)                                 \
    {                                                                                                                  \
        for (unsigned i = 0; i < 200; i++) sink += path >> (i & 31);                                                   \
        if (depth > 0) step(path >> 2, depth - 1);                                                                     \
        sink += number;                                                                                                \
    }
STEP(0)
STEP(1)
STEP(2)
STEP(3)

static void step(uint64_t path, unsigned depth)
{
    static void (*const steps[])(uint64_t, unsigned) = {step_0, step_1, step_2, step_3};
    steps[path & 3](path, depth);
}

static void serve(uint64_t *seed)
{
    uint64_t end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns) step(*seed >> 20, (unsigned)(*seed >> 60) + DEPTH_MAX - 16);
}

static void *run(void *context)
{
    uint64_t seed = (uintptr_t)context;
    while (!atomic_load(&is_over)) {
        const struct timespec pause = {.tv_nsec = pause_ns};
        serve(&seed);
        atomic_fetch_add(&rounds, 1);
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Returns the CPU time of the threads of this process whose name begins with "offbeat". */
static uint64_t own_threads_ns(void)
{
    uint64_t sum = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[300], name[32] = "";
        uint64_t cpu_ns = 0;
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof(name), file) && strncmp(name, "offbeat", 7) == 0) {
            FILE *statistics = NULL;
            (void)snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", entry->d_name);
            statistics = fopen(path, "r");
            if (statistics && fscanf(statistics, "%" SCNu64, &cpu_ns) == 1) sum += cpu_ns;
            if (statistics) (void)fclose(statistics);
        }
        if (file) (void)fclose(file);
    }
    if (tasks) (void)closedir(tasks);
    return sum;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    unsigned seconds = argc > 2 ? (unsigned)atoi(argv[2]) : 10;
    pause_ns = argc > 1 && strcmp(argv[1], "busy") == 0 ? BUSY_PAUSE_NS : IDLE_PAUSE_NS;
    const struct offbeat_options options = {.size = sizeof(options), .profile_session_sample_rate = 1};
    if (offbeat_init(&options)) offbeat_start_profiler();
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < THREADS; i++) (void)pthread_create(&threads[i], NULL, run, (void *)(i + 1));
    (void)sleep(seconds);
    (void)offbeat_flush(20000);
    uint64_t wall_ns = now_ns(CLOCK_MONOTONIC) - start_ns, all_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    printf("{\"wall_ns\": %" PRIu64 ", \"rounds\": %lu, \"process_ns\": %" PRIu64 ", \"own_ns\": %" PRIu64
           ", \"made\": %" PRIu64 ", \"sent\": %" PRIu64 "}\n",
           wall_ns, atomic_load(&rounds), all_ns, own_threads_ns(), offbeat_counts().made, offbeat_counts().sent);
    atomic_store(&is_over, true);
    for (size_t i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
    return 0;
}
