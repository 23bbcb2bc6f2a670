/* Where an address is in its image, whatever process it was in: so that names are found for it, and that the same place
 * of two processes is one place.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_IMAGE_PLACE_H
#define OFFBEAT_QUERY_IMAGE_PLACE_H

#include "binary/debug_id.h"
#include "profile/profile.h"

enum { IMAGE_ID_SIZE = BUILD_ID_START_SIZE };

/* An address: its kind in the two lowest bits. */
enum symbol_key_kind {
    SYMBOL_KEY_ADDRESS,     /* as the file has it */
    SYMBOL_KEY_FROM_BASE,   /* from the file's first loaded segment */
    SYMBOL_KEY_FILE_OFFSET, /* offset of a byte in the file */
    SYMBOL_KEY_KINDS
};
static inline uint64_t symbol_key(enum symbol_key_kind kind, uint64_t value)
{
    return value << 2 | (uint64_t)kind;
}

/* The first 32 digits of the build id of MAPPING, filled up with zeros; taken from its debug id if it has no build id.
 * False if it has neither. */
bool image_id_of(const struct profile *profile, const struct mapping *mapping, char ret_id[IMAGE_ID_SIZE]);
bool image_id_of_build_id(struct slice build_id, char ret_id[IMAGE_ID_SIZE]);

/* The key (query/image_place.h) of a location in an image that has no functions, or only a placeholder for one. False
 * for any other. */
bool image_key_of(const struct profile *profile, const struct location *location, uint64_t *ret_key);

/* A location without functions at KEY in an image that is in no process; the same for equal arguments. */
struct location image_location(struct profile *profile, struct string_id file_name, struct string_id build_id,
                               uint64_t key);

/* Makes each location that has a key one of image_location. PROFILE may then only be merged into another. */
void image_places_rebase(struct profile *profile);

#endif
