/* Threads that stay, each after one that ends at a random time: the kernel lists them while others end.
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 800, FIRST_END_US = 300000, ENDS_US = 1500000, END_SECONDS = 2 };

static double end;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *stay(void *argument)
{
    while (now() < end) usleep(3000);
    return argument;
}

static void *leave(void *life_us)
{
    usleep(*(useconds_t *)life_us);
    return NULL;
}

int main(void)
{
    static pthread_t threads[2 * PAIRS];
    static useconds_t lives_us[PAIRS];
    end = now() + END_SECONDS;
    for (size_t i = 0; i < PAIRS; i++) {
        lives_us[i] = (useconds_t)(FIRST_END_US + random() % ENDS_US);
        if (pthread_create(&threads[2 * i], NULL, leave, &lives_us[i]) != 0) return 2;
        if (pthread_create(&threads[2 * i + 1], NULL, stay, NULL) != 0) return 2;
    }
    for (size_t i = 0; i < 2 * PAIRS; i++) pthread_join(threads[i], NULL);
    return 0;
}
