/* A stack is a parent and a location, and parents come first: one pass over the table makes the new stacks.
 * SPDX-License-Identifier: MIT */
#include "profile/own_frames.h"

#include "profile/stated_costs.h"

#include <stdlib.h>

static bool is_own(const struct profile *profile, const struct mapping *mapping)
{
    static const char *const names[] = {"liboffbeat.so", "liboffbeat-first.so"};
    const char *file = path_base_name_text(profile_c_string(profile, mapping->file_name));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size = strlen(names[i]);
        /* liboffbeat.so.0.1.0 is the file, liboffbeat.so the link. */
        if (strncmp(file, names[i], size) == 0 && (file[size] == '\0' || file[size] == '.')) return true;
    }
    return false;
}

/* Returns whether each location is in our own code, by location index. NULL if none is, or without memory. */
static bool *find_own(struct profile *profile)
{
    bool *mappings = calloc(profile->mappings.count, sizeof(*mappings));
    bool *locations = calloc(profile->locations.count, sizeof(*locations)), has_own = false;
    if (!mappings || !locations) profile->failed = STATUS_NO_MEMORY;
    for (size_t i = 1; mappings && i < profile->mappings.count; i++)
        mappings[i] = is_own(profile, &profile->mappings.items[i]);
    for (size_t i = 1; mappings && locations && i < profile->locations.count; i++) {
        locations[i] = mappings[profile->locations.items[i].mapping.index];
        has_own |= locations[i];
    }
    free(mappings);
    if (has_own) return locations;
    free(locations);
    return NULL;
}

static void rewrite_samples(struct profile *profile, const bool *is_own_location)
{
    uint32_t count = (uint32_t)profile->stack_words.count;
    struct stack_id *rewritten = calloc(count, sizeof(*rewritten));
    if (!rewritten) profile->failed = STATUS_NO_MEMORY;
    for (uint32_t i = 1; rewritten && i < count; i++) {
        if (!profile_is_stack(profile, i)) continue;
        struct stack stack = profile_stack_at(profile, i);
        struct stack_id parent = rewritten[stack.parent.index];
        rewritten[i] =
            is_own_location[stack.location.index] ? parent : profile_add_stack(profile, parent, stack.location);
    }
    for (size_t i = 0; rewritten && i < profile->samples.count; i++) {
        struct stack_id stack = rewritten[profile->samples.stack[i].index];
        if (stack.index != 0) profile_set_stack(profile, i, stack);
    }
    free(rewritten);
}

void profile_hide_own_frames(struct profile *profile)
{
    bool *is_own_location = find_own(profile);
    if (!is_own_location) return;
    rewrite_samples(profile, is_own_location);
    free(is_own_location);
}
