/* Transactions and spans as <offbeat.h> has them: trace/ does the work, and calls the functions here when a span begins
 * or ends. SPDX-License-Identifier: MIT */
#include "sdk/spans.h"

#include "base/invariant.h"
#include "format/sentry/envelope.h"
#include "sdk/callbacks.h"
#include "sdk/contexts.h"
#include "sdk/profiler.h"
#include "sdk/sdk_private.h"
#include "sdk/sender.h"
#include "spool/dsn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* V1 profiles the root. The token of the lifecycle has this bit free. */
#define PROFILED_BIT 0x80000000u

enum { ORG_ID_SIZE = 24 };

/* The argument of profiles_sampler for the transaction that this thread starts. */
static __thread const struct offbeat_sampling *starting __attribute__((tls_model("initial-exec")));

/* --- Between the two sets of types -------------------------------------------------------------------------------- */

static struct trace_span *inner(const struct offbeat_span *span)
{
    return (struct trace_span *)(uintptr_t)span;
}

static struct offbeat_span *outer(struct trace_span *span)
{
    return (struct offbeat_span *)span;
}

_Static_assert((int)OFFBEAT_STATUS_UNAUTHENTICATED == (int)TRACE_STATUS_UNAUTHENTICATED, "the same, in the same order");
_Static_assert((int)OFFBEAT_DECISION_YES == (int)TRACE_SAMPLED, "the same, in the same order");
_Static_assert((int)OFFBEAT_SOURCE_TASK == (int)TRACE_SOURCE_TASK, "the same, in the same order");

/* --- The envelope of a transaction -------------------------------------------------------------------------------- */

static void write_envelope(struct trace_transaction *transaction, struct slice payload, struct buffer *envelope)
{
    struct trace_facts facts = trace_transaction_facts(transaction);
    struct buffer context = {.maximum = TRACE_PAYLOAD_BYTES_MAX};
    struct json_writer writer = json_writer_of(&context);
    trace_transaction_write_context(transaction, &writer);
    struct envelope_attributes attributes = {.sdk_name = slice_of_text("offbeat"),
                                             .sdk_version = slice_of_text(OFFBEAT_VERSION),
                                             .trace = buffer_slice(&context)};
    memcpy(attributes.event_id, facts.event_id, UUID_TEXT_SIZE);
    envelope_begin(envelope, &attributes);
    envelope_add_item(envelope, "transaction", NULL, payload);
    buffer_fini(&context);
}

bool spans_write(struct trace_transaction *transaction, struct buffer *envelope)
{
    struct buffer payload = {.maximum = TRACE_PAYLOAD_BYTES_MAX};
    trace_transaction_encode(transaction, &payload);
    struct trace_facts facts = trace_transaction_facts(transaction);
    bool is_written = !payload.failed && sender_may_send("transaction", CATEGORY_TRANSACTION, buffer_slice(&payload));
    if (payload.failed) {
        sender_discard(DISCARD_INTERNAL_SDK_ERROR, CATEGORY_TRANSACTION, 1);
        sender_discard(DISCARD_INTERNAL_SDK_ERROR, CATEGORY_SPAN, facts.span_count + 1);
    } else if (is_written) {
        write_envelope(transaction, buffer_slice(&payload), envelope);
    } else {
        sdk_debug("the transaction \"%.200s\" is dropped: before_send rejects it", facts.name);
        sender_discard(DISCARD_BEFORE_SEND, CATEGORY_SPAN, facts.span_count + 1);
    }
    buffer_fini(&payload);
    return is_written;
}

static void send(struct trace_transaction *transaction)
{
    struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX};
    if (spans_write(transaction, &envelope)) sender_send(&envelope);
    buffer_fini(&envelope);
    trace_transaction_free(transaction);
}

/* --- Callbacks of the tracer -------------------------------------------------------------------------------------- */

static double ask(offbeat_sampler sampler, void *data, const struct offbeat_sampling *sampling)
{
    memory_sanitizer_written(sampling, sizeof(*sampling));
    (void)memory_sanitizer_text(sampling->name);
    (void)memory_sanitizer_text(sampling->op);
    memory_sanitizer_arguments();
    return sampler(data, sampling);
}

static double sample(void *data, const struct trace_sampling_context *context)
{
    const struct offbeat_options *options = sdk_options();
    const struct offbeat_sampling sampling = {
        .name = context->name,
        .op = context->op,
        .parent = (enum offbeat_decision)context->parent,
        .parent_rate = context->parent_rate,
        .custom = context->custom,
    };
    return ask(options->traces_sampler, options->traces_sampler_data, &sampling);
}

static uint32_t root_started(void *data, bool is_sampled, const char *trace_id, size_t open)
{
    const struct offbeat_options *options = sdk_options();
    double v1_rate = options->profiles_sample_rate;
    enum profiler_v1 v1 = PROFILER_V1_NO;
    char half_id[17];
    (void)snprintf(half_id, sizeof(half_id), "%.16s", trace_id); /* random hex digits */
    if (options->profiles_sampler && is_sampled)                 /* a function of the program, called without a lock */
        v1_rate = starting ? ask(options->profiles_sampler, options->profiles_sampler_data, starting) : 0;
    callbacks_hold_lines(); /* until the transaction has started: trace/ has a lock */
    uint32_t token = profiler_root_started(is_sampled, v1_rate, strtoull(half_id, NULL, 16), &v1);
    if (!INVARIANT((token & PROFILED_BIT) == 0)) token &= ~PROFILED_BIT;
    if (starting) sdk_debug("the transaction \"%.200s\" is %ssampled", starting->name, is_sampled ? "" : "not ");
    if (v1 == PROFILER_V1_LIMITED) sender_discard(DISCARD_RATELIMIT_BACKOFF, CATEGORY_PROFILE, 1);
    return v1 == PROFILER_V1_YES ? token | PROFILED_BIT : token;
}

static void root_ended(void *data, uint32_t token, bool is_sampled, size_t open)
{
    callbacks_hold_lines(); /* until the span has finished */
    profiler_root_ended(token & ~PROFILED_BIT, is_sampled, (token & PROFILED_BIT) != 0);
}

static bool keep_span(void *context, struct trace_span *span)
{
    const struct offbeat_options *options = sdk_options();
    memory_sanitizer_arguments();
    return options->before_send_span(options->before_send_span_data, outer(span));
}

/* Lets the program change TRANSACTION. False if it drops it. */
static bool let_program_change(struct trace_transaction *transaction)
{
    const struct offbeat_options *options = sdk_options();
    bool is_kept = true;
    size_t dropped = 0;
    if (!options->before_send_transaction && !options->before_send_span) return true;
    if (!INVARIANT(!lock_any_is_held()) || !callback_begin()) return false;
    trace_transaction_begin_edit(transaction);
    if (options->before_send_span) dropped = trace_transaction_filter(transaction, keep_span, NULL);
    if (options->before_send_transaction) memory_sanitizer_arguments();
    if (options->before_send_transaction)
        is_kept = options->before_send_transaction(options->before_send_transaction_data,
                                                   outer(trace_transaction_root(transaction)));
    trace_transaction_end_edit(transaction);
    callback_end();
    if (dropped > 0) sender_discard(DISCARD_BEFORE_SEND, CATEGORY_SPAN, dropped);
    return is_kept;
}

/* Counts TRANSACTION with its spans, which the program has rejected, and frees it. */
static void reject(struct trace_transaction *transaction, bool has_profile)
{
    struct trace_facts facts = trace_transaction_facts(transaction);
    sdk_debug("the transaction \"%.200s\" is dropped: the program rejects it before it is sent", facts.name);
    sender_discard(DISCARD_BEFORE_SEND, CATEGORY_TRANSACTION, 1);
    sender_discard(DISCARD_BEFORE_SEND, CATEGORY_SPAN, facts.span_count + 1);
    if (has_profile) sender_discard(DISCARD_BEFORE_SEND, CATEGORY_PROFILE, 1);
    trace_transaction_free(transaction);
}

static void finished(void *data, struct trace_transaction *transaction)
{
    struct trace_facts facts = trace_transaction_facts(transaction);
    bool is_profiled = (facts.token & PROFILED_BIT) != 0;
    callbacks_release_lines();
    sdk_debug("the transaction \"%.200s\" is complete, with %zu spans", facts.name, facts.span_count);
    if (!let_program_change(transaction)) {
        reject(transaction, is_profiled);
        return;
    }
    if (is_profiled && profiler_leave_transaction(transaction)) return;
    if (is_profiled) sender_discard(DISCARD_QUEUE_OVERFLOW, CATEGORY_PROFILE, 1);
    send(transaction);
}

static void discarded(void *data, const char *reason_name, const char *name, uint64_t quantity)
{
    enum discard_reason reason;
    enum category category;
    bool is_known =
        discard_reason_of_name(slice_of_text(reason_name), &reason) && category_of_name(slice_of_text(name), &category);
    if (INVARIANT(is_known)) sender_discard(reason, category, quantity);
}

static void debug(void *data, const char *message)
{
    sdk_debug("%s", message);
}

/* Writes the organization that HOST of a DSN names, as in "o123.ingest.example.org"; "" if it names none. */
static void read_org_id(const char *host, char ret_id[ORG_ID_SIZE])
{
    size_t digits = host[0] == 'o' ? strspn(host + 1, "0123456789") : 0;
    ret_id[0] = '\0';
    if (digits > 0 && digits < ORG_ID_SIZE && host[1 + digits] == '.')
        (void)snprintf(ret_id, ORG_ID_SIZE, "%.*s", (int)digits, host + 1);
}

struct tracer *spans_tracer_new(const struct settings *settings)
{
    const struct offbeat_options *options = &settings->options;
    struct buffer contexts = {.maximum = 1 << 14};
    char org_id[ORG_ID_SIZE];
    struct dsn dsn = {0};
    (void)dsn_parse(options->dsn, &dsn, NULL);
    read_org_id(dsn.host, org_id);
    contexts_write(options->release, &contexts);
    struct tracer_options tracer_options = {
        .release = options->release,
        .environment = options->environment,
        .dist = options->dist,
        .server_name = options->server_name,
        .public_key = dsn.public_key,
        .contexts = contexts.failed ? slice_of(NULL, 0) : buffer_slice(&contexts),
        .continuation =
            {
                .org_id = options->org_id && *options->org_id ? options->org_id : org_id,
                .is_strict = options->strict_trace_continuation,
            },
        .has_traces_sample_rate = settings->has_traces_sample_rate,
        .traces_sample_rate = options->traces_sample_rate,
        .listener =
            {
                .sample = options->traces_sampler ? sample : NULL,
                .root_started = root_started,
                .root_ended = root_ended,
                .finished = finished,
                .discarded = discarded,
                .debug = debug,
            },
    };
    struct tracer *tracer = tracer_new(&tracer_options);
    buffer_fini(&contexts);
    return tracer;
}

/* --- Starting ----------------------------------------------------------------------------------------------------- */

static struct slice header_slice(const char *text)
{
    return text ? slice_of_text(text) : slice_of(NULL, 0);
}

static struct offbeat_span *start_transaction(struct tracer *tracer, const struct offbeat_transaction *transaction,
                                              const struct trace_incoming *incoming)
{
    const struct trace_start begin = {
        .name = transaction->name,
        .op = transaction->op,
        .source = (enum trace_source)transaction->source,
        .incoming = incoming,
        .decision = (enum trace_decision)transaction->decision,
        .custom = transaction->custom,
    };
    const struct offbeat_sampling sampling = {
        .name = transaction->name ? transaction->name : "",
        .op = transaction->op ? transaction->op : "",
        .parent = incoming->has_parent ? (enum offbeat_decision)incoming->parent.decision : OFFBEAT_DECISION_OPEN,
        .parent_rate = trace_incoming_number(incoming, "sample_rate"),
        .custom = transaction->custom,
    };
    starting = &sampling;
    struct trace_span *span = trace_transaction_start(tracer, &begin);
    starting = NULL;
    return outer(span);
}

/* Returns the part of TRANSACTION that this version knows: a program that was built with another version has fewer
 * members, or more. A size that could cut a member in two is invalid, and a value outside its enum counts as not set.
 */
static struct offbeat_transaction known_part(const struct offbeat_transaction *transaction)
{
    struct offbeat_transaction known = {0};
    if (!transaction) return known;
    if (transaction->size % _Alignof(struct offbeat_transaction) != 0) {
        sdk_debug("a transaction's size must be sizeof(struct offbeat_transaction): the struct is ignored");
        return known;
    }
    memcpy(&known, transaction, transaction->size < sizeof(known) ? transaction->size : sizeof(known));
    if (!trace_source_is_known((enum trace_source)known.source)) {
        sdk_debug("a transaction's source is not a value of enum offbeat_source: ignored");
        known.source = OFFBEAT_SOURCE_CUSTOM;
    }
    if ((unsigned long)known.decision > OFFBEAT_DECISION_YES) {
        sdk_debug("a transaction's decision is not a value of enum offbeat_decision: ignored");
        known.decision = OFFBEAT_DECISION_OPEN;
    }
    return known;
}

struct offbeat_span *offbeat_transaction_start_with(const struct offbeat_transaction *transaction)
{
    KEEP_ERRNO;
    struct trace_incoming incoming = {0};
    if (!sdk_is_ours()) return NULL;
    const struct offbeat_transaction known = known_part(transaction);
    const struct trace_headers headers = {.sentry_trace = header_slice(known.sentry_trace),
                                          .traceparent = header_slice(known.traceparent),
                                          .baggage = header_slice(known.baggage)};
    struct tracer *tracer = profiler_tracer_ref();
    if (!tracer) return NULL;
    trace_incoming_read(&incoming, &headers, tracer_continuation(tracer));
    struct offbeat_span *span = start_transaction(tracer, &known, &incoming);
    trace_incoming_fini(&incoming);
    tracer_unref(tracer);
    callbacks_release_lines();
    return span;
}

struct offbeat_span *offbeat_transaction_start(const char *name, const char *op)
{
    const struct offbeat_transaction transaction = {.size = sizeof(transaction), .name = name, .op = op};
    return offbeat_transaction_start_with(&transaction);
}

struct offbeat_span *offbeat_span_start_child(struct offbeat_span *parent, const char *op, const char *description)
{
    KEEP_ERRNO;
    return sdk_is_ours() ? outer(trace_span_start_child(inner(parent), op, description)) : NULL;
}

struct offbeat_span *offbeat_span_start(const char *op, const char *description)
{
    KEEP_ERRNO;
    return sdk_is_ours() ? outer(trace_span_start(op, description)) : NULL;
}

void offbeat_span_finish(struct offbeat_span *span)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return;
    trace_span_finish(inner(span));
    callbacks_release_lines();
}

/* --- The rest as it is -------------------------------------------------------------------------------------------- */

bool offbeat_span_enter(struct offbeat_span *span)
{
    KEEP_ERRNO;
    return sdk_is_ours() && trace_span_enter(inner(span));
}

void offbeat_span_leave(struct offbeat_span *span)
{
    KEEP_ERRNO;
    if (sdk_is_ours()) trace_span_leave(inner(span));
}

struct offbeat_span *offbeat_span_current(void)
{
    KEEP_ERRNO;
    return sdk_is_ours() ? outer(trace_span_current()) : NULL;
}

struct offbeat_span *offbeat_span_ref(struct offbeat_span *span)
{
    return outer(trace_span_ref(inner(span)));
}

void offbeat_span_unref(struct offbeat_span *span)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return;
    trace_span_unref(inner(span));
    callbacks_release_lines();
}

/* --- What a span says --------------------------------------------------------------------------------------------- */

void offbeat_span_set_status(struct offbeat_span *span, enum offbeat_status status)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return;
    if (!trace_status_is_known((enum trace_status)status))
        sdk_debug("a span's status is not a value of enum offbeat_status: ignored");
    else
        trace_span_set_status(inner(span), (enum trace_status)status);
}

void offbeat_span_set_description(struct offbeat_span *span, const char *description)
{
    KEEP_ERRNO;
    if (sdk_is_ours()) trace_span_set_description(inner(span), description);
}

void offbeat_span_set_transaction_name(struct offbeat_span *span, const char *name, enum offbeat_source source)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return;
    if (!trace_source_is_known((enum trace_source)source))
        sdk_debug("a transaction's source is not a value of enum offbeat_source: the name is not changed");
    else
        trace_span_set_transaction_name(inner(span), name, (enum trace_source)source);
}

static bool is_kept(bool is_set, const struct offbeat_span *span, const char *key)
{
    if (!is_set && span)
        sdk_debug("the value of \"%.100s\" is dropped: the span has finished, a maximum is reached, the number is not "
                  "finite, or the key is one of our own",
                  key ? key : "");
    return is_set;
}

bool offbeat_span_set_text(struct offbeat_span *span, const char *key, const char *value)
{
    KEEP_ERRNO;
    return sdk_is_ours() && is_kept(trace_span_set_text(inner(span), key, value), span, key);
}

bool offbeat_span_set_number(struct offbeat_span *span, const char *key, double value)
{
    KEEP_ERRNO;
    return sdk_is_ours() && is_kept(trace_span_set_number(inner(span), key, value), span, key);
}

bool offbeat_span_set_integer(struct offbeat_span *span, const char *key, int64_t value)
{
    KEEP_ERRNO;
    return sdk_is_ours() && is_kept(trace_span_set_integer(inner(span), key, value), span, key);
}

bool offbeat_span_set_bool(struct offbeat_span *span, const char *key, bool value)
{
    KEEP_ERRNO;
    return sdk_is_ours() && is_kept(trace_span_set_bool(inner(span), key, value), span, key);
}

bool offbeat_span_set_tag(struct offbeat_span *span, const char *key, const char *value)
{
    KEEP_ERRNO;
    return sdk_is_ours() && is_kept(trace_span_set_tag(inner(span), key, value), span, key);
}

bool offbeat_span_remove(struct offbeat_span *span, const char *key)
{
    KEEP_ERRNO;
    return sdk_is_ours() && trace_span_remove(inner(span), key, false);
}

bool offbeat_span_remove_tag(struct offbeat_span *span, const char *key)
{
    KEEP_ERRNO;
    return sdk_is_ours() && trace_span_remove(inner(span), key, true);
}

bool offbeat_span_set_user(struct offbeat_span *span, const struct offbeat_user *user)
{
    KEEP_ERRNO;
    if (!sdk_is_ours()) return false;
    if (!user) return trace_span_set_user(inner(span), NULL);
    if (user->size < sizeof(*user)) {
        sdk_debug("a user's size must be sizeof(struct offbeat_user): the user is not set");
        return false;
    }
    const struct trace_user known = {
        .id = user->id, .username = user->username, .email = user->email, .ip_address = user->ip_address};
    return trace_span_set_user(inner(span), &known);
}

const char *offbeat_span_transaction_name(const struct offbeat_span *span)
{
    return memory_sanitizer_text(trace_span_transaction_name(inner(span)));
}

const char *offbeat_span_op(const struct offbeat_span *span)
{
    return memory_sanitizer_text(trace_span_op(inner(span)));
}

const char *offbeat_span_description(const struct offbeat_span *span)
{
    return memory_sanitizer_text(trace_span_description(inner(span)));
}

_Static_assert((int)OFFBEAT_KIND_TAG == (int)TRACE_ENTRY_TAG, "the same, in the same order");

bool offbeat_span_attribute(const struct offbeat_span *span, size_t index, struct offbeat_attribute *ret_attribute)
{
    const struct trace_entry *entry = trace_span_entry(inner(span), index);
    if (!entry || !ret_attribute) return false;
    bool has_text = entry->kind == TRACE_ENTRY_TEXT || entry->kind == TRACE_ENTRY_TAG;
    *ret_attribute = (struct offbeat_attribute){.key = memory_sanitizer_text(entry->key),
                                                .kind = (enum offbeat_kind)entry->kind,
                                                .text = has_text ? memory_sanitizer_text(entry->text) : NULL,
                                                .number = entry->number,
                                                .integer = entry->integer};
    memory_sanitizer_written(ret_attribute, sizeof(*ret_attribute));
    return true;
}

bool offbeat_span_is_sampled(const struct offbeat_span *span)
{
    return trace_span_is_sampled(inner(span));
}

bool offbeat_span_headers(struct offbeat_span *span, const char *others, struct offbeat_headers *ret_headers)
{
    KEEP_ERRNO;
    struct trace_parent parent;
    struct buffer baggage = {.maximum = sizeof(ret_headers->baggage) - 1};
    if (!ret_headers) return false;
    memset(ret_headers, 0, sizeof(*ret_headers));
    if (!sdk_is_ours()) return false;
    bool has_parent = trace_span_parent(inner(span), &parent);
    if (has_parent) {
        trace_parent_write(&parent, ret_headers->sentry_trace);
        trace_parent_write_w3c(&parent, ret_headers->traceparent);
        if (trace_span_baggage(inner(span), header_slice(others), &baggage) && !baggage.failed)
            memcpy(ret_headers->baggage, baggage.data, baggage.size);
    }
    buffer_fini(&baggage);
    memory_sanitizer_written(ret_headers, sizeof(*ret_headers));
    return has_parent;
}
