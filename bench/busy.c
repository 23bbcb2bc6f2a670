/* The busy program whose slowdown is measured: four threads, each with a fixed amount of work spread over a few
 * functions at changing depths, in equal pieces of 10 to 30 µs. What a piece takes longer than most of those around it
 * was not spent on the work: waits for a processor, which the CPU clock does not count, interrupts, and what a profiler
 * does on the thread. A total varies more from run to run, as the processor's speed does. Prints nanoseconds: the time
 * that it took by the wall; the CPU time of the process, of its threads for the work, and of their pieces beyond the
 * usual; and the CPU time that its parent used meanwhile, which is the recorder, if one started it. So starting and
 * finishing a profiler are not counted. Argument: how much work (1 is 100 to 200 ms on one thread).
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 4,
    DEPTH_MAX = 24,
    PIECES_OF_WORK = 9000,
    PIECES_AROUND = 2500, /* some 50 ms, in which the processor's speed is taken to be the same */
    NOISE_NS = 1000,      /* difference between two pieces without an interruption */
};

struct thread {
    pthread_t thread;
    uint32_t *pieces_ns;
    uint64_t cpu_ns, off_ns; /* time of all pieces, and time off the processor between their start and end */
};

static struct thread threads[THREADS];
static size_t piece_count;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((noinline, noclone)) static uint64_t mix(uint64_t value)
{
    for (unsigned i = 0; i < 400; i++) value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9u + i;
    return value;
}

__attribute__((noinline, noclone)) static uint64_t descend(unsigned depth, uint64_t value)
{
    uint64_t below = depth ? descend(depth - 1, value + depth) : value;
    return mix(below) ^ depth;
}

/* The thread's CPU clock is a system call, in which the kernel stops threads whose time is over, and which a profiler
 * may see more often than the work: it is asked only before the first piece and after the last one. */
static void *run(void *argument)
{
    struct thread *thread = argument;
    uint64_t value = 1, start_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), start_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t last_ns = start_ns;
    for (size_t i = 0; i < piece_count; i++) {
        unsigned depth = (unsigned)(i % DEPTH_MAX);
        value = descend(DEPTH_MAX - 1 - depth, descend(depth, value));
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), ns = now_ns - last_ns;
        thread->pieces_ns[i] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
        last_ns = now_ns;
    }
    thread->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns;
    thread->off_ns = last_ns - start_ns - thread->cpu_ns;
    sink += value;
    return NULL;
}

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Returns the part of COUNT PIECES_NS above their median, ns. Sorts them. */
static uint64_t excess_around(uint32_t *pieces_ns, size_t count)
{
    uint64_t excess_ns = 0;
    qsort(pieces_ns, count, sizeof(*pieces_ns), compare);
    uint32_t usual_ns = pieces_ns[count / 2];
    for (size_t i = count / 2; i < count; i++) {
        if (pieces_ns[i] > usual_ns + NOISE_NS) excess_ns += pieces_ns[i] - usual_ns;
    }
    return excess_ns;
}

/* All time off the processor is in pieces that took long. */
static uint64_t excess_of(const struct thread *thread)
{
    uint64_t excess_ns = 0;
    for (size_t i = 0; i < piece_count; i += PIECES_AROUND) {
        size_t left = piece_count - i;
        excess_ns += excess_around(thread->pieces_ns + i, left < PIECES_AROUND ? left : PIECES_AROUND);
    }
    return excess_ns > thread->off_ns ? excess_ns - thread->off_ns : 0;
}

/* Returns an array whose pages are already in memory, so that no page fault is measured. */
static uint32_t *make_pieces(void)
{
    uint32_t *pieces_ns = malloc(piece_count * sizeof(*pieces_ns));
    if (pieces_ns) memset(pieces_ns, 1, piece_count * sizeof(*pieces_ns));
    return pieces_ns;
}

int main(int argc, char **argv)
{
    clockid_t parent;
    uint64_t threads_ns = 0, excess_ns = 0;
    piece_count = PIECES_OF_WORK * (argc > 1 ? strtoul(argv[1], NULL, 10) : 10);
    if (clock_getcpuclockid(getppid(), &parent) != 0) return 1;
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i].pieces_ns = make_pieces();
        if (!threads[i].pieces_ns) return 1;
    }
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t start_parent_ns = clock_ns(parent);
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i].thread, NULL, run, &threads[i]) != 0) return 1;
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i].thread, NULL);
    uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
    uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns, parent_ns = clock_ns(parent) - start_parent_ns;
    for (unsigned i = 0; i < THREADS; i++) {
        threads_ns += threads[i].cpu_ns;
        excess_ns += excess_of(&threads[i]);
    }
    printf("%lu %lu %lu %lu %lu\n", wall_ns, cpu_ns, threads_ns, excess_ns, parent_ns);
    return 0;
}
