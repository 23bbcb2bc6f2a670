/* From the items of an envelope to one profile, and back.  SPDX-License-Identifier: MIT */
#include "format/sentry/envelope_profile.h"

#include "base/uuid.h"
#include "format/common/format_ops.h"
#include "format/sentry/envelope.h"
#include "format/sentry/rules.h"
#include "format/sentry/sentry_extension.h"
#include "format/sentry/sentry_v1.h"
#include "format/sentry/sentry_v2.h"
#include "format/sentry/transaction.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAYLOAD_BYTES_MAX = 1 << 30 };

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static bool is_v1_item(const struct envelope_item *item)
{
    return slice_equals_text(item->type, "profile");
}

static enum status decode_payload(const struct envelope_item *item, struct profile *profile, struct error *error)
{
    if (envelope_item_is_perfetto(item))
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "Perfetto trace: not read by offbeat; open the bytes after the item's first %" PRIu64
                         " at https://ui.perfetto.dev",
                         item->meta_length);
    return is_v1_item(item) ? sentry_v1_decode(item->payload, profile, error)
                            : sentry_v2_decode(item->payload, profile, error);
}

/* Adds a profile to what PROFILE has of the others. */
static enum status add_payload(const struct envelope_item *item, struct profile *profile, struct error *error)
{
    struct profile part;
    profile_init(&part);
    enum status status = decode_payload(item, &part, error);
    if (status == STATUS_OK) status = profile_merge(profile, &part, NULL, error);
    profile_fini(&part);
    return status;
}

/* --- Spans as markers --------------------------------------------------------------------------------------------- */

/* The threads of a profile by their ids. */
struct thread_map {
    struct profile *profile;
    uint32_t *of_string; /* the first thread that has the string as its id */
    size_t count;
};

static bool thread_map_init(struct thread_map *map, struct profile *profile)
{
    *map = (struct thread_map){.profile = profile, .count = profile->strings.count};
    map->of_string = calloc(map->count, sizeof(*map->of_string));
    for (size_t i = profile->threads.count; map->of_string && i-- > 1;)
        map->of_string[profile->threads.items[i].id.index] = (uint32_t)i;
    return map->of_string != NULL;
}

/* Threads that the profile does not have are not known. */
static struct thread_id thread_called(const struct thread_map *map, struct slice id)
{
    struct string_id string;
    bool is_known = id.size > 0 && profile_find_string(map->profile, id, &string) && string.index < map->count;
    return (struct thread_id){is_known ? map->of_string[string.index] : 0};
}

static void add_text(struct profile *profile, struct marker_text *texts, uint32_t *count, const char *key,
                     struct slice text)
{
    if (text.size == 0) return;
    texts[(*count)++] = (struct marker_text){profile_text(profile, key), profile_string(profile, text)};
}

static void add_span(const struct thread_map *map, const struct span *span, struct thread_id thread)
{
    enum { TEXTS = 5 };
    struct profile *profile = map->profile;
    struct thread_id own = thread_called(map, span->thread_id);
    struct marker_text texts[TEXTS];
    uint32_t count = 0;
    if (span->start_ns == 0 || span->end_ns < span->start_ns) return;
    add_text(profile, texts, &count, "description", span->description);
    add_text(profile, texts, &count, "status", span->status);
    add_text(profile, texts, &count, "trace_id", span->trace_id);
    add_text(profile, texts, &count, "span_id", span->span_id);
    add_text(profile, texts, &count, "parent_span_id", span->parent_span_id);
    struct marker marker = {.name = profile_string(profile, span->op.size ? span->op : slice_of_text("span")),
                            .thread = own.index ? own : thread,
                            .kind = MARKER_INTERVAL,
                            .start_ns = span->start_ns,
                            .end_ns = span->end_ns};
    profile_add_marker(profile, &marker, texts, count);
}

static void add_spans(const struct thread_map *map, const struct transaction *transaction)
{
    struct span root = transaction->root;
    if (root.description.size == 0) root.description = transaction->name;
    struct thread_id thread = thread_called(map, root.thread_id);
    if (thread.index == 0) thread = thread_called(map, profile_slice(map->profile, map->profile->active_thread));
    add_span(map, &root, thread);
    for (size_t i = 0; i < transaction->spans.count; i++) add_span(map, &transaction->spans.items[i], thread);
}

/* A transaction that cannot be read is passed through all the same. */
static void add_markers(struct profile *profile)
{
    const struct sentry_extension *extension = sentry_extension(profile);
    struct thread_map map;
    struct transaction transaction;
    if (!thread_map_init(&map, profile)) profile_fail(profile, STATUS_NO_MEMORY);
    for (size_t i = 0; map.of_string && i < extension->passthrough_items.count; i++) {
        const struct passthrough_item *item = &extension->passthrough_items.items[i];
        bool is_transaction = slice_equals_text(profile_slice(profile, item->type), "transaction");
        if (!is_transaction || transaction_decode(item->payload, &transaction, NULL) != STATUS_OK) continue;
        add_spans(&map, &transaction);
        transaction_fini(&transaction);
    }
    free(map.of_string);
}

static enum status decode_items(struct envelope_reader *reader, struct profile *profile, struct error *error)
{
    struct envelope_item item;
    struct error framing = {.status = STATUS_OK};
    enum status status = STATUS_OK;
    size_t count = 0;
    bool has_item_members = false;
    sentry_set_envelope_header(profile, reader->header);
    while (status == STATUS_OK && envelope_next(reader, &item, &framing)) {
        if (!is_v1_item(&item) && !envelope_item_is_chunk(&item)) {
            sentry_add_passthrough_item(profile, item.type, item.header, item.payload);
        } else {
            has_item_members |= item.has_further_members;
            status = count++ == 0 ? decode_payload(&item, profile, error) : add_payload(&item, profile, error);
        }
    }
    if (status != STATUS_OK) return status;
    if (framing.status != STATUS_OK) return error_set(error, framing.status, framing.offset, "%s", framing.message);
    if (count == 0) return error_set(error, STATUS_UNSUPPORTED, 0, "the envelope holds no profile");
    struct sentry_extension *extension = sentry_extension_make(profile);
    if (extension) extension->has_item_members = has_item_members;
    add_markers(profile);
    status = profile_failed(profile, error);
    if (status != STATUS_OK) return status;
    return profile_sort_by_time(profile, error);
}

enum status envelope_profile_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct envelope_reader reader;
    enum status status = envelope_open_lenient(&reader, bytes, error);
    if (status == STATUS_OK) status = decode_items(&reader, profile, error);
    envelope_close(&reader);
    return status;
}

/* Opens READER over BYTES up to the transaction, ITEM. Returns false if there is none. The caller closes READER. */
static bool find_transaction(struct envelope_reader *reader, struct slice bytes, struct envelope_item *item)
{
    if (envelope_open(reader, bytes, NULL) != STATUS_OK) return false;
    while (envelope_next(reader, item, NULL)) {
        if (slice_equals_text(item->type, "transaction")) return true;
    }
    return false;
}

bool envelope_has_transaction(struct slice bytes)
{
    struct envelope_reader reader;
    struct envelope_item item;
    bool is_there = find_transaction(&reader, bytes, &item);
    envelope_close(&reader);
    return is_there;
}

void envelope_transaction_id(struct slice bytes, char ret_id[UUID_TEXT_SIZE])
{
    struct envelope_reader reader;
    struct envelope_item item;
    struct transaction transaction;
    ret_id[0] = '\0';
    if (find_transaction(&reader, bytes, &item)) {
        (void)snprintf(ret_id, UUID_TEXT_SIZE, "%s", reader.attributes.event_id);
        if (transaction_decode(item.payload, &transaction, NULL) == STATUS_OK) {
            if (*transaction.event_id) (void)snprintf(ret_id, UUID_TEXT_SIZE, "%s", transaction.event_id);
            transaction_fini(&transaction);
        }
    }
    envelope_close(&reader);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void begin_envelope(const struct profile *profile, bool carries, struct buffer *out)
{
    struct envelope_attributes attributes = {.sdk_name = slice_of_text("offbeat"),
                                             .sdk_version = slice_of_text(OFFBEAT_VERSION)};
    const struct sentry_extension *extension = sentry_extension(profile);
    if (carries && extension->envelope_header.size) {
        envelope_begin_with(out, extension->envelope_header);
        return;
    }
    (void)uuid_parse(profile_slice(profile, extension->transaction.id), attributes.event_id);
    envelope_begin(out, &attributes);
}

static void add_passthrough_items(const struct profile *profile, struct buffer *out)
{
    const struct sentry_extension *extension = sentry_extension(profile);
    for (size_t i = 0; i < extension->passthrough_items.count && !out->failed; i++) {
        const struct passthrough_item *item = &extension->passthrough_items.items[i];
        envelope_add_item_with(out, item->header, item->payload);
    }
}

void envelope_profile_wrap(const struct profile *profile, struct slice chunk, bool is_first, struct buffer *out)
{
    bool carries = is_first && sentry_extension(profile)->sample_format == 2;
    begin_envelope(profile, carries, out);
    envelope_add_item(out, "profile_chunk", sentry_v2_platform(profile), chunk);
    if (carries) add_passthrough_items(profile, out);
}

static enum status fail_no_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the envelope");
}

enum status envelope_profile_check(const struct buffer *out, size_t first, struct error *error)
{
    struct slice bytes = slice_of(out->data + first, out->size - first);
    struct error reason = {0};
    if (out->failed) return fail_no_memory(error);
    enum status status = envelope_check(bytes, &reason);
    if (status == STATUS_OK) return STATUS_OK;
    if (status == STATUS_NO_MEMORY) return fail_no_memory(error);
    const char *name =
        reject_reason_name(status == STATUS_TOO_LARGE ? REJECT_ENVELOPE_TOO_LARGE : REJECT_ENVELOPE_MALFORMED);
    return error_set(error, status, reason.offset, "%s: %.200s", name, reason.message);
}

enum status envelope_profile_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    struct buffer chunk;
    buffer_init(&chunk, PAYLOAD_BYTES_MAX);
    size_t first = out->size;
    enum status status = sentry_v2_encode(profile, NULL, &chunk, error);
    if (status == STATUS_OK) envelope_profile_wrap(profile, buffer_slice(&chunk), true, out);
    if (status == STATUS_OK && out->failed) status = fail_no_memory(error);
    if (status == STATUS_OK) status = envelope_profile_check(out, first, error);
    buffer_fini(&chunk);
    return status;
}

/* --- V1 ----------------------------------------------------------------------------------------------------------- */

/* An envelope has one transaction at most, so a passthrough transaction is the profile's. It need not name its
 * event_id: with PHP's SDK only the envelope's header does. */
static bool carries_transaction(const struct profile *profile)
{
    const struct sentry_extension *extension = sentry_extension(profile);
    for (size_t i = 0; i < extension->passthrough_items.count; i++) {
        struct string_id type = extension->passthrough_items.items[i].type;
        if (slice_equals_text(profile_slice(profile, type), "transaction")) return true;
    }
    return false;
}

/* Writes a transaction from what the profile knows about it. It lasts as long as the profile, unless it has an end. */
static void make_transaction(const struct profile *profile, struct buffer *out)
{
    const struct sentry_transaction *known = &sentry_extension(profile)->transaction;
    char span_id[UUID_TEXT_SIZE] = "00000000000000000000000000000000";
    (void)uuid_new(span_id);
    struct transaction transaction = {
        .name = profile_slice(profile, known->name),
        .platform = slice_of_text(sentry_v2_platform(profile)),
        .release = profile_slice(profile, profile->release),
        .environment = profile_slice(profile, profile->environment),
        .profile_id = profile_slice(profile, profile->chunk_id),
        .root = {.trace_id = profile_slice(profile, known->trace_id),
                 .span_id = slice_of(span_id, 16),
                 .op = slice_of_text("profile"),
                 .status = slice_of_text("ok"),
                 .thread_id = profile_slice(profile, profile->active_thread),
                 .start_ns = profile_start_ns(profile) + known->start_ns,
                 .end_ns = profile_start_ns(profile) + (known->end_ns ? known->end_ns : profile->duration_ns)},
    };
    (void)uuid_parse(profile_slice(profile, known->id), transaction.event_id);
    transaction_encode(&transaction, out);
}

enum status envelope_profile_encode_v1(const struct profile *profile, struct buffer *out, struct error *error)
{
    struct buffer payload, transaction;
    bool carries = sentry_extension(profile)->sample_format == 1;
    buffer_init(&payload, PAYLOAD_BYTES_MAX);
    buffer_init(&transaction, PAYLOAD_BYTES_MAX);
    size_t first = out->size;
    enum status status = sentry_v1_encode(profile, &payload, error);
    if (status == STATUS_OK) {
        begin_envelope(profile, carries, out);
        if (!carries || !carries_transaction(profile)) {
            make_transaction(profile, &transaction);
            envelope_add_item(out, "transaction", NULL, buffer_slice(&transaction));
        }
        if (carries) add_passthrough_items(profile, out);
        envelope_add_item(out, "profile", NULL, buffer_slice(&payload));
        if (out->failed || transaction.failed) status = fail_no_memory(error);
    }
    if (status == STATUS_OK) status = envelope_profile_check(out, first, error);
    buffer_fini(&transaction);
    buffer_fini(&payload);
    return status;
}

const struct format format_envelope = {
    .name = "envelope",
    .suffixes = {".envelope"},
    .detect = envelope_detect,
    .decode = envelope_profile_decode,
    .encode = envelope_profile_encode,
    .keeps = KEEPS_SENTRY_V2 | KEEPS_ITEMS,
    .sentry_version = 2,
};

const struct format format_envelope_v1 = {
    .name = "envelope-v1",
    .written_suffix = ".envelope",
    .decode = envelope_profile_decode,
    .encode = envelope_profile_encode_v1,
    .keeps = KEEPS_SENTRY_V1 | KEEPS_ITEMS,
    .sentry_version = 1,
};
