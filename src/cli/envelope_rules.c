/* SPDX-License-Identifier: MIT */
#include "cli/envelope_rules.h"

#include "format/sentry/envelope.h"
#include "format/sentry/envelope_profile.h"

#include <inttypes.h>
#include <stdio.h>

/* An error of the envelope costs all of its items. */
static void reject_envelope(enum status status, const struct error *error, envelope_rules_sink receive, void *context)
{
    struct rules_result result;
    rules_result_init(&result);
    (void)rules_reject(&result, status == STATUS_TOO_LARGE ? REJECT_ENVELOPE_TOO_LARGE : REJECT_ENVELOPE_MALFORMED, "",
                       error->message, "byte %" PRIu64, error->offset);
    receive(context, &result, "");
}

enum status envelope_rules_validate(struct slice bytes, enum rules rules, envelope_rules_sink receive, void *context,
                                    size_t *ret_count, struct error *error)
{
    struct envelope_reader reader;
    struct envelope_item item;
    struct error failure;
    char transaction_id[UUID_TEXT_SIZE];
    *ret_count = 1;
    enum status status = envelope_check(bytes, &failure), first = STATUS_OK;
    if (status != STATUS_OK) {
        reject_envelope(status, &failure, receive, context);
        return STATUS_OK;
    }
    *ret_count = 0;
    bool has_transaction = envelope_has_transaction(bytes);
    envelope_transaction_id(bytes, transaction_id);
    status = envelope_open(&reader, bytes, error);
    for (size_t number = 1; status == STATUS_OK && envelope_next(&reader, &item, NULL); number++) {
        char name[96];
        struct rules_result result;
        bool is_v1 = slice_equals_text(item.type, "profile");
        if (!is_v1 && !envelope_item_is_chunk(&item)) continue;
        struct rules_context facts = {.is_in_envelope = true,
                                      .platform = item.platform,
                                      .has_meta_length = item.has_meta_length,
                                      .is_perfetto = envelope_item_is_perfetto(&item),
                                      .meta_length = item.meta_length,
                                      .has_transaction = has_transaction};
        memcpy(facts.transaction_id, transaction_id, sizeof(facts.transaction_id));
        (void)snprintf(name, sizeof(name), "item %zu, %.*s", number, SLICE_ARGUMENTS(item.type));
        enum status one = is_v1 ? rules_validate_profile(item.payload, &facts, rules, &result, &failure)
                                : rules_validate_chunk(item.payload, &facts, rules, &result, &failure);
        ++*ret_count;
        if (one == STATUS_OK) {
            receive(context, &result, name);
        } else if (first == STATUS_OK) {
            first = one;
            if (error) *error = failure;
        }
    }
    envelope_close(&reader);
    return status != STATUS_OK ? status : first;
}
