/* A program that sends: COUNT envelopes with a chunk each, whose ids are PREFIX-0, PREFIX-1, …, by the options given as
 * NAME=VALUE. What the transport counted is a JSON object on standard output; messages are on standard error.
 * SPDX-License-Identifier: MIT */
#include "transport/transport.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MILLISECOND_NS ((uint64_t)1000000)

struct settings {
    struct transport_options options;
    const char *prefix;
    uint64_t count, padding, pause_ms, flush_ms, stop_ms, sampled_out;
    bool flushes_each;
};

/* Ends the process as kill -9 does at the first moment at which it says that there was an answer. */
static void die(void *context, const struct transport_answer *answer)
{
    (void)context;
    if (answer->status != 0) (void)raise(SIGKILL);
}

static void print_message(void *context, const char *message)
{
    (void)fprintf(stderr, "%s\n", message);
}

static void set(struct settings *settings, const char *name, const char *value)
{
    struct transport_options *options = &settings->options;
    uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(name, "dsn") == 0) options->dsn = value;
    if (strcmp(name, "spool") == 0) options->spool_folder = value;
    if (strcmp(name, "proxy") == 0) options->proxy = value;
    if (strcmp(name, "ca") == 0) options->ca_file = value;
    if (strcmp(name, "spool_count") == 0) options->spool_count_max = number;
    if (strcmp(name, "spool_bytes") == 0) options->spool_bytes_max = number;
    if (strcmp(name, "queue") == 0) options->queue_count_max = number;
    if (strcmp(name, "request_ms") == 0) options->request_timeout_ns = number * MILLISECOND_NS;
    if (strcmp(name, "retry_ms") == 0) options->retry_first_ns = number * MILLISECOND_NS;
    if (strcmp(name, "retry_max_ms") == 0) options->retry_max_ns = number * MILLISECOND_NS;
    if (strcmp(name, "report_ms") == 0) options->report_interval_ns = number * MILLISECOND_NS;
    if (strcmp(name, "prefix") == 0) settings->prefix = value;
    if (strcmp(name, "count") == 0) settings->count = number;
    if (strcmp(name, "padding") == 0) settings->padding = number;
    if (strcmp(name, "pause_ms") == 0) settings->pause_ms = number;
    if (strcmp(name, "flush_ms") == 0) settings->flush_ms = number;
    if (strcmp(name, "stop_ms") == 0) settings->stop_ms = number;
    if (strcmp(name, "sampled_out") == 0) settings->sampled_out = number;
    if (strcmp(name, "dies_when_answered") == 0 && number) options->answered = die;
    if (strcmp(name, "flushes_each") == 0) settings->flushes_each = number != 0;
}

static struct buffer make_envelope(const struct settings *settings, uint64_t number)
{
    struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX}, payload = {.maximum = ENVELOPE_BYTES_MAX};
    buffer_append_format(&payload, "{\"chunk_id\":\"%s-%" PRIu64 "\",\"padding\":\"", settings->prefix, number);
    for (uint64_t i = 0; i < settings->padding; i++) buffer_append_byte(&payload, (uint8_t)('a' + rand() % 26));
    buffer_append_text(&payload, "\"}");
    envelope_begin_with(&envelope, slice_of_text("{}"));
    envelope_add_item(&envelope, "profile_chunk", "native", buffer_slice(&payload));
    buffer_fini(&payload);
    return envelope;
}

static void pause_for(uint64_t ms)
{
    const struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    if (ms) (void)nanosleep(&time, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .options.debug = print_message, .prefix = "c", .count = 1, .flush_ms = 5000, .stop_ms = 2000};
    struct error error;
    (void)signal(SIGXFSZ, SIG_IGN); /* as our programs do */
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) return 2;
        *value = 0;
        set(&settings, argv[i], value + 1);
    }
    struct transport *transport = transport_start(&settings.options, &error);
    if (!transport) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 3;
    }
    for (uint64_t i = 0; i < settings.count; i++) {
        struct buffer envelope = make_envelope(&settings, i);
        (void)transport_send(transport, &envelope);
        if (settings.flushes_each) (void)transport_flush(transport, settings.flush_ms * MILLISECOND_NS);
        pause_for(settings.pause_ms);
    }
    if (settings.sampled_out)
        transport_discard(transport, DISCARD_SAMPLE_RATE, CATEGORY_PROFILE_CHUNK, settings.sampled_out);
    bool flushed = transport_flush(transport, settings.flush_ms * MILLISECOND_NS);
    struct transport_counts counts = transport_counts(transport);
    uint64_t before = now_ms();
    bool stopped = transport_stop(transport, settings.stop_ms * MILLISECOND_NS);
    printf("{\"made\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"limited\": %" PRIu64 ", \"discarded\": %" PRIu64
           ", \"flushed\": %s, \"stopped\": %s, \"stop_ms\": %" PRIu64 "}\n",
           counts.made, counts.sent, counts.limited, counts.discarded, flushed ? "true" : "false",
           stopped ? "true" : "false", now_ms() - before);
    return 0;
}
