/* Allocates, runs threads and uses the library, and prints the same whether that has a DSN or not. Built with a
 * sanitizer by sdk.py, and linked with the library, which has none. SPDX-License-Identifier: MIT */
#include <offbeat.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 3, STATUS = 7 };

static bool keep(void *data, const char *type, const char *payload, size_t size)
{
    return strlen(payload) == size && type[0] != '\0';
}

static bool change(void *data, struct offbeat_span *span)
{
    struct offbeat_attribute attribute;
    const char *op = offbeat_span_op(span);
    for (size_t i = 0; offbeat_span_attribute(span, i, &attribute); i++) {
        if (strcmp(attribute.key, "") == 0) return false;
    }
    if (op && strcmp(op, "never") == 0) return false;
    offbeat_span_set_text(span, "changed", "yes");
    return true;
}

static void *work(void *argument)
{
    struct timespec begin, now;
    unsigned long *sum = argument;
    struct offbeat_span *root = offbeat_transaction_start("work", "test");
    offbeat_span_enter(root);
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        char *text = malloc(1000);
        struct offbeat_span *span = offbeat_span_start("part", "test");
        (void)snprintf(text, 1000, "%lu", *sum);
        *sum = *sum * 31 + strlen(text);
        offbeat_span_set_text(span, "text", text);
        offbeat_span_finish(span);
        free(text);
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 700);
    offbeat_span_finish(root);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned long sums[THREADS] = {1, 2, 3};
    struct offbeat_headers headers;
    char id[OFFBEAT_ID_SIZE];
    const struct offbeat_options options = {.size = sizeof(options),
                                            .traces_sample_rate = 1,
                                            .profile_session_sample_rate = 1,
                                            .before_send = keep,
                                            .before_send_span = change,
                                            .before_send_transaction = change};
    (void)offbeat_init(&options);
    offbeat_start_profiler();
    for (int i = 0; i < THREADS; i++) (void)pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
    struct offbeat_span *root = offbeat_transaction_start("last", "test");
    bool has_headers = offbeat_span_headers(root, "other=1", &headers);
    bool has_id = offbeat_profiler_id(id);
    offbeat_span_finish(root);
    offbeat_flush(20000);
    if (has_headers != (headers.sentry_trace[0] != '\0')) (void)puts("headers");
    if (has_id != (id[0] != '\0')) (void)puts("id");
    (void)printf("version %s, sums %d\n", offbeat_version(), sums[0] && sums[1] && sums[2]);
    offbeat_shutdown();
    return STATUS;
}
