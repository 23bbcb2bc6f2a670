/* SPDX-License-Identifier: MIT */
#include "profile/escape_strings.h"

#include "base/printable.h"

/* Returns TEXT with escapes in BUFFER, at most as much as a string may have. */
static struct slice escape(struct slice text, const char *kept, struct buffer *buffer)
{
    enum { ESCAPE_BYTES_MAX = 10 };
    if (text.size > PROFILE_STRING_BYTES_MAX / ESCAPE_BYTES_MAX)
        text.size = PROFILE_STRING_BYTES_MAX / ESCAPE_BYTES_MAX;
    buffer_clear(buffer);
    printable_append(buffer, text, kept);
    return buffer_slice(buffer);
}

static void mark_paths(const struct profile *profile, bool *is_path)
{
    for (size_t i = 1; i < profile->functions.count; i++) is_path[profile->functions.items[i].file_name.index] = true;
    for (size_t i = 1; i < profile->mappings.count; i++) is_path[profile->mappings.items[i].file_name.index] = true;
}

static void escape_names(struct profile *profile, const bool *is_path, struct buffer *buffer)
{
    size_t count = profile->strings.count; /* without those that are added */
    for (size_t i = 1; i < count; i++) {
        struct slice text = profile->strings.items[i];
        if (is_path[i] || printable_is(text)) continue;
        struct string_id escaped = profile_string(profile, escape(text, "", buffer));
        profile->strings.items[i] = profile_slice(profile, escaped);
    }
}

void profile_escape_strings(struct profile *profile, bool keeps_paths)
{
    struct buffer buffer;
    size_t count = profile->comments.count;
    struct slice *comments = calloc(count + 1, sizeof(*comments)); /* the strings before they are replaced */
    bool *is_path = calloc(profile->strings.count, sizeof(*is_path));
    buffer_init(&buffer, PROFILE_STRING_BYTES_MAX);
    if (!comments || !is_path) {
        profile_fail(profile, STATUS_NO_MEMORY);
    } else {
        for (size_t i = 0; i < count; i++) comments[i] = profile_slice(profile, profile->comments.items[i]);
        if (keeps_paths) mark_paths(profile, is_path);
        escape_names(profile, is_path, &buffer);
        for (size_t i = 0; i < count; i++)
            profile->comments.items[i] = profile_string(profile, escape(comments[i], "\n", &buffer));
    }
    if (buffer.failed) profile_fail(profile, STATUS_NO_MEMORY);
    buffer_fini(&buffer);
    free(is_path);
    free(comments);
}
