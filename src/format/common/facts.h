/* What the recorder knows of itself, as one JSON object: formats keep it wherever they have a place for such a text.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_FACTS_H
#define OFFBEAT_FORMAT_COMMON_FACTS_H

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "profile/profile.h"

/* Whether an earlier fact of PROFILE has the key of fact INDEX. */
bool facts_is_repeated(const struct profile *profile, size_t index);

/* {"ticks": 101, "engine": "…"}. Of facts with one key the first counts. */
void facts_write(struct json_writer *writer, const struct profile *profile);

/* Takes one value. Members that are neither numbers nor texts are passed over. */
void facts_read(struct json_reader *reader, struct profile *profile);

#endif
