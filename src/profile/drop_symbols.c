/* SPDX-License-Identifier: MIT */
#include "profile/drop_symbols.h"

#include "profile/incomplete.h"

/* Frames that stand for time without a stack have an address of other code. */
static bool stands_for_no_code(const struct profile *profile, const struct location *location)
{
    if (location->line_count != 1) return false;
    const struct function *function = profile_function(profile, profile_lines(profile, location)->function);
    return incomplete_is_name(profile_c_string(profile, function->name));
}

/* Anonymous memory has no file; what the kernel names in brackets can be symbolized by its build id alone. */
static bool can_be_symbolized(const struct profile *profile, const struct location *location)
{
    if (location->mapping.index == 0 || location->address == 0) return false;
    if (stands_for_no_code(profile, location)) return false;
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    const char *name = profile_c_string(profile, mapping->file_name);
    if (mapping->build_id.index || mapping->debug_id.index) return true;
    return mapping->limit > mapping->start && name[0] == '/' && strcmp(name, ANONYMOUS_MAPPING) != 0;
}

void profile_drop_symbols(struct profile *profile)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        struct location *location = &profile->locations.items[i];
        if (!can_be_symbolized(profile, location)) continue;
        struct mapping *mapping = &profile->mappings.items[location->mapping.index];
        location->line_count = 0;
        location->is_folded = false;
        mapping->has_functions = mapping->has_filenames = false;
        mapping->has_line_numbers = mapping->has_inline_frames = false;
    }
}
