/* SPDX-License-Identifier: MIT */
#include <offbeat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static atomic_bool over;
static _Atomic(struct offbeat_span *) shared;
static double smp(void *d, const struct offbeat_sampling *s)
{
    return 0.5;
}
static bool bs(void *d, const char *t, const char *p, size_t n)
{
    return strlen(p) == n;
}
static void lg(void *d, const char *m)
{
    (void)m;
}
static void init(int k)
{
    offbeat_init(
        &(struct offbeat_options){.size = sizeof(struct offbeat_options),
                                  .traces_sampler = k & 1 ? smp : NULL,
                                  .traces_sample_rate = 1,
                                  .profile_session_sample_rate = 1,
                                  .profile_lifecycle = k & 2 ? OFFBEAT_LIFECYCLE_TRACE : OFFBEAT_LIFECYCLE_MANUAL,
                                  .profiles_sample_rate = k & 4 ? 0.5 : 0,
                                  .chunk_seconds = 1,
                                  .shutdown_timeout_ms = 300,
                                  .before_send = k & 8 ? bs : NULL,
                                  .log = lg,
                                  .debug = true,
                                  .release = k & 1 ? "a" : "bbbbbbbbbbbb",
                                  .frame_rate_hz = k & 1 ? 30 : 60});
}
static void *any(void *x)
{
    unsigned r = (unsigned)(long)x * 7919 + 1;
    struct offbeat_headers h;
    char id[OFFBEAT_ID_SIZE];
    while (!over) {
        r = r * 1103515245 + 12345;
        switch ((r >> 16) % 16) {
        case 0:
            offbeat_start_profiler();
            break;
        case 1:
            offbeat_stop_profiler();
            break;
        case 2:
            offbeat_background();
            break;
        case 3:
            offbeat_foreground();
            break;
        case 4:
            offbeat_measure("m", "byte", r);
            break;
        case 5:
            offbeat_frame_rendered(r);
            break;
        case 6:
            offbeat_profiler_id(id);
            break;
        case 7:
            (void)offbeat_counts();
            break;
        case 8:
        case 9:
        case 10: {
            struct offbeat_span *t = offbeat_transaction_start("t", "o");
            offbeat_span_enter(t);
            struct offbeat_span *s = offbeat_span_start("x", "y");
            offbeat_span_set_text(s, "k", "v");
            offbeat_span_set_tag(t, "k", "v");
            offbeat_span_set_description(s, "dd");
            offbeat_span_set_transaction_name(s, "n2", OFFBEAT_SOURCE_URL);
            offbeat_span_headers(t, "a=b", &h);
            struct offbeat_span *o = atomic_exchange(&shared, offbeat_span_ref(t));
            offbeat_span_set_number(o, "q", 1);
            offbeat_span_finish(offbeat_span_start_child(o, "c", "d"));
            offbeat_span_unref(o);
            offbeat_span_finish(s);
            offbeat_span_finish(t);
            break;
        }
        case 11: {
            struct offbeat_span *c = offbeat_span_current();
            offbeat_span_set_status(c, OFFBEAT_STATUS_OK);
            offbeat_span_unref(c);
            break;
        }
        default:
            for (volatile int i = 0; i < 2000; i++)
                ;
        }
    }
    return 0;
}
static void *life(void *x)
{
    int k = (int)(long)x;
    while (!over) {
        init(k++);
        struct timespec z = {0, 400000000};
        nanosleep(&z, 0);
        if (k % 3 == 0) offbeat_shutdown();
        if (k % 4 == 1) offbeat_flush(200);
    }
    return 0;
}
int main(int c, char **v)
{
    int sec = c > 1 ? atoi(v[1]) : 20;
    pthread_t t[10];
    for (long i = 0; i < 6; i++) pthread_create(&t[i], 0, any, (void *)i);
    for (long i = 6; i < 8; i++) pthread_create(&t[i], 0, life, (void *)i);
    sleep(sec);
    over = 1;
    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);
    offbeat_span_unref(atomic_exchange(&shared, NULL));
    offbeat_shutdown();
    puts("lived");
    return 0;
}
