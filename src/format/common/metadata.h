/* Metadata of the recorder as one JSON object: formats keep it wherever they have a place for such a text.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_METADATA_H
#define OFFBEAT_FORMAT_COMMON_METADATA_H

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "profile/profile.h"

/* Returns whether an earlier entry of PROFILE has the key of entry INDEX. */
bool metadata_is_repeated(const struct profile *profile, size_t index);

/* {"ticks": 101, "engine": "…"}. The first entry of a key counts. */
void metadata_write(struct json_writer *writer, const struct profile *profile);

/* Takes one value. Members that are neither numbers nor texts are passed over. */
void metadata_read(struct json_reader *reader, struct profile *profile);

#endif
