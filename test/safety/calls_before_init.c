/* SPDX-License-Identifier: MIT */
#include <offbeat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static atomic_bool over;
static _Atomic long calls[4];
static void *hammer(void *x)
{
    long k = (long)x;
    while (!over) {
        if (k < 3) {
            offbeat_span_finish(offbeat_transaction_start("a", "b"));
        } else
            offbeat_start_profiler();
        calls[k]++;
    }
    return 0;
}
int main(void)
{
    pthread_t t[4];
    for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, hammer, (void *)i);
    struct timespec z = {0, 2000000 + (getpid() % 1000) * 1000};
    nanosleep(&z, 0);
    alarm(8);
    offbeat_init(&(struct offbeat_options){
        .size = sizeof(struct offbeat_options), .traces_sample_rate = 0.0001, .shutdown_timeout_ms = 200});
    struct timespec y = {0, 50000000};
    nanosleep(&y, 0);
    over = 1;
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    offbeat_shutdown();
    return 0;
}
