/* Any bytes get a result by both sets of rules. The encoder writes what was decoded, or rejects it by a name. The
 * service accepts what is written, and reading and writing it again and again gives the same bytes.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_v2.h"
#include "times.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENCODED_BYTES_MAX = 64 << 20 };

static void demand(bool holds)
{
    if (!holds) __builtin_trap();
}

static bool is_accepted(struct slice payload, enum rules rules)
{
    struct rules_result result;
    if (rules_validate_chunk(payload, NULL, rules, &result, NULL) != STATUS_OK) return true;
    demand(result.accepted == (result.reason == REJECT_NONE));
    return result.accepted;
}

/* Reads BYTES and writes them to RET_WRITTEN. False if either is rejected. */
static bool rewrite(struct slice bytes, struct buffer *ret_written)
{
    struct profile profile;
    struct rules_result result;
    profile_init(&profile);
    buffer_init(ret_written, ENCODED_BYTES_MAX);
    enum status status = sentry_v2_decode_and_validate(bytes, NULL, RULES_RELAY, &profile, &result, NULL);
    if (status == STATUS_OK && !has_exact_times(&profile)) status = STATUS_UNSUPPORTED;
    if (status == STATUS_OK) status = sentry_v2_encode(&profile, NULL, ret_written, NULL);
    profile_fini(&profile);
    return status == STATUS_OK;
}

/* The first time threads and stacks come into the order of their samples; then everything stays as it is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer written[3];
    struct slice bytes = slice_of(data, size);
    for (enum rules rules = 0; rules < RULES_COUNT; rules++) (void)is_accepted(bytes, rules);
    bool is_written = rewrite(bytes, &written[0]);
    if (is_written) demand(is_accepted(buffer_slice(&written[0]), RULES_RELAY));
    if (is_written) {
        demand(rewrite(buffer_slice(&written[0]), &written[1]) && rewrite(buffer_slice(&written[1]), &written[2]));
        demand(slice_equal(buffer_slice(&written[1]), buffer_slice(&written[2])));
        buffer_fini(&written[1]);
        buffer_fini(&written[2]);
    }
    buffer_fini(&written[0]);
    return 0;
}
