/* SPDX-License-Identifier: MIT */
#include "deliver/in_app.h"

#include <string.h>

enum { INLINED_MAX = 512 };

/* The size of the longest of PREFIXES that one of TEXTS begins with; 0 = none. */
static size_t longest(const char *prefixes, const char *const texts[3])
{
    size_t best = 0;
    for (const char *at = prefixes; at && *at;) {
        size_t size = strcspn(at, ",");
        for (size_t i = 0; i < 3; i++) {
            if (size > best && strncmp(at, texts[i], size) == 0) best = size;
        }
        at += size;
        if (*at) at++;
    }
    return best;
}

static enum in_app decide(const struct profile *profile, const struct location *location, struct function_id id,
                          const char *include, const char *exclude)
{
    const struct function *function = profile_function(profile, id);
    const char *const texts[3] = {
        profile_c_string(profile, profile_mapping(profile, location->mapping)->file_name),
        profile_c_string(profile, function->file_name),
        profile_c_string(profile, function->name),
    };
    size_t included = longest(include, texts), excluded = longest(exclude, texts);
    if (included == 0 && excluded == 0) return function->in_app;
    return included > excluded ? IN_APP_YES : IN_APP_NO;
}

/* True if LINE has another function now. */
static bool mark_line(struct profile *profile, const struct location *location, struct line *line, const char *include,
                      const char *exclude)
{
    struct function function = *profile_function(profile, line->function);
    enum in_app in_app = decide(profile, location, line->function, include, exclude);
    if (in_app == function.in_app) return false;
    function.in_app = in_app;
    line->function = profile_add_function(profile, &function);
    return true;
}

static void mark_location(struct profile *profile, uint32_t index, const char *include, const char *exclude)
{
    struct location location = profile->locations.items[index];
    struct line lines[INLINED_MAX] = {0};
    bool is_changed = false;
    if (location.line_count > INLINED_MAX) return;
    if (location.line_count > 0) memcpy(lines, profile_lines(profile, &location), location.line_count * sizeof(*lines));
    /* A frame without a name may be in-app, too: its file decides. */
    uint32_t count = location.line_count ? location.line_count : 1;
    for (uint32_t i = 0; i < count; i++) {
        if (mark_line(profile, &location, &lines[i], include, exclude)) is_changed = true;
    }
    if (is_changed) profile_set_lines(profile, (struct location_id){index}, lines, count);
}

void in_app_mark(struct profile *profile, const char *include, const char *exclude)
{
    if (!(include && *include) && !(exclude && *exclude)) return;
    size_t count = profile->locations.count;
    for (size_t i = 1; i < count; i++) mark_location(profile, (uint32_t)i, include, exclude);
}
