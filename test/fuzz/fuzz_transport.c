/* The answers of a server and the envelopes to send may be any bytes. No limit is longer than a day or ever
 * shortened; a DSN that is accepted gives an address without blanks; of an envelope each item is sent or counted, and
 * what is sent is an envelope again.  SPDX-License-Identifier: MIT */
#include "spool/dsn.h"
#include "transport/outgoing.h"

#define SECOND_NS ((uint64_t)1000000000)

enum { TEXT_SIZE = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds) __builtin_trap();
}

static struct rate_limits try_limits(struct slice bytes)
{
    struct rate_limits limits = {0};
    uint64_t now = 1000 * SECOND_NS, most = now + 86400 * SECOND_NS;
    const struct rate_limit_answer answers[] = {
        {.status = 200, .rate_limits = bytes},
        {.status = 429, .retry_after = bytes, .time_ns = 1700000000 * SECOND_NS}};
    for (unsigned i = 0; i < 2; i++) {
        struct rate_limits before = limits;
        rate_limits_update(&limits, now, &answers[i]);
        demand(limits.all_until_ns <= most && limits.all_until_ns >= before.all_until_ns);
        for (unsigned j = 0; j < CATEGORY_COUNT; j++)
            demand(limits.until_ns[j] <= most && limits.until_ns[j] >= before.until_ns[j]);
    }
    limits.all_until_ns = 0; /* such a limit would leave nothing to send */
    return limits;
}

static void try_dsn(struct slice bytes)
{
    char text[TEXT_SIZE], url[DSN_URL_SIZE], name[DSN_HOST_SIZE];
    struct dsn dsn;
    if (bytes.size >= sizeof(text)) return;
    if (bytes.size) memcpy(text, bytes.data, bytes.size);
    text[bytes.size] = 0;
    if (dsn_parse(text, &dsn, NULL) != STATUS_OK) return;
    dsn_url(&dsn, url);
    dsn_folder_name(&dsn, name);
    demand(strpbrk(url, " \r\n\t") == NULL && strlen(url) + 1 < DSN_URL_SIZE && strchr(name, '/') == NULL);
}

static size_t count_items(struct slice bytes)
{
    struct envelope_reader reader;
    struct envelope_item item;
    size_t count = 0;
    if (envelope_open(&reader, bytes, NULL) == STATUS_OK) {
        while (envelope_next(&reader, &item, NULL)) count += category_of_item(&item) != CATEGORY_INTERNAL;
    }
    envelope_close(&reader);
    return count;
}

static void try_envelope(struct slice bytes, const struct rate_limits *limits)
{
    struct buffer out = {.maximum = ENVELOPE_BYTES_MAX};
    struct outgoing outgoing;
    if (outgoing_build(bytes, limits, 1000 * SECOND_NS, 1700000000 * SECOND_NS, &out, &outgoing, NULL) == STATUS_OK &&
        !out.failed) {
        demand(count_items(buffer_slice(&out)) == outgoing.counted_count);
        /* The counts of a report inside are counted only if the report is left out, which never happens. */
        demand(outgoing.counted_count + discards_item_count(&outgoing.limited) == count_items(bytes));
    }
    buffer_fini(&out);
}

/* The first line is what the server said, the rest what is to be sent. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    struct slice all = slice_of(data, size), line = slice_of(data, newline ? (size_t)(newline - data) : size);
    struct slice rest = newline ? slice_of(newline + 1, size - line.size - 1) : slice_of(NULL, 0);
    struct rate_limits limits = try_limits(line), none = {0};
    try_dsn(line);
    try_envelope(rest, &limits);
    try_envelope(all, &none);
    return 0;
}
