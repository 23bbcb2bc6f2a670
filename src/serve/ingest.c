/* Envelopes into the store. The rules of the real service decide what is accepted (doc/formats/rules.md).
 *
 * A request is one batch: all of it is on disk when the client gets its 200, or nothing is.
 * SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/rfc3339.h"
#include "demangle/demangled_names.h"
#include "format/sentry/client_report.h"
#include "format/sentry/envelope.h"
#include "format/sentry/envelope_profile.h"
#include "format/sentry/rules.h"
#include "format/sentry/sentry_v1.h"
#include "format/sentry/sentry_v2.h"
#include "format/sentry/transaction.h"
#include "profile/profile_extent.h"
#include "query/selection.h"
#include "serve/ingest.h"
#include "spool/category.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INGEST_SPANS_MAX = 1 << 17, INGEST_REJECTED_MAX = 16, INGEST_LISTS_MAX = 1000 };

/* Texts that a rejected item leaves behind. */
struct rejection {
    char type[64];
    struct rules_result result;
};

/* The content of one request, and the memory of its slices. envelope_check allows one profile and one transaction at
 * most. */
struct ingest {
    struct request *request;
    struct profile profile;
    bool has_chunk, has_transaction;
    struct described_chunk described;
    struct buffer trace;        /* envelope of a chunk whose trace is not read */
    struct rules_result result; /* result of the item that is read */
    char client[128];
    struct store_rejected rejected[INGEST_REJECTED_MAX];
    struct rejection rejections[INGEST_REJECTED_MAX]; /* texts of REJECTED */
    size_t rejected_count;
    struct transaction transaction;
    struct span_list *lists; /* lists of span items */
    size_t list_count, list_capacity;
    struct store_span *spans;
    size_t span_count, span_capacity;
    struct client_report *reports;
    size_t report_count, report_capacity;
    struct store_outcome outcomes[STORE_BATCH_OUTCOMES_MAX];
    size_t outcome_count;
    struct rules_context context;
};

static void ingest_fini(struct ingest *ingest)
{
    profile_fini(&ingest->profile);
    described_chunk_fini(&ingest->described);
    buffer_fini(&ingest->trace);
    if (ingest->has_transaction) transaction_fini(&ingest->transaction);
    for (size_t i = 0; i < ingest->list_count; i++) spans_fini(&ingest->lists[i]);
    for (size_t i = 0; i < ingest->report_count; i++) client_report_fini(&ingest->reports[i]);
    free(ingest->lists);
    free(ingest->reports);
    free(ingest->spans);
}

static void count_outcome(struct ingest *ingest, const char *outcome, const char *category, struct slice reason,
                          uint64_t quantity)
{
    for (size_t i = 0; i < ingest->outcome_count; i++) {
        struct store_outcome *known = &ingest->outcomes[i];
        if (!slice_equals_text(known->outcome, outcome) || !slice_equals_text(known->category, category) ||
            !slice_equal(known->reason, reason))
            continue;
        known->quantity += quantity;
        return;
    }
    if (ingest->outcome_count == STORE_BATCH_OUTCOMES_MAX) return;
    ingest->outcomes[ingest->outcome_count++] =
        (struct store_outcome){slice_of_text(outcome), slice_of_text(category), reason, quantity};
}

/* --- Names of a chunk --------------------------------------------------------------------------------------- */

struct slice ingest_cut_name(struct slice name)
{
    if (name.size <= STORE_NAME_BYTES_MAX) return name;
    size_t size = STORE_NAME_BYTES_MAX;
    while (size > 0 && (name.data[size] & 0xC0) == 0x80) size--; /* not inside of a character of UTF-8 */
    return slice_of(name.data, size);
}

struct slice ingest_service_of_release(struct slice release)
{
    const uint8_t *at = release.size ? memchr(release.data, '@', release.size) : NULL;
    return at ? slice_of(release.data, (size_t)(at - release.data)) : slice_of(NULL, 0);
}

static void find_extent(const struct profile *profile, struct store_chunk *chunk)
{
    struct time_range range = chunk_times(profile);
    if (range.start_ns > range.end_ns) {
        range.start_ns = profile_start_ns(profile);
        range.end_ns = range.start_ns + profile->duration_ns;
    }
    chunk->start_ns = range.start_ns;
    chunk->end_ns = range.end_ns < range.start_ns ? range.start_ns : range.end_ns;
}

void ingest_describe(const struct request *request, const struct profile *profile, const struct chunk_source *source,
                     struct described_chunk *described)
{
    struct store_chunk *chunk = &described->chunk;
    *described = (struct described_chunk){0};
    buffer_init(&described->kinds, KINDS_TEXT_MAX);
    kinds_write(profile, source->hints, &described->kinds);
    *chunk = (struct store_chunk){
        .project = request->project,
        .kind = source->kind,
        .profiler_id = profile_slice(profile, profile->profiler_id),
        .chunk_id = profile_slice(profile, profile->chunk_id),
        .environment = ingest_cut_name(profile_slice(profile, profile->environment)),
        .release = ingest_cut_name(profile_slice(profile, profile->release)),
        .platform = ingest_cut_name(profile_slice(profile, profile->platform)),
        .received_ns = request->received_ns,
        .sample_count = profile->samples.count,
        .payload = source->payload,
        .kinds = buffer_slice(&described->kinds),
    };
    chunk->service = ingest_service_of_release(chunk->release);
    find_extent(profile, chunk);
}

void ingest_add_up(struct described_chunk *described, const struct profile *profile)
{
    struct store_chunk *chunk = &described->chunk;
    struct rollup_series series;
    bool is_series = kinds_need_series(chunk->kinds);
    if (chunk->kind == STORE_PROFILE) return; /* profiles of V1 change when they are decoded for a query */
    if (is_series) series_of_chunk(chunk, profile, &series);
    if (profile_rollup_init(&described->rollup, profile, is_series ? &series : NULL))
        chunk->rollup = &described->rollup.rollup;
}

void described_chunk_fini(struct described_chunk *described)
{
    profile_rollup_fini(&described->rollup);
    buffer_fini(&described->kinds);
}

/* 2024: a server whose clock is before that has a clock that was not set, and knows no time. */
#define CLOCK_IS_SET_NS (1704067200 * SECOND_NS)

/* Writes how TIME_NS looks beside the limit LIMIT_NS. */
static void describe_misdating(struct misdating *misdating, const char *reason, uint64_t time_ns, uint64_t limit_ns)
{
    char text[RFC3339_TEXT_SIZE];
    misdating->reason = reason;
    rfc3339_format(time_ns, text);
    (void)snprintf(misdating->found, sizeof(misdating->found), "%s", text);
    rfc3339_format(limit_ns, text);
    (void)snprintf(misdating->expected, sizeof(misdating->expected), "%s %s", time_ns > limit_ns ? "until" : "from",
                   text);
}

bool ingest_is_misdated(const struct request *request, const struct store_chunk *chunk, struct misdating *ret_misdating)
{
    uint64_t now_ns = request->received_ns, ahead_ns = now_ns + DAY_NS;
    if (chunk->start_ns > ahead_ns && now_ns > CLOCK_IS_SET_NS) {
        describe_misdating(ret_misdating, "future_timestamp", chunk->start_ns, ahead_ns);
        return true;
    }
    if (chunk->end_ns + DAY_NS >= now_ns) return false;
    uint64_t age_ns = store_age_of_project(request->server->store, request->project, request->server->options.keep_ns);
    if (age_ns == 0 || age_ns >= now_ns || chunk->end_ns >= now_ns - age_ns) return false;
    describe_misdating(ret_misdating, "older_than_retention", chunk->end_ns, now_ns - age_ns);
    return true;
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

static void add_rejected_for(struct ingest *ingest, const struct envelope_item *item, const char *category,
                             const char *reason)
{
    count_outcome(ingest, "invalid", category, slice_of_text(reason), 1);
    if (ingest->rejected_count == INGEST_REJECTED_MAX) return;
    struct rejection *rejection = &ingest->rejections[ingest->rejected_count];
    rejection->result = ingest->result;
    (void)snprintf(rejection->type, sizeof(rejection->type), "%.*s", SLICE_ARGUMENTS(item->type));
    ingest->rejected[ingest->rejected_count++] = (struct store_rejected){
        .received_ns = ingest->request->received_ns,
        .type = slice_of_text(rejection->type),
        .reason = slice_of_text(reason),
        .place = slice_of_text(rejection->result.place),
        .found = slice_of_text(rejection->result.found),
        .expected = slice_of_text(rejection->result.expected),
        .sdk = slice_of_text(ingest->client),
        .header = item->header.size <= 4096 ? item->header : slice_of(NULL, 0),
        .payload = item->payload,
    };
}

static void add_rejected(struct ingest *ingest, const struct envelope_item *item, const char *category)
{
    add_rejected_for(ingest, item, category, reject_reason_name(ingest->result.reason));
}

static void add_misdated(struct ingest *ingest, const struct envelope_item *item, const char *category,
                         const struct misdating *misdating)
{
    rules_result_init(&ingest->result);
    (void)rules_reject(&ingest->result, REJECT_NONE, misdating->expected, misdating->found, "%s", "timestamp");
    add_rejected_for(ingest, item, category, misdating->reason);
}

/* A payload that the rules accept but that we cannot read. */
static void reject_unreadable(struct ingest *ingest, const struct error *error)
{
    rules_result_init(&ingest->result);
    (void)rules_reject(&ingest->result, REJECT_INVALID_JSON, "a profile that can be stored", error->message, "%s", "");
}

/* Takes a chunk whose trace is not read, with the header of its item, which says how long the parts of its payload are.
 * Its time is the time of receipt. */
static enum status take_trace(struct ingest *ingest, const struct envelope_item *item, struct error *error)
{
    struct buffer *trace = &ingest->trace;
    buffer_init(trace, STORE_PAYLOAD_BYTES_MAX);
    buffer_append_text(trace, "{}\n");
    buffer_append(trace, item->header.data, item->header.size);
    buffer_append_text(trace, "\n");
    buffer_append(trace, item->payload.data, item->payload.size);
    if (trace->failed) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the chunk");
    const struct chunk_source source = {.kind = STORE_TRACE, .payload = buffer_slice(trace)};
    ingest_describe(ingest->request, &ingest->profile, &source, &ingest->described);
    ingest_add_up(&ingest->described, &ingest->profile);
    struct store_chunk *chunk = &ingest->described.chunk;
    chunk->start_ns = chunk->end_ns = ingest->request->received_ns;
    ingest->has_chunk = true;
    count_outcome(ingest, "accepted", category_name(category_of_item(item)), slice_of(NULL, 0), 1);
    return STATUS_OK;
}

static enum status take_profile(struct ingest *ingest, const struct envelope_item *item, bool is_chunk,
                                struct error *error)
{
    const char *category = category_name(category_of_item(item));
    ingest->context.is_in_envelope = true;
    ingest->context.platform = item->platform;
    ingest->context.has_meta_length = item->has_meta_length;
    ingest->context.is_perfetto = envelope_item_is_perfetto(item);
    ingest->context.meta_length = item->meta_length;
    enum status status, decoded;
    if (is_chunk) {
        decoded = status = sentry_v2_decode_and_validate(item->payload, &ingest->context, RULES_RELAY, &ingest->profile,
                                                         &ingest->result, error);
        if (status != STATUS_NO_MEMORY) status = STATUS_OK; /* there is a result */
    } else {
        status = rules_validate_profile(item->payload, &ingest->context, RULES_RELAY, &ingest->result, error);
        decoded = status == STATUS_OK && ingest->result.accepted
                      ? sentry_v1_decode(item->payload, &ingest->profile, error)
                      : STATUS_OK;
    }
    if (status == STATUS_NO_MEMORY) return status;
    bool is_trace = is_chunk && ingest->result.accepted && decoded == STATUS_UNSUPPORTED;
    if (is_trace) return take_trace(ingest, item, error);
    if (status != STATUS_OK || (ingest->result.accepted && decoded != STATUS_OK)) reject_unreadable(ingest, error);
    if (!ingest->result.accepted) {
        add_rejected(ingest, item, category);
        return STATUS_OK;
    }
    profile_demangle(&ingest->profile);
    const struct chunk_source source = {.kind = is_chunk ? STORE_CHUNK : STORE_PROFILE, .payload = item->payload};
    ingest_describe(ingest->request, &ingest->profile, &source, &ingest->described);
    ingest_add_up(&ingest->described, &ingest->profile);
    struct misdating misdating;
    if (ingest_is_misdated(ingest->request, &ingest->described.chunk, &misdating)) {
        add_misdated(ingest, item, category, &misdating);
        return STATUS_OK;
    }
    ingest->has_chunk = true;
    count_outcome(ingest, "accepted", category, slice_of(NULL, 0), 1);
    return STATUS_OK;
}

static void add_span(struct ingest *ingest, const struct span *span, struct slice profiler, bool is_transaction)
{
    if (!array_reserve(&ingest->spans, &ingest->span_capacity, ingest->span_count + 1, sizeof(*ingest->spans),
                       INGEST_SPANS_MAX))
        return;
    const struct transaction *transaction = ingest->has_transaction ? &ingest->transaction : NULL;
    struct slice release = ingest_cut_name(transaction ? transaction->release : span->release);
    bool has_thread = span->thread_id.size > 0 || !transaction;
    ingest->spans[ingest->span_count++] = (struct store_span){
        .trace_id = ingest_cut_name(span->trace_id),
        .span_id = ingest_cut_name(span->span_id),
        .name = ingest_cut_name(is_transaction && transaction ? transaction->name : span->description),
        .op = ingest_cut_name(span->op),
        .service = ingest_service_of_release(release),
        .environment = ingest_cut_name(transaction ? transaction->environment : span->environment),
        .release = release,
        .profiler_id = ingest_cut_name(profiler),
        .profile_id = transaction ? ingest_cut_name(transaction->profile_id) : slice_of(NULL, 0),
        .thread_id = ingest_cut_name(has_thread ? span->thread_id : transaction->root.thread_id),
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .is_transaction = is_transaction,
    };
}

static void take_transaction(struct ingest *ingest, const struct envelope_item *item)
{
    struct error error;
    if (transaction_decode(item->payload, &ingest->transaction, &error) != STATUS_OK) {
        reject_unreadable(ingest, &error);
        add_rejected(ingest, item, "transaction");
        return;
    }
    const struct transaction *transaction = &ingest->transaction;
    ingest->has_transaction = true;
    add_span(ingest, &transaction->root, transaction->root.profiler_id, true);
    for (size_t i = 0; i < transaction->spans.count; i++) {
        const struct span *span = &transaction->spans.items[i];
        add_span(ingest, span, transaction_profiler_of(transaction, span), false);
    }
    count_outcome(ingest, "accepted", "transaction", slice_of(NULL, 0), 1);
}

/* Joins the V1 profile of the envelope with its transaction and that one's spans: SDKs leave it to the server. */
static void join_profile(struct ingest *ingest)
{
    const struct store_chunk *chunk = &ingest->described.chunk;
    if (!ingest->has_chunk || !ingest->has_transaction || chunk->kind != STORE_PROFILE) return;
    struct slice thread = ingest_cut_name(profile_slice(&ingest->profile, ingest->profile.active_thread));
    for (size_t i = 0; i < ingest->span_count; i++) {
        struct store_span *span = &ingest->spans[i];
        bool is_joined = span->profile_id.size + span->profiler_id.size > 0;
        if (is_joined || !slice_equal(span->trace_id, ingest_cut_name(ingest->transaction.root.trace_id))) continue;
        span->profile_id = chunk->chunk_id;
        if (span->thread_id.size == 0) span->thread_id = thread;
    }
}

static void take_spans(struct ingest *ingest, const struct envelope_item *item)
{
    struct error error;
    if (!array_reserve(&ingest->lists, &ingest->list_capacity, ingest->list_count + 1, sizeof(*ingest->lists),
                       INGEST_LISTS_MAX))
        return;
    struct span_list *list = &ingest->lists[ingest->list_count];
    if (spans_decode(item->payload, list, &error) != STATUS_OK) {
        reject_unreadable(ingest, &error);
        add_rejected(ingest, item, "span");
        return;
    }
    ingest->list_count++;
    bool had_transaction = ingest->has_transaction;
    ingest->has_transaction = false; /* spans that were sent alone do not belong to it */
    for (size_t i = 0; i < list->count; i++)
        add_span(ingest, &list->items[i], list->items[i].profiler_id, list->items[i].is_segment);
    ingest->has_transaction = had_transaction;
    count_outcome(ingest, "accepted", "span", slice_of(NULL, 0), list->count);
}

static void take_report(struct ingest *ingest, const struct envelope_item *item)
{
    if (!array_reserve(&ingest->reports, &ingest->report_capacity, ingest->report_count + 1, sizeof(*ingest->reports),
                       INGEST_LISTS_MAX))
        return;
    struct client_report *report = &ingest->reports[ingest->report_count];
    if (client_report_decode(item->payload, report, NULL) != STATUS_OK) return;
    ingest->report_count++;
    for (size_t i = 0; i < report->count; i++) {
        const struct discarded *discarded = &report->items[i];
        const char *reason = discarded->is_known_reason ? discarded->reason : "other";
        enum category category;
        bool is_known = category_of_name(slice_of_text(discarded->category), &category);
        count_outcome(ingest, "client_discard", is_known ? category_name(category) : "default", slice_of_text(reason),
                      discarded->quantity);
    }
}

static enum status take_item(struct ingest *ingest, const struct envelope_item *item, struct error *error)
{
    bool is_chunk = envelope_item_is_chunk(item);
    if (is_chunk || slice_equals_text(item->type, "profile")) return take_profile(ingest, item, is_chunk, error);
    if (slice_equals_text(item->type, "transaction"))
        take_transaction(ingest, item);
    else if (slice_equals_text(item->type, "span"))
        take_spans(ingest, item);
    else if (slice_equals_text(item->type, "client_report"))
        take_report(ingest, item);
    else
        count_outcome(ingest, "not_stored", category_name(category_of_item(item)), slice_of(NULL, 0), 1);
    return STATUS_OK;
}

/* --- The batch ---------------------------------------------------------------------------------------------------- */

bool ingest_store(struct request *request, const struct store_batch *batch)
{
    struct server *server = request->server;
    struct error error = {0};
    uint64_t duplicates = 0;
    if (store_add(server->store, batch, &duplicates, &error) != STATUS_OK) {
        server_log_failure(server, error.message);
        answer_error(request, 503, "%s", error.message);
        return false;
    }
    atomic_fetch_add(&server->chunks, batch->chunk_count - duplicates);
    atomic_fetch_add(&server->duplicates, duplicates);
    atomic_fetch_add(&server->rejected, batch->rejected_count);
    struct project_metrics more = {
        .project = batch->project, .chunks = batch->chunk_count - duplicates, .rejected = batch->rejected_count};
    for (size_t i = 0; i < batch->chunk_count; i++) more.bytes += batch->chunks[i].payload.size;
    metrics_note_stored(&server->metrics, &more);
    return true;
}

void ingest_answer_id(struct request *request, struct slice id)
{
    struct json_writer json = json_writer_of(&request->answer);
    buffer_clear(&request->answer);
    json_begin_object(&json);
    if (id.size) {
        json_member_string(&json, "id", id);
    }
    json_end_object(&json);
    answer_finish(request, "application/json");
}

static void take_items(struct ingest *ingest, struct envelope_reader *reader)
{
    struct envelope_item item;
    struct error error = {0};
    enum status status = STATUS_OK;
    const struct envelope_attributes *attributes = &reader->attributes;
    if (attributes->sdk_name.size > 0)
        (void)snprintf(ingest->client, sizeof(ingest->client), "%.*s/%.*s", SLICE_ARGUMENTS(attributes->sdk_name),
                       SLICE_ARGUMENTS(attributes->sdk_version));
    while (status == STATUS_OK && envelope_next(reader, &item, &error)) status = take_item(ingest, &item, &error);
    if (status != STATUS_OK) {
        answer_failure(ingest->request, &error);
        return;
    }
    join_profile(ingest);
    const struct store_batch batch = {.project = ingest->request->project,
                                      .received_ns = ingest->request->received_ns,
                                      .chunks = &ingest->described.chunk,
                                      .chunk_count = ingest->has_chunk,
                                      .spans = ingest->spans,
                                      .span_count = ingest->span_count,
                                      .rejected = ingest->rejected,
                                      .rejected_count = ingest->rejected_count,
                                      .outcomes = ingest->outcomes,
                                      .outcome_count = ingest->outcome_count};
    bool is_empty = !ingest->has_chunk && ingest->span_count + ingest->rejected_count + ingest->outcome_count == 0;
    if (is_empty || ingest_store(ingest->request, &batch))
        ingest_answer_id(ingest->request, slice_of_text(attributes->event_id));
}

static void take_envelope(struct request *request, struct slice bytes)
{
    struct error error = {0};
    struct envelope_reader reader;
    if (bytes.size == 0) {
        answer_error(request, 400, "empty envelope");
        return;
    }
    enum status status = envelope_open(&reader, bytes, &error);
    if (status == STATUS_OK && access_may_write(request, reader.attributes.dsn)) {
        status = envelope_check(bytes, &error);
        if (status != STATUS_OK) {
            answer_failure(request, &error);
        } else {
            struct ingest ingest = {.request = request};
            profile_init(&ingest.profile);
            ingest.context.has_transaction = envelope_has_transaction(bytes);
            envelope_transaction_id(bytes, ingest.context.transaction_id);
            take_items(&ingest, &reader);
            ingest_fini(&ingest);
        }
    } else if (status != STATUS_OK) {
        /* A request without a key learns nothing else. */
        if (!access_names_key(request))
            answer_error(request, 401, "missing authorization information");
        else
            answer_failure(request, &error);
    }
    envelope_close(&reader);
}

void ingest_envelope(struct request *request)
{
    struct buffer bytes;
    if (!body_decompress(request, ENVELOPE_BYTES_MAX, &bytes)) return;
    take_envelope(request, buffer_slice(&bytes));
    buffer_fini(&bytes);
}
