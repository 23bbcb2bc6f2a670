/* Facts of a profile as comments of pprof: one short line each, which pprof hides because it begins with '#'.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PPROF_PPROF_FACTS_H
#define OFFBEAT_FORMAT_PPROF_PPROF_FACTS_H

#include "base/buffer.h"
#include "base/index_table.h"
#include "profile/profile.h"

/* A number has a tag: `# offbeat ticks = 101 (3f9a12)`. When pprof merges profiles, it writes equal comments only once;
 * the tag makes lines of different profiles differ. A string has no tag: `# offbeat engine: …`. Control characters and
 * backslashes become \xHH; in keys, so does everything except letters, digits, '_', '.' and '-'. */
void pprof_fact_append(const struct profile *profile, const struct fact *fact, uint32_t tag, struct buffer *out);

/* The same for equal profiles, on every machine. */
uint32_t pprof_fact_tag(const struct profile *profile);

/* Facts that were read: several lines of one number add up, of several texts the first counts. */
struct pprof_facts {
    struct profile *profile;
    struct index_table index; /* of the profile's facts, by key */
};

/* False if COMMENT is no fact. */
bool pprof_fact_read(struct pprof_facts *facts, struct slice comment);
void pprof_facts_fini(struct pprof_facts *facts);

#endif
