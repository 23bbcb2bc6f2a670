/* Names of threads in spans: a thread may change its name while a span is open, and a chunk has the last one.
 * SPDX-License-Identifier: MIT */
#include "trace/trace_private.h"

#include <string.h>

/* Length of spans at whose end the name is read, ns. Reading costs more than the rest of a span, so a name that changes
 * within a shorter span is seen at the end of the next longer one. */
#define LONG_NS 1000000

enum { THREADS_MAX = 16 }; /* maximum of threads of a transaction whose spans get the last name */

struct named_threads {
    const struct trace_span *last[THREADS_MAX]; /* the span of each thread that finished last */
    size_t count;
};

void trace_span_read_thread_name(struct trace_span *span, uint64_t now_ns)
{
    struct trace_thread *thread = trace_thread_self();
    if (thread->tid != span->tid) return;
    if (now_ns - span->start_ns >= LONG_NS) trace_thread_read_name(thread);
    memcpy(span->thread_name, thread->name, sizeof(span->thread_name));
}

/* Returns the place of thread TID, a new one if need be; NULL if all are taken. */
static const struct trace_span **find_thread(struct named_threads *threads, pid_t tid)
{
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->last[i]->tid == tid) return &threads->last[i];
    }
    return threads->count < THREADS_MAX ? &threads->last[threads->count++] : NULL;
}

void trace_transaction_give_thread_names(struct trace_transaction *transaction)
{
    struct named_threads threads = {.last = {transaction->root}, .count = 1};
    /* Spans are in the order in which they finished; the root is the last. */
    for (struct trace_span *span = transaction->finished; span; span = span->next) {
        const struct trace_span **last = span->tid == transaction->root->tid ? NULL : find_thread(&threads, span->tid);
        if (last) *last = span;
    }
    for (struct trace_span *span = transaction->finished; span; span = span->next) {
        const struct trace_span **last = find_thread(&threads, span->tid);
        if (last && *last != span) memcpy(span->thread_name, (*last)->thread_name, sizeof(span->thread_name));
    }
}
