/* Transactions: decided and announced at the start, handed over complete at the end, accounted for when the last
 * holder gives them up: each is either handed over or reported as discarded. SPDX-License-Identifier: MIT */
#include "trace/trace_private.h"

#include "base/process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- The decision ------------------------------------------------------------------------------------------------- */

static double ask_sampler(const struct tracer *tracer, const struct trace_start *start, enum trace_decision parent,
                          double parent_rate)
{
    struct trace_sampling_context context = {.name = start->name ? start->name : "",
                                             .op = start->op ? start->op : "",
                                             .parent = parent,
                                             .parent_rate = parent_rate,
                                             .custom = start->custom};
    double rate = tracer->options.listener.sample(tracer->options.listener.data, &context);
    return rate < 0 ? (double)NAN : rate; /* a negative rate would mean that there is no answer */
}

static const struct trace_incoming nothing;

static uint32_t rand_of_trace(const struct trace_incoming *incoming, double parent_rate)
{
    double received = trace_incoming_number(incoming, "sample_rand");
    if (received >= 0 && received < 1) return (uint32_t)(received * TRACE_RAND_END);
    uint32_t fresh = (uint32_t)(trace_thread_random(trace_thread_self()) % TRACE_RAND_END);
    return trace_rand_of_decision(incoming->parent.decision, parent_rate, fresh);
}

static void decide(struct trace_transaction *transaction, const struct trace_start *start,
                   const struct trace_incoming *incoming)
{
    const struct tracer_options *options = &transaction->tracer->options;
    bool has_sampler = options->listener.sample;
    struct trace_evidence evidence = {.wanted = start->decision,
                                      .sampler_rate = -1,
                                      .parent = incoming->parent.decision,
                                      .parent_rate = trace_incoming_number(incoming, "sample_rate"),
                                      .rate = options->has_traces_sample_rate ? options->traces_sample_rate : -1,
                                      .is_tracing_on = has_sampler || options->has_traces_sample_rate};
    evidence.rand_millionths = rand_of_trace(incoming, evidence.parent_rate);
    if (has_sampler && start->decision == TRACE_UNDECIDED) {
        evidence.sampler_rate = ask_sampler(transaction->tracer, start, evidence.parent, evidence.parent_rate);
    }
    struct trace_sampling sampling = trace_decide(&evidence);
    if (sampling.is_faulty && options->listener.debug) {
        options->listener.debug(options->listener.data,
                                "a sample rate is not a number from 0 to 1: the transaction is not sampled");
    }
    transaction->sampling = sampling;
    transaction->rand_millionths = evidence.rand_millionths;
    transaction->passed_on = !sampling.is_decided  ? incoming->parent.decision
                             : sampling.is_sampled ? TRACE_SAMPLED
                                                   : TRACE_NOT_SAMPLED;
}

/* --- The dynamic sampling context --------------------------------------------------------------------------------- */

static void set_member(struct trace_members *members, const char *key, const char *value)
{
    if (*value) (void)trace_members_set(members, slice_of_text(key), slice_of_text(value));
}

static void set_rate(struct trace_members *members, double rate)
{
    struct buffer text = {.maximum = 64};
    struct json_writer writer = json_writer_of(&text);
    json_write_double(&writer, rate);
    (void)trace_members_set(members, slice_of_text("sample_rate"), buffer_slice(&text));
    buffer_fini(&text);
}

/* Takes over the received members, except the rate if this process decided with another one. */
static void freeze_received(struct trace_transaction *transaction, const struct trace_incoming *incoming)
{
    transaction->is_frozen = true;
    if (!trace_members_copy(&transaction->members, &incoming->members)) return;
    if (transaction->members.count == 0 || !transaction->sampling.is_decided || !transaction->sampling.is_own) return;
    set_rate(&transaction->members, transaction->sampling.rate);
}

void trace_transaction_freeze(struct trace_transaction *transaction)
{
    struct trace_members *members = &transaction->members;
    const struct tracer_options *options = &transaction->tracer->options;
    char rand[16];
    if (transaction->is_frozen) return;
    transaction->is_frozen = true;
    set_member(members, "trace_id", transaction->trace_id);
    set_member(members, "public_key", options->public_key);
    set_member(members, "release", options->release);
    set_member(members, "environment", options->environment);
    if (transaction->source != TRACE_SOURCE_URL) set_member(members, "transaction", transaction->name);
    set_member(members, "org_id", options->continuation.org_id);
    if (!transaction->sampling.is_decided) return;
    (void)snprintf(rand, sizeof(rand), "0.%06u", (unsigned)transaction->rand_millionths);
    set_member(members, "sample_rand", rand);
    set_member(members, "sampled", transaction->sampling.is_sampled ? "true" : "false");
    set_rate(members, transaction->sampling.rate);
}

/* --- Start -------------------------------------------------------------------------------------------------------- */

static struct trace_transaction *transaction_new(struct tracer *tracer, const struct trace_start *start)
{
    struct trace_transaction *transaction = calloc(1, sizeof(*transaction));
    if (!transaction) return NULL;
    transaction->tracer = tracer;
    transaction->process = tracer->process;
    transaction->source = trace_source_is_known(start->source) ? start->source : TRACE_SOURCE_CUSTOM;
    transaction->name = trace_text_copy(start->name, TRACE_NAME_BYTES_MAX);
    if (!transaction->name || !uuid_new(transaction->event_id) || !uuid_new(transaction->trace_id)) {
        free(transaction->name);
        free(transaction);
        return NULL;
    }
    (void)pthread_mutex_init(&transaction->lock, NULL);
    return transaction;
}

/* Frees a transaction that never had a root, or whose last holder is gone. */
static void transaction_delete(struct trace_transaction *transaction)
{
    for (struct trace_span *span = transaction->finished, *next; span; span = next) {
        next = span->next;
        trace_span_free(span);
    }
    if (transaction->root) trace_span_free(transaction->root);
    trace_members_fini(&transaction->members);
    (void)pthread_mutex_destroy(&transaction->lock);
    free(transaction->name);
    for (size_t i = 0; i < sizeof(transaction->user) / sizeof(*transaction->user); i++) free(transaction->user[i]);
    free(transaction);
}

static struct trace_span *begin_root(struct trace_transaction *transaction, const struct trace_start *start)
{
    const struct trace_incoming *incoming = start->incoming && start->incoming->has_parent ? start->incoming : &nothing;
    struct trace_thread *thread = trace_thread_self();
    if (!thread->current) trace_thread_read_name(thread);
    decide(transaction, start, incoming);
    struct trace_span *root = trace_span_new(transaction, start->op, NULL);
    if (!root) return NULL;
    transaction->root = root;
    if (incoming->has_parent) {
        memcpy(transaction->trace_id, incoming->parent.trace_id, UUID_TEXT_SIZE);
        root->parent_id = strtoull(incoming->parent.span_id, NULL, 16); /* the reader has checked its 16 digits */
        freeze_received(transaction, incoming);
    }
    root->start_ns = clock_monotonic_ns();
    transaction->anchor_ns = clock_utc_ns() - root->start_ns;
    transaction->token =
        tracer_root_started(transaction->tracer, transaction->sampling.is_sampled, transaction->trace_id);
    return root;
}

struct trace_span *trace_transaction_start(struct tracer *tracer, const struct trace_start *start)
{
    if (!tracer || tracer->process != process_number() || !tracer_begin_call(tracer)) return NULL;
    struct trace_transaction *transaction = NULL;
    struct trace_span *root = NULL;
    if (atomic_fetch_add(&tracer->open, 1) < TRACE_TRANSACTIONS_OPEN_MAX) transaction = transaction_new(tracer, start);
    if (transaction) root = begin_root(transaction, start);
    if (root) {
        atomic_fetch_add(&tracer->references, 1);
    } else {
        atomic_fetch_sub(&tracer->open, 1);
        if (transaction) transaction_delete(transaction);
        tracer_report(tracer, "buffer_overflow", "transaction", 1);
        tracer_report(tracer, "buffer_overflow", "span", 1);
    }
    tracer_end_call(tracer);
    return root;
}

/* --- End ---------------------------------------------------------------------------------------------------------- */

void trace_transaction_complete(struct trace_transaction *transaction)
{
    struct tracer *tracer = transaction->tracer;
    const struct trace_listener *listener = &tracer->options.listener;
    bool is_sampled = transaction->sampling.is_sampled;
    if (is_sampled) {
        const struct trace_span *root = transaction->root;
        uint32_t profiler = tracer_profiler_within(tracer, root->start_ns, root->end_ns); /* LNK-1 */
        (void)tracer_profiler_id(tracer, profiler, transaction->profiler_id);
        trace_transaction_give_thread_names(transaction);
    }
    atomic_fetch_sub(&tracer->open, 1);
    if (!tracer_begin_call(tracer)) return;
    tracer_root_ended(tracer, transaction->token, is_sampled);
    if (is_sampled && listener->finished) {
        atomic_fetch_add(&transaction->holders, 1);
        listener->finished(listener->data, transaction);
    }
    tracer_end_call(tracer);
}

void trace_transaction_abandon(struct trace_transaction *transaction)
{
    struct tracer *tracer = transaction->tracer;
    (void)pthread_mutex_lock(&transaction->lock);
    transaction->is_complete = transaction->is_abandoned = true;
    (void)pthread_mutex_unlock(&transaction->lock);
    atomic_fetch_sub(&tracer->open, 1);
    if (!tracer_begin_call(tracer)) return;
    tracer_root_ended(tracer, transaction->token, transaction->sampling.is_sampled);
    tracer_end_call(tracer);
}

static void report_losses(const struct trace_transaction *transaction)
{
    struct tracer *tracer = transaction->tracer;
    size_t over_maximum = transaction->lost_over_maximum, late = transaction->lost_late;
    if (!transaction->sampling.is_decided) return; /* tracing is off: nobody expects any */
    if (!transaction->sampling.is_sampled) {
        tracer_report(tracer, "sample_rate", "transaction", 1);
        tracer_report(tracer, "sample_rate", "span", over_maximum + late + 1);
        return;
    }
    if (transaction->is_abandoned) {
        tracer_report(tracer, "invalid", "transaction", 1);
        tracer_report(tracer, "invalid", "span", transaction->finished_count + 1);
    }
    tracer_report(tracer, "buffer_overflow", "span", over_maximum);
    tracer_report(tracer, "no_parent_span", "span", late);
}

void trace_transaction_drop_holder(struct trace_transaction *transaction)
{
    if (atomic_fetch_sub(&transaction->holders, 1) != 1) return;
    struct tracer *tracer = transaction->tracer;
    if (tracer_begin_call(tracer)) {
        report_losses(transaction);
        tracer_end_call(tracer);
    }
    transaction_delete(transaction);
    tracer_unref(tracer);
}

void trace_transaction_free(struct trace_transaction *transaction)
{
    if (!transaction || transaction->process != process_number()) return;
    trace_transaction_drop_holder(transaction);
}

/* --- Callbacks ------------------------------------------------------------------------------------------------ */

struct trace_facts trace_transaction_facts(const struct trace_transaction *transaction)
{
    const struct trace_span *root = transaction->root;
    return (struct trace_facts){.event_id = transaction->event_id,
                                .name = transaction->name,
                                .trace_id = transaction->trace_id,
                                .thread = root->tid,
                                .start_ns = root->start_ns + transaction->anchor_ns,
                                .end_ns = root->end_ns + transaction->anchor_ns,
                                .span_count = transaction->finished_count,
                                .token = transaction->token};
}

void trace_transaction_begin_edit(struct trace_transaction *transaction)
{
    atomic_store(&transaction->editor, trace_thread_self()->tid);
}

void trace_transaction_end_edit(struct trace_transaction *transaction)
{
    atomic_store(&transaction->editor, 0);
}

struct trace_span *trace_transaction_root(struct trace_transaction *transaction)
{
    return transaction->root;
}

size_t trace_transaction_filter(struct trace_transaction *transaction,
                                bool (*keep)(void *context, struct trace_span *span), void *context)
{
    size_t dropped = 0;
    for (struct trace_span *span = transaction->finished; span; span = span->next) {
        span->is_left_out = !keep(context, span);
        dropped += span->is_left_out;
    }
    transaction->finished_count -= dropped;
    return dropped;
}

void trace_transaction_write_context(struct trace_transaction *transaction, struct json_writer *writer)
{
    (void)pthread_mutex_lock(&transaction->lock);
    trace_transaction_freeze(transaction);
    trace_members_write_json(&transaction->members, writer);
    (void)pthread_mutex_unlock(&transaction->lock);
}
