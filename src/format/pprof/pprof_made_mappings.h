/* Mappings for locations that have none in the model: pprof shows a location without one as <unknown>, and keeps
 * packages apart only by their mappings (FMT-11).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PPROF_PPROF_MADE_MAPPINGS_H
#define OFFBEAT_FORMAT_PPROF_PPROF_MADE_MAPPINGS_H

#include "profile/profile.h"

struct made_mapping {
    struct string_id package; /* "" for anonymous memory, which is called //anon */
    uint64_t start, limit;    /* the pages of its locations; both 0 if no location has an address */
    bool has_functions;       /* each location has a function */
    uint32_t id;              /* the caller's */
};

struct made_mappings {
    struct made_mapping *items;
    size_t count, capacity;
    uint32_t *of_location; /* index in ITEMS plus one, or 0, by location */
};

/* A location without a mapping gets that of its function's package, or else //anon if it has an address and the profile
 * knows what else there was in memory. STATUS_NO_MEMORY is the only failure. */
enum status made_mappings_init(struct made_mappings *made, const struct profile *profile);
void made_mappings_fini(struct made_mappings *made); /* accepts {0} */

#endif
