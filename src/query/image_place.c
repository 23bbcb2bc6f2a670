/* SPDX-License-Identifier: MIT */
#include "query/image_place.h"

#include "profile/placeholder.h"

/* Marks of a mapping of image_location by the kind of its addresses; its start and its offset are 0, so that reports
 * print them as they are. */
#define WHOLE_FILE (UINT64_MAX >> 2)

bool image_id_of_build_id(struct slice build_id, char ret_id[IMAGE_ID_SIZE])
{
    char debug_id[DEBUG_ID_TEXT_SIZE]; /* checks the digits, cuts and fills up */
    return debug_id_from_build_id(build_id, debug_id) && debug_id_to_build_id(slice_of_text(debug_id), ret_id);
}

bool image_id_of(const struct profile *profile, const struct mapping *mapping, char ret_id[IMAGE_ID_SIZE])
{
    return image_id_of_build_id(profile_slice(profile, mapping->build_id), ret_id) ||
           debug_id_to_build_id(profile_slice(profile, mapping->debug_id), ret_id);
}

/* The build id of MAPPING as image_location takes it. */
static struct string_id image_build_id(struct profile *profile, const struct mapping *mapping)
{
    char id[IMAGE_ID_SIZE];
    if (mapping->build_id.index || !image_id_of(profile, mapping, id)) return mapping->build_id;
    return profile_text(profile, id);
}

/* --- Keys --------------------------------------------------------------------------------------------------------- */

bool image_key_of(const struct profile *profile, const struct location *location, uint64_t *ret_key)
{
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    bool is_named = mapping->file_name.index || mapping->build_id.index || mapping->debug_id.index;
    if (location->address == 0 || location->mapping.index == 0 || !is_named) return false;
    if (location->line_count > 0 && !location_has_placeholder(profile, location)) return false;
    bool is_image = mapping->image_start || mapping->image_size;
    uint64_t distance = location->address - mapping->image_start;
    /* The address in the file is known if the file's own first address is; 0 may mean that it is not. */
    if (is_image && location->address >= mapping->image_start)
        *ret_key = mapping->image_vmaddr ? symbol_key(SYMBOL_KEY_ADDRESS, mapping->image_vmaddr + distance)
                                         : symbol_key(SYMBOL_KEY_FROM_BASE, distance);
    else if (!is_image && mapping->limit > mapping->start && location->address >= mapping->start)
        *ret_key = symbol_key(SYMBOL_KEY_FILE_OFFSET, location->address - mapping->start + mapping->file_offset);
    else
        *ret_key = symbol_key(SYMBOL_KEY_ADDRESS, location->address);
    return true;
}

struct location image_location(struct profile *profile, struct string_id file_name, struct string_id build_id,
                               uint64_t key)
{
    struct mapping mapping = {.file_name = file_name, .build_id = build_id};
    if ((key & 3) == SYMBOL_KEY_FROM_BASE) mapping.image_size = WHOLE_FILE;
    if ((key & 3) == SYMBOL_KEY_FILE_OFFSET) mapping.limit = WHOLE_FILE;
    return (struct location){.mapping = profile_add_mapping(profile, &mapping), .address = key >> 2};
}

/* Locations change in their place: what looks for one by its content finds it no more. A merge does not. */
void image_places_rebase(struct profile *profile)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        uint64_t key;
        struct location *location = &profile->locations.items[i];
        if (!image_key_of(profile, location, &key)) continue;
        struct mapping mapping = *profile_mapping(profile, location->mapping);
        struct string_id build_id = image_build_id(profile, &mapping);
        struct location rebased = image_location(profile, mapping.file_name, build_id, key);
        location = &profile->locations.items[i];
        location->mapping = rebased.mapping;
        location->address = rebased.address;
    }
}
