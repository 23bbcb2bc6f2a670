/* Data categories by name, and of items of an envelope.  SPDX-License-Identifier: MIT */
#include "spool/category.h"

#include "base/invariant.h"

static const char *const names[CATEGORY_COUNT] = {
    [CATEGORY_DEFAULT] = "default",
    [CATEGORY_ERROR] = "error",
    [CATEGORY_TRANSACTION] = "transaction",
    [CATEGORY_SPAN] = "span",
    [CATEGORY_PROFILE] = "profile",
    [CATEGORY_PROFILE_CHUNK] = "profile_chunk",
    [CATEGORY_PROFILE_CHUNK_UI] = "profile_chunk_ui",
    [CATEGORY_PROFILE_DURATION] = "profile_duration",
    [CATEGORY_PROFILE_DURATION_UI] = "profile_duration_ui",
    [CATEGORY_SESSION] = "session",
    [CATEGORY_ATTACHMENT] = "attachment",
    [CATEGORY_MONITOR] = "monitor",
    [CATEGORY_FEEDBACK] = "feedback",
    [CATEGORY_LOG_ITEM] = "log_item",
    [CATEGORY_INTERNAL] = "internal",
};

const char *category_name(enum category category)
{
    if (!INVARIANT(category < CATEGORY_COUNT)) category = CATEGORY_DEFAULT;
    return names[category];
}

bool category_of_name(struct slice name, enum category *ret_category)
{
    for (unsigned i = 0; i < CATEGORY_COUNT; i++) {
        if (!slice_equals_text(name, names[i])) continue;
        *ret_category = (enum category)i;
        return true;
    }
    return false;
}

static bool is_of_user_interface(struct slice platform)
{
    return slice_equals_text(platform, "cocoa") || slice_equals_text(platform, "android") ||
           slice_equals_text(platform, "javascript");
}

enum category category_of_chunk(struct slice platform)
{
    return is_of_user_interface(platform) ? CATEGORY_PROFILE_CHUNK_UI : CATEGORY_PROFILE_CHUNK;
}

enum category category_of_item(const struct envelope_item *item)
{
    static const struct {
        const char *type;
        enum category category;
    } known[] = {
        {"event", CATEGORY_ERROR},           {"transaction", CATEGORY_TRANSACTION}, {"span", CATEGORY_SPAN},
        {"profile", CATEGORY_PROFILE},       {"session", CATEGORY_SESSION},         {"sessions", CATEGORY_SESSION},
        {"attachment", CATEGORY_ATTACHMENT}, {"check_in", CATEGORY_MONITOR},        {"feedback", CATEGORY_FEEDBACK},
        {"log", CATEGORY_LOG_ITEM},          {"client_report", CATEGORY_INTERNAL},
    };
    if (envelope_item_is_chunk(item)) return category_of_chunk(item->platform);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (slice_equals_text(item->type, known[i].type)) return known[i].category;
    }
    return CATEGORY_DEFAULT;
}

size_t category_count_items(struct slice envelope)
{
    struct envelope_reader reader;
    struct envelope_item item;
    size_t count = 0;
    if (envelope_open(&reader, envelope, NULL) == STATUS_OK) {
        while (envelope_next(&reader, &item, NULL)) count += category_of_item(&item) != CATEGORY_INTERNAL;
    }
    envelope_close(&reader);
    return count;
}
