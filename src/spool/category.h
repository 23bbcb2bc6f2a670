/* Data categories, by which servers limit and clients count (facts §2.6).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_CATEGORY_H
#define OFFBEAT_SPOOL_CATEGORY_H

#include "format/sentry/envelope.h"

enum category {
    CATEGORY_DEFAULT, /* all other items */
    CATEGORY_ERROR,
    CATEGORY_TRANSACTION,
    CATEGORY_SPAN,
    CATEGORY_PROFILE,
    CATEGORY_PROFILE_CHUNK,
    CATEGORY_PROFILE_CHUNK_UI,
    CATEGORY_PROFILE_DURATION, /* limits only: in milliseconds, and they hold for chunks too */
    CATEGORY_PROFILE_DURATION_UI,
    CATEGORY_SESSION,
    CATEGORY_ATTACHMENT,
    CATEGORY_MONITOR,
    CATEGORY_FEEDBACK,
    CATEGORY_LOG_ITEM,
    CATEGORY_INTERNAL, /* client reports, which are never limited or counted */
    CATEGORY_COUNT
};

/* Returns the name that servers write. */
const char *category_name(enum category category);
/* False if no category that we know has this NAME. */
bool category_of_name(struct slice name, enum category *ret_category);

/* Chunks of the platforms of user interfaces are counted apart, as `…_ui`. */
enum category category_of_chunk(struct slice platform);
enum category category_of_item(const struct envelope_item *item);
/* Returns the number of items in ENVELOPE, without client reports. */
size_t category_count_items(struct slice envelope);

#endif
