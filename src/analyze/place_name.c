/* SPDX-License-Identifier: MIT */
#include "analyze/place_name.h"

#include <inttypes.h>
#include <stdio.h>

enum { NAME_BYTES_MAX = 4096 };

struct name_id place_name(struct names *names, const struct location *location)
{
    char name[NAME_BYTES_MAX];
    const struct profile *profile = names->profile;
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    if (location->address == 0) return (struct name_id){0};
    if (location->mapping.index == 0 || mapping->file_name.index == 0) {
        (void)snprintf(name, sizeof(name), "0x%" PRIx64, location->address);
        return names_add(names, slice_of_text(name));
    }
    const char *path = profile_c_string(profile, mapping->file_name);
    const char *slash = strrchr(path, '/');
    uint64_t file_address = mapping->image_start ? location->address - mapping->image_start + mapping->image_vmaddr
                                                 : location->address - mapping->start + mapping->file_offset;
    (void)snprintf(name, sizeof(name), "%.4000s+0x%" PRIx64, slash ? slash + 1 : path, file_address);
    return names_add(names, slice_of_text(name));
}
