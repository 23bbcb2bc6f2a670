/* Every function of <offbeat.h> with invalid arguments: NULL, values out of range, strings that are not UTF-8 or are
 * too long.  SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double wrong_rate(void *data, const struct offbeat_sampling *sampling)
{
    return *(const double *)data;
}

static void call_all(struct offbeat_span *span, const char *text, double number, int choice)
{
    struct offbeat_headers headers;
    const struct offbeat_transaction transaction = {.size = sizeof(transaction),
                                                    .name = text,
                                                    .op = text,
                                                    .source = (enum offbeat_source)choice,
                                                    .sentry_trace = text,
                                                    .traceparent = text,
                                                    .baggage = text,
                                                    .decision = (enum offbeat_decision)choice};
    offbeat_span_finish(offbeat_transaction_start_with(&transaction));
    offbeat_span_finish(offbeat_transaction_start(text, text));
    offbeat_span_finish(offbeat_span_start_child(span, text, text));
    offbeat_span_finish(offbeat_span_start(text, text));
    offbeat_span_unref(offbeat_span_ref(span));
    (void)offbeat_span_enter(span);
    offbeat_span_unref(offbeat_span_current());
    offbeat_span_leave(span);
    offbeat_span_set_status(span, (enum offbeat_status)choice);
    offbeat_span_set_description(span, text);
    offbeat_span_set_transaction_name(span, text, (enum offbeat_source)choice);
    (void)offbeat_span_set_text(span, text, text);
    (void)offbeat_span_set_number(span, text, number);
    (void)offbeat_span_set_bool(span, text, true);
    (void)offbeat_span_set_tag(span, text, text);
    (void)offbeat_span_is_sampled(span);
    (void)offbeat_span_headers(span, text, &headers);
    (void)offbeat_span_headers(span, text, NULL);
    (void)offbeat_profiler_id(NULL);
    offbeat_measure(text, text, number);
    offbeat_measure(text, "byte", number);
    offbeat_frame_rendered((uint64_t)(int64_t)choice);
}

static void try_options(struct offbeat_options options, size_t size)
{
    options.size = size;
    (void)offbeat_init(&options);
    offbeat_frame_rendered(1);
    offbeat_frame_rendered(UINT64_MAX);
    offbeat_span_finish(offbeat_transaction_start("a", "b"));
}

int main(void)
{
    static char huge[4 << 20];
    static const double numbers[] = {NAN, INFINITY, -INFINITY, -1, DBL_MAX, DBL_MIN, -0.0};
    static const int choices[] = {-1, 0, 3, 18, 300000, -2147483647 - 1, 2147483647};
    const char *texts[] = {NULL, "", "\xFF\xFE\xC0\xAF\xED\xA0\x80", "line\r\nend\x1B[2J\x7F", huge};
    memset(huge, 'A', sizeof(huge) - 1);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        for (size_t j = 0; j < sizeof(texts) / sizeof(*texts); j++) {
            double rate = numbers[i];
            struct offbeat_options options = {
                .traces_sample_rate = 1, .spool_directory = "", .shutdown_timeout_ms = 20};
            try_options(options, sizeof(options));
            struct offbeat_span *root = offbeat_transaction_start("root", "op");
            call_all(NULL, texts[j], numbers[i], choices[i]);
            call_all(root, texts[j], numbers[i], choices[i]);
            offbeat_span_finish(root);
            options.release = options.environment = options.dist = options.server_name = texts[j];
            options.in_app_include = options.in_app_exclude = options.proxy = options.ca_file = texts[j];
            options.helper = texts[j];
            try_options(options, sizeof(options));
            options.traces_sampler = wrong_rate;
            options.traces_sampler_data = &rate;
            options.profiles_sampler = wrong_rate;
            options.profiles_sampler_data = &rate;
            try_options(options, sizeof(options));
            options = (struct offbeat_options){.spool_directory = texts[j], .shutdown_timeout_ms = 20};
            options.profile_session_sample_rate = options.traces_sample_rate = options.profiles_sample_rate =
                numbers[i];
            try_options(options, sizeof(options));
            options = (struct offbeat_options){.dsn = texts[j], .frame_rate_hz = numbers[i]};
            try_options(options, sizeof(options));
            options = (struct offbeat_options){.frame_rate_hz = numbers[i]};
            options.profile_lifecycle = (enum offbeat_lifecycle)choices[i];
            try_options(options, sizeof(options));
            options = (struct offbeat_options){.mode = (enum offbeat_mode)choices[i]};
            try_options(options, sizeof(options));
            options = (struct offbeat_options){.symbols = (enum offbeat_symbols)choices[i], .frequency_hz = UINT32_MAX};
            try_options(options, sizeof(options));
        }
    }
    struct offbeat_options plain = {.traces_sample_rate = 1, .spool_directory = "", .shutdown_timeout_ms = 20};
    static const size_t sizes[] = {0, 1, 7, 8, 12, 17, SIZE_MAX, SIZE_MAX - 7};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        try_options(plain, sizes[i]);
        struct offbeat_transaction transaction = {.size = sizes[i], .name = "n"};
        offbeat_span_finish(offbeat_transaction_start_with(&transaction));
    }
    offbeat_span_finish(offbeat_transaction_start_with(NULL));
    (void)offbeat_init(NULL);
    (void)offbeat_flush(0);
    offbeat_shutdown();
    puts("lived");
    return 0;
}
