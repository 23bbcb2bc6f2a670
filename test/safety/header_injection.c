/* SPDX-License-Identifier: MIT */
#include <offbeat.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    char big[300000];
    memset(big, 'A', sizeof big);
    big[sizeof big - 1] = 0;
    bool ok = offbeat_init(&(struct offbeat_options){
        .size = sizeof(struct offbeat_options),
        .traces_sample_rate = 1,
        .profile_session_sample_rate = 1,
        .release = "rel\r\nX-Injected: 1\n{\"type\":\"event\"}\n\x01\x7f\xff\xfe\xc0\xaf\xed\xa0\x80\xe2\x80\xae",
        "\x00",
        .environment = "env\nnl\"quote\\",
        .dist = "d\xf4\x90\x80\x80",
        .server_name = "srv\r\nname",
        .chunk_seconds = 1});
    printf("init %d\n", ok);
    offbeat_start_profiler();
    struct offbeat_span *t = offbeat_transaction_start("GET /a\r\nb: c\n\xff", "op\n\xff");
    printf("tag %d\n", offbeat_span_set_tag(t, "k\ney\xff", "v\r\nal\xff"));
    printf("tagbig %d\n", offbeat_span_set_tag(t, big, big));
    printf("text %d\n", offbeat_span_set_text(t, "kk", big));
    printf("nan %d\n", offbeat_span_set_number(t, "nan", 0.0 / 0));
    printf("inf %d\n", offbeat_span_set_number(t, "inf", 1e308 * 10));
    struct offbeat_headers h;
    printf("headers %d\n[%s]\n[%s]\n[%s]\n", offbeat_span_headers(t, "other=1\r\nX-Evil: 1,b=2", &h), h.sentry_trace,
           h.traceparent, h.baggage);
    volatile double s = 0;
    for (long i = 1; i < 400000000; i++) s += 1.0 / i;
    offbeat_span_finish(t);
    return 0;
}
