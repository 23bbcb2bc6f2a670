/* Rates of projects: a bucket of requests and one of bytes, each of which fills up again within a minute (facts
 * §2.6).  SPDX-License-Identifier: MIT */
#include "serve/serve_private.h"

#define MINUTE_NS ((double)60 * SECOND_NS)

/* NULL if there are too many projects: then the limits do not hold for the others. */
static struct rate *find_rate(struct rates *rates, const struct serve_options *options, uint64_t project)
{
    size_t i = 0;
    while (i < rates->count && rates->items[i].project != project) i++;
    if (i == SERVE_RATES_MAX) return NULL;
    if (i == rates->count) {
        rates->items[rates->count++] = (struct rate){.project = project,
                                                     .requests = (double)options->requests_max,
                                                     .bytes = (double)options->bytes_max,
                                                     .updated_ns = clock_monotonic_ns()};
    }
    return &rates->items[i];
}

static void fill(double *level, uint64_t maximum, double passed_ns)
{
    *level += (double)maximum * passed_ns / MINUTE_NS;
    if (*level > (double)maximum) *level = (double)maximum;
}

/* Seconds until LEVEL is at LEAST again. */
static unsigned seconds_until(double level, double least, uint64_t maximum)
{
    return (unsigned)((least - level) * 60 / (double)maximum) + 1;
}

unsigned rates_take(struct server *server, uint64_t project)
{
    const struct serve_options *options = &server->options;
    unsigned seconds = 0;
    if (!options->requests_max && !options->bytes_max) return 0;
    (void)pthread_mutex_lock(&server->rates.lock);
    struct rate *rate = find_rate(&server->rates, options, project);
    if (rate) {
        uint64_t now_ns = clock_monotonic_ns();
        fill(&rate->requests, options->requests_max, (double)(now_ns - rate->updated_ns));
        fill(&rate->bytes, options->bytes_max, (double)(now_ns - rate->updated_ns));
        rate->updated_ns = now_ns;
        if (options->requests_max && rate->requests < 1)
            seconds = seconds_until(rate->requests, 1, options->requests_max);
        else if (options->bytes_max && rate->bytes <= 0)
            seconds = seconds_until(rate->bytes, 0, options->bytes_max);
        else
            rate->requests--;
        rate->rejected += seconds > 0;
    }
    (void)pthread_mutex_unlock(&server->rates.lock);
    return seconds;
}

/* A body that was accepted counts in full: what it has too much delays the next ones. */
void rates_add_bytes(struct server *server, uint64_t project, size_t bytes)
{
    if (!server->options.bytes_max) return;
    (void)pthread_mutex_lock(&server->rates.lock);
    struct rate *rate = find_rate(&server->rates, &server->options, project);
    if (rate) rate->bytes -= (double)bytes;
    (void)pthread_mutex_unlock(&server->rates.lock);
}

void rates_report(struct server *server)
{
    (void)pthread_mutex_lock(&server->rates.lock);
    for (size_t i = 0; i < server->rates.count; i++) {
        struct rate *rate = &server->rates.items[i];
        uint64_t rejected = rate->rejected, project = rate->project;
        if (rejected == 0) continue;
        rate->rejected = 0;
        (void)pthread_mutex_unlock(&server->rates.lock);
        const struct store_outcome outcome = {slice_of_text("rate_limited"), slice_of_text("default"),
                                              slice_of_text("too_many_requests"), rejected};
        const struct store_batch batch = {
            .project = project, .received_ns = clock_utc_ns(), .outcomes = &outcome, .outcome_count = 1};
        struct error error;
        if (store_add(server->store, &batch, NULL, &error) != STATUS_OK)
            server_log(server, "cannot store what was limited: %s", error.message);
        (void)pthread_mutex_lock(&server->rates.lock);
    }
    (void)pthread_mutex_unlock(&server->rates.lock);
}
