/* SPDX-License-Identifier: MIT */
#include "format/sentry/chunk_envelope.h"

#include "base/json_reader.h"
#include "format/sentry/envelope.h"

#include <stdio.h>

void sentry_payload_platform(struct slice payload, char ret_platform[SENTRY_PLATFORM_SIZE])
{
    struct json_reader reader;
    struct slice key, platform = {0};
    json_reader_init(&reader, payload);
    json_object_begin(&reader);
    while (!platform.data && json_object_next(&reader, &key)) {
        if (slice_equals_text(key, "platform"))
            platform = json_string(&reader);
        else
            json_skip(&reader);
    }
    bool fits = !reader.failed && platform.size < SENTRY_PLATFORM_SIZE;
    (void)snprintf(ret_platform, SENTRY_PLATFORM_SIZE, "%.*s", fits ? (int)platform.size : 0,
                   fits && platform.size ? (const char *)platform.data : "");
    json_reader_fini(&reader);
}

void chunk_envelope_write(struct slice payload, struct buffer *out)
{
    const struct envelope_attributes attributes = {.sdk_name = slice_of_text("offbeat"),
                                                   .sdk_version = slice_of_text(OFFBEAT_VERSION)};
    char platform[SENTRY_PLATFORM_SIZE];
    sentry_payload_platform(payload, platform);
    envelope_begin(out, &attributes);
    envelope_add_item(out, "profile_chunk", platform, payload);
}
