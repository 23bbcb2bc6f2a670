/* Copies an envelope item by item, with its own header.  SPDX-License-Identifier: MIT */
#include "transport/outgoing.h"

#include "base/json_reader.h"
#include "base/json_writer.h"

/* Writes HEADER with SENT_AT_NS and without its dsn. Unknown members are kept. */
static void write_header(struct slice header, uint64_t sent_at_ns, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    struct json_reader reader;
    struct slice key;
    json_reader_init(&reader, header);
    json_begin_object(&writer);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        bool is_kept = !slice_equals_text(key, "dsn") && !slice_equals_text(key, "sent_at");
        if (is_kept) json_write_key_slice(&writer, key);
        (void)json_peek(&reader);
        size_t first = json_reader_taken(&reader);
        json_skip(&reader);
        if (is_kept) json_write_raw(&writer, slice_of(header.data + first, json_reader_taken(&reader) - first));
    }
    json_reader_fini(&reader);
    json_member_time(&writer, "sent_at", sent_at_ns);
    json_end_object(&writer);
}

static bool has_transaction(struct slice envelope)
{
    struct envelope_reader reader;
    struct envelope_item item;
    bool has = false;
    if (envelope_open(&reader, envelope, NULL) == STATUS_OK) {
        while (!has && envelope_next(&reader, &item, NULL)) has = slice_equals_text(item.type, "transaction");
    }
    envelope_close(&reader);
    return has;
}

enum status outgoing_build(struct slice envelope, const struct rate_limits *limits, uint64_t now_ns,
                           uint64_t sent_at_ns, struct buffer *out, struct outgoing *ret_outgoing, struct error *error)
{
    struct envelope_reader reader;
    struct envelope_item item;
    struct outgoing outgoing = {0};
    struct buffer header = {.maximum = ENVELOPE_BYTES_MAX};
    struct error end = {.status = STATUS_OK};
    enum status status = envelope_open(&reader, envelope, error);
    if (status == STATUS_OK) {
        bool drops_profile = rate_limits_until(limits, now_ns, CATEGORY_TRANSACTION) != 0 && has_transaction(envelope);
        write_header(reader.header, sent_at_ns, &header);
        envelope_begin_with(out, buffer_slice(&header));
        while (envelope_next(&reader, &item, &end)) {
            enum category category = category_of_item(&item);
            if (rate_limits_until(limits, now_ns, category) || (drops_profile && category == CATEGORY_PROFILE)) {
                discards_add_item(&outgoing.limited, DISCARD_RATELIMIT_BACKOFF, &item);
            } else {
                envelope_add_item_with(out, item.header, item.payload);
                outgoing.item_count++;
                outgoing.counted_count += category != CATEGORY_INTERNAL;
            }
        }
        if (end.status != STATUS_OK) status = error_set(error, end.status, end.offset, "%s", end.message);
        if (header.failed) status = error_set(error, STATUS_NO_MEMORY, 0, "no memory for a header");
    }
    envelope_close(&reader);
    buffer_fini(&header);
    if (status == STATUS_OK) *ret_outgoing = outgoing;
    return status;
}
