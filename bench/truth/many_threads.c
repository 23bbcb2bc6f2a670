/* Threads that compute and sleep in turn, for random times of 0 to 10 ms. Argument: how many.
 * SPDX-License-Identifier: MIT */
#include "truth.h"

enum { THREADS_MAX = 4000 };

static struct {
    double created;
    struct spent computing, sleeping, all;
} threads[THREADS_MAX];
static pthread_key_t key;
static double end;

FUNCTION static void compute(double seconds)
{
    double until = clock_seconds(CLOCK_THREAD_CPUTIME_ID) + seconds;
    while (clock_seconds(CLOCK_THREAD_CPUTIME_ID) < until) {
    }
}

FUNCTION static void sleeps(double seconds)
{
    sleep_us(1e6 * seconds);
    KEEP_FRAME();
}

static void note_end(void *place)
{
    size_t i = (size_t)(uintptr_t)place - 1;
    threads[i].all = spent_until_now();
    threads[i].all.wall -= threads[i].created;
}

static void *run(void *place)
{
    size_t i = (size_t)(uintptr_t)place;
    unsigned seed = (unsigned)i + 1;
    pthread_setspecific(key, (void *)(uintptr_t)(i + 1));
    while (now() < end) {
        MEASURE(threads[i].computing, compute(0.01 * rand_r(&seed) / RAND_MAX));
        MEASURE(threads[i].sleeping, sleeps(0.01 * rand_r(&seed) / RAND_MAX));
    }
    return NULL;
}

static void add(struct spent *sum, struct spent more)
{
    sum->wall += more.wall;
    sum->cpu += more.cpu;
}

int main(int argc, char **argv)
{
    static pthread_t ids[THREADS_MAX];
    size_t count = argc > 1 ? (size_t)atol(argv[1]) : 0;
    if (count == 0 || count > THREADS_MAX) return 2;
    struct spent computing = {0}, sleeping = {0}, all = {0};
    pthread_key_create(&key, note_end);
    end = end_after(1);
    for (size_t i = 0; i < count; i++) {
        threads[i].created = now();
        if (pthread_create(&ids[i], NULL, run, (void *)(uintptr_t)i) != 0) return 3;
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(ids[i], NULL);
        add(&computing, threads[i].computing);
        add(&sleeping, threads[i].sleeping);
        add(&all, threads[i].all);
    }
    PRINT_TRUTH(compute, computing);
    PRINT_TRUTH(sleeps, sleeping);
    print_spent("TRUTH", "(all)", all);
}
