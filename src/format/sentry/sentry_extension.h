/* The data of a profile that only Sentry's formats have, beside the neutral model.
 *
 * Readers of other formats leave it out. Strings are the profile's own. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_SENTRY_EXTENSION_H
#define OFFBEAT_FORMAT_SENTRY_SENTRY_EXTENSION_H

#include "profile/profile.h"

enum { SENTRY_PASSTHROUGH_ITEMS_MAX = 4096, SENTRY_IMAGES_MAX = 16384 };

/* An item that is not a profile, from the same envelope: kept unchanged, to be written again. */
struct passthrough_item {
    struct string_id type;        /* "transaction", "client_report", … */
    struct slice header, payload; /* the profile's own copies */
};

/* For what a profile was taken, and where. The thread that it ran on is the profile's active_thread. */
struct sentry_transaction {
    struct string_id id, trace_id; /* 32 lowercase hex digits; ID "" = there is none */
    struct string_id name;
    uint64_t start_ns, end_ns; /* ns since the profile's start; both 0 = not known */
    struct string_id attributes;
};
struct sentry_device {
    struct string_id architecture, manufacturer, model, locale;
    bool has_is_emulator, is_emulator;
    struct string_id attributes;
};
struct sentry_os {
    struct string_id name, version, build_number, attributes;
};
struct sentry_runtime {
    struct string_id name, version, attributes;
};

/* clang-format off */
struct sentry_extension {
    int sample_format; /* 1 or 2: the version that it was read from; 0 = none of Sentry's */
    struct sentry_transaction transaction;
    struct sentry_device device;
    struct sentry_os os;
    struct sentry_runtime runtime;
    struct { struct string_id chunk, client_sdk, data, debug_meta; } attributes; /* DATA: of the object "profile" */
    struct { struct string_id *items; size_t count, capacity; } images; /* images without a place in memory; each a JSON object */
    bool has_item_members; /* the item in its envelope had members that no format keeps */
    struct slice envelope_header; /* header of its envelope, a JSON object; empty = none */
    struct { struct passthrough_item *items; size_t count, capacity; } passthrough_items;
};
/* clang-format on */

/* Returns the extension of PROFILE to read; an empty one if it has none. */
const struct sentry_extension *sentry_extension(const struct profile *profile);
/* Returns the extension to change, created if there is none. NULL without memory, or if PROFILE had failed before; it
 * has failed then. */
struct sentry_extension *sentry_extension_make(struct profile *profile);

/* JSON is one object; equal ones are kept once. */
void sentry_add_image(struct profile *profile, struct slice json);
void sentry_set_envelope_header(struct profile *profile, struct slice header);
void sentry_add_passthrough_item(struct profile *profile, struct slice type, struct slice header, struct slice payload);

#endif
