/* SPDX-License-Identifier: MIT */
#include <offbeat.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <time.h>
/* a thread is inside of a start/finish while another calls exit(): does exit end within the promise? */
static void *spans(void *x)
{
    for (;;) {
        offbeat_span_finish(offbeat_transaction_start("a", "b"));
    }
    return 0;
}
int main(void)
{
    offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options),
                                           .traces_sample_rate = 1,
                                           .profile_session_sample_rate = 1,
                                           .shutdown_timeout_ms = 500});
    offbeat_start_profiler();
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, spans, 0);
    struct timespec z = {0, 300000000};
    nanosleep(&z, 0);
    alarm(20);
    exit(0);
}
