/* Metadata of the recorder as comments of pprof: one short line for each entry, which pprof hides because it begins
 * with '#'. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PPROF_PPROF_METADATA_H
#define OFFBEAT_FORMAT_PPROF_PPROF_METADATA_H

#include "base/buffer.h"
#include "base/index_table.h"
#include "profile/profile.h"

/* A number has a tag: `# offbeat ticks = 101 (3f9a12)`. When pprof merges profiles, it writes equal comments only once;
 * the tag makes lines of different profiles differ. A string has no tag: `# offbeat engine: …`. Control characters and
 * backslashes become \xHH; in keys, so does everything except letters, digits, '_', '.' and '-'. */
void pprof_metadata_append(const struct profile *profile, const struct metadata_entry *entry, uint32_t tag,
                           struct buffer *out);

/* Returns a tag that is the same for equal profiles on every machine. */
uint32_t pprof_metadata_tag(const struct profile *profile);

/* Entries that were read: several lines of one number add up, and of several texts the first counts. */
struct pprof_metadata {
    struct profile *profile;
    struct index_table index; /* entries of the profile's metadata by key; the caller frees it */
};

/* Returns false if COMMENT is no metadata. */
bool pprof_metadata_read(struct pprof_metadata *metadata, struct slice comment);

#endif
