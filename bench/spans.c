/* Measures the cost of a span for the program: nanoseconds for its start and for its finish. A module, so that
 * thread-local storage is reached as in a library that is loaded. Used by sdk.py.  SPDX-License-Identifier: MIT */
#include "trace/trace.h"

#include <time.h>

enum kind { SAMPLED_SPAN, UNSAMPLED_SPAN, CURRENT_SPAN, SAMPLED_TRANSACTION, UNSAMPLED_TRANSACTION };

/* Nanoseconds, of one. */
struct cost {
    double start, finish;
};

__attribute__((visibility("default"))) bool bench_spans(enum kind kind, size_t rounds, struct cost *ret_cost);

enum { BATCH = TRACE_SPANS_MAX };
static struct trace_span *spans[BATCH];

static void let_go(void *data, struct trace_transaction *transaction)
{
    trace_transaction_free(transaction);
}

static double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void start_all(enum kind kind, struct tracer *tracer, struct trace_span *root)
{
    static const struct trace_start start = {.name = "GET /users", .op = "http.server"};
    for (size_t i = 0; i < BATCH; i++) {
        switch (kind) {
        case SAMPLED_SPAN:
        case UNSAMPLED_SPAN:
            spans[i] = trace_span_start_child(root, "db.query", "SELECT name FROM users");
            break;
        case CURRENT_SPAN:
            spans[i] = trace_span_start("db.query", "SELECT name FROM users");
            break;
        case SAMPLED_TRANSACTION:
        case UNSAMPLED_TRANSACTION:
            spans[i] = trace_transaction_start(tracer, &start);
            break;
        }
    }
}

/* False without memory. One batch more than ROUNDS goes before, unmeasured. */
bool bench_spans(enum kind kind, size_t rounds, struct cost *ret_cost)
{
    bool is_sampled = kind != UNSAMPLED_SPAN && kind != UNSAMPLED_TRANSACTION;
    struct tracer *tracer = tracer_new(&(struct tracer_options){
        .has_traces_sample_rate = true, .traces_sample_rate = is_sampled, .listener = {.finished = let_go}});
    struct cost cost = {0};
    for (size_t round = 0; tracer && round <= rounds; round++) {
        struct trace_span *root = trace_transaction_start(tracer, &(struct trace_start){.name = "root"});
        (void)trace_span_enter(root);
        double before = now_ns();
        start_all(kind, tracer, root);
        double between = now_ns();
        for (size_t i = BATCH; i > 0; i--) trace_span_finish(spans[i - 1]);
        double after = now_ns();
        trace_span_finish(root);
        if (round == 0) continue;
        cost.start += (between - before) / BATCH / (double)rounds;
        cost.finish += (after - between) / BATCH / (double)rounds;
    }
    tracer_free(tracer);
    *ret_cost = cost;
    return tracer;
}
