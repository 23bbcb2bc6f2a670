/* Two threads call exit while a third one is in a flush that takes long.  SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *end(void *unused)
{
    exit(0);
}

static void *flush(void *unused)
{
    (void)offbeat_flush(60000);
    return NULL;
}

int main(void)
{
    const struct timespec moment = {.tv_nsec = 300000000};
    pthread_t threads[2];
    alarm(30);
    offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options),
                                           .traces_sample_rate = 1,
                                           .profile_session_sample_rate = 1,
                                           .spool_directory = ""});
    offbeat_start_profiler();
    (void)pthread_create(&threads[0], NULL, flush, NULL);
    (void)nanosleep(&moment, NULL);
    (void)pthread_create(&threads[1], NULL, end, NULL);
    exit(0);
}
