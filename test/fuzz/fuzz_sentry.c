/* Any bytes as what Sentry's clients send, packed or not: an envelope is framed again as it was, a profile of V1 and a
 * transaction that were read are written so that they read the same, and every validator gives a result.
 * SPDX-License-Identifier: MIT */
#include "base/compression.h"
#include "format/sentry/client_report.h"
#include "format/sentry/envelope.h"
#include "format/sentry/rules.h"
#include "format/sentry/sentry_extension.h"
#include "format/sentry/sentry_v1.h"
#include "format/sentry/transaction.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUTPUT_BYTES_MAX = 16 << 20 };

static void must(bool condition)
{
    if (!condition) __builtin_trap();
}

/* Writes what BYTES hold to OUT. False if they are no profile of V1, or one that is not to be sent. */
static bool rewrite_v1(struct slice bytes, struct buffer *out)
{
    struct profile profile;
    profile_init(&profile);
    bool is_written = sentry_v1_decode(bytes, &profile, NULL) == STATUS_OK;
    if (profile.chunk_id.index == 0) profile.chunk_id = profile_text(&profile, "41fed0925670468bb0457f61a74688ec");
    struct sentry_extension *extension = sentry_extension_make(&profile);
    if (extension && extension->transaction.trace_id.index == 0) extension->transaction.trace_id = profile.chunk_id;
    is_written = is_written && sentry_v1_encode(&profile, out, NULL) == STATUS_OK;
    profile_fini(&profile);
    return is_written;
}

/* The first time threads and stacks come into the order of their samples; then everything stays as it is. */
static void try_v1(struct slice bytes)
{
    struct buffer written[3];
    for (int i = 0; i < 3; i++) buffer_init(&written[i], OUTPUT_BYTES_MAX);
    if (rewrite_v1(bytes, &written[0])) {
        must(rewrite_v1(buffer_slice(&written[0]), &written[1]));
        must(rewrite_v1(buffer_slice(&written[1]), &written[2]));
        must(slice_equal(buffer_slice(&written[1]), buffer_slice(&written[2])));
    }
    for (int i = 0; i < 3; i++) buffer_fini(&written[i]);
}

static void try_transaction(struct slice bytes)
{
    struct transaction transaction = {0}, again = {0};
    struct buffer first, second;
    buffer_init(&first, OUTPUT_BYTES_MAX);
    buffer_init(&second, OUTPUT_BYTES_MAX);
    if (transaction_decode(bytes, &transaction, NULL) == STATUS_OK) {
        transaction_encode(&transaction, &first);
        must(first.failed || transaction_decode(buffer_slice(&first), &again, NULL) == STATUS_OK);
        transaction_encode(&again, &second);
        must(first.failed || slice_equal(buffer_slice(&first), buffer_slice(&second)));
    }
    transaction_fini(&again);
    transaction_fini(&transaction);
    buffer_fini(&second);
    buffer_fini(&first);
}

static void try_payload(struct slice bytes)
{
    struct span_list spans;
    struct client_report report;
    struct rules_result result;
    try_v1(bytes);
    try_transaction(bytes);
    if (spans_decode(bytes, &spans, NULL) == STATUS_OK) spans_fini(&spans);
    if (client_report_decode(bytes, &report, NULL) == STATUS_OK) client_report_fini(&report);
    for (enum rules rules = RULES_SPEC; rules < RULES_COUNT; rules++) {
        must(rules_validate_profile(bytes, NULL, rules, &result, NULL) == STATUS_OK);
    }
}

static bool next_is_same(struct envelope_reader *reader, const struct envelope_item *item)
{
    struct envelope_item other;
    return envelope_next(reader, &other, NULL) && slice_equal(item->type, other.type) &&
           slice_equal(item->payload, other.payload);
}

static void try_envelope(struct slice bytes)
{
    struct envelope_reader reader, again;
    struct envelope_item item;
    struct buffer copy;
    buffer_init(&copy, OUTPUT_BYTES_MAX);
    (void)envelope_check(bytes, NULL);
    if (envelope_open(&reader, bytes, NULL) == STATUS_OK) {
        envelope_begin_with(&copy, reader.header);
        while (envelope_next(&reader, &item, NULL)) {
            try_payload(item.payload);
            envelope_add_item_with(&copy, item.header, item.payload);
        }
    }
    envelope_close(&reader);
    if (copy.size > 0 && !copy.failed && envelope_open(&reader, bytes, NULL) == STATUS_OK) {
        must(envelope_open(&again, buffer_slice(&copy), NULL) == STATUS_OK);
        while (envelope_next(&reader, &item, NULL)) must(next_is_same(&again, &item));
        envelope_close(&again);
        envelope_close(&reader);
    }
    buffer_fini(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = slice_of(data, size);
    for (enum compression compression = COMPRESSION_NONE; compression <= COMPRESSION_ZSTD; compression++) {
        struct buffer raw;
        buffer_init(&raw, OUTPUT_BYTES_MAX);
        if (decompress(compression, bytes, &raw, NULL) == STATUS_OK) {
            try_payload(buffer_slice(&raw));
            try_envelope(buffer_slice(&raw));
        }
        buffer_fini(&raw);
    }
    return 0;
}
