/* SPDX-License-Identifier: MIT */
#include "profile/full_names.h"

#include "base/buffer.h"
#include "profile/profile_private.h"

#include <inttypes.h>
#include <stdlib.h>

/* Some SDKs write the module into the name, too. */
static bool begins_with_module(struct slice name, struct slice module)
{
    return name.size > module.size && memcmp(name.data, module.data, module.size) == 0 &&
           strchr(".:#/\\$", name.data[module.size]) != NULL;
}

static void append(struct buffer *out, struct slice text)
{
    buffer_append(out, text.data, text.size);
}

static void append_place(const struct profile *profile, const struct function *function, struct buffer *out)
{
    struct slice file = path_base_name(profile_slice(profile, function->file_name));
    struct slice place = file.size > 0 ? file : profile_slice(profile, function->module);
    if (place.size == 0) return;
    buffer_append_byte(out, '[');
    append(out, place);
    if (file.size > 0 && function->start_line > 0) buffer_append_format(out, ":%" PRId64, function->start_line);
    buffer_append_byte(out, ']');
}

/* Nothing is appended where the name is right as it is. */
static void append_full_name(const struct profile *profile, const struct function *function, struct string_id known,
                             bool names_unnamed, struct buffer *out)
{
    struct slice name = profile_slice(profile, known), module = profile_slice(profile, function->module);
    if (name.size == 0) {
        if (names_unnamed) append_place(profile, function, out);
    } else if (module.size > 0 && !begins_with_module(name, module)) {
        append(out, module);
        buffer_append_byte(out, '.');
        append(out, name);
    }
}

void profile_give_full_names(struct profile *profile, bool names_unnamed)
{
    struct buffer text;
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        struct string_id known = function->name.index ? function->name : function->system_name;
        buffer_clear(&text);
        append_full_name(profile, function, known, names_unnamed, &text);
        if (text.failed || text.size == 0) continue;
        struct string_id full = profile_string(profile, buffer_slice(&text));
        if (function->system_name.index == 0) function->system_name = known;
        function->name = full;
    }
    buffer_fini(&text);
}

bool profile_save_names(const struct profile *profile, struct saved_names *ret_saved)
{
    struct saved_names saved = {.functions = calloc(profile->functions.count + 1, sizeof(*saved.functions)),
                                .lines = calloc(profile->lines.count + 1, sizeof(*saved.lines)),
                                .function_count = profile->functions.count,
                                .line_count = profile->lines.count};
    if (!saved.functions || !saved.lines) {
        free(saved.functions);
        free(saved.lines);
        return false;
    }
    memcpy(saved.functions, profile->functions.items, saved.function_count * sizeof(*saved.functions));
    if (saved.line_count > 0) memcpy(saved.lines, profile->lines.items, saved.line_count * sizeof(*saved.lines));
    *ret_saved = saved;
    return true;
}

void profile_restore_names(struct profile *profile, struct saved_names *saved)
{
    memcpy(profile->functions.items, saved->functions, saved->function_count * sizeof(*saved->functions));
    if (saved->line_count > 0) memcpy(profile->lines.items, saved->lines, saved->line_count * sizeof(*saved->lines));
    free(saved->functions);
    free(saved->lines);
    *saved = (struct saved_names){0};
}
