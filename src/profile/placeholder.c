/* SPDX-License-Identifier: MIT */
#include "profile/placeholder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool location_has_placeholder(const struct profile *profile, const struct location *location)
{
    uint64_t offset;
    if (location->line_count != 1 || location->address == 0) return false;
    const struct function *function = profile_function(profile, profile_lines(profile, location)->function);
    const char *name = profile_c_string(profile, function->name);
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    const char *file = path_base_name_text(profile_c_string(profile, mapping->file_name));
    size_t size = strlen(file);
    int end = 0;
    return size > 0 && strncmp(name, file, size) == 0 && sscanf(name + size, "+0x%" SCNx64 "%n", &offset, &end) == 1 &&
           name[size + (size_t)end] == '\0';
}
