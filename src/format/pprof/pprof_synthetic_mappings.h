/* Mappings for locations that have none in the model: pprof shows a location without one as <unknown>, and keeps
 * packages apart only by their mappings (FMT-11).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PPROF_PPROF_SYNTHETIC_MAPPINGS_H
#define OFFBEAT_FORMAT_PPROF_PPROF_SYNTHETIC_MAPPINGS_H

#include "profile/profile.h"

struct synthetic_mapping {
    struct string_id package; /* "" for anonymous memory, which is called //anon */
    uint64_t start, limit;    /* the pages of its locations; both 0 if no location has an address */
    bool has_functions;       /* each location has a function */
    uint32_t id;              /* the caller's */
};

struct synthetic_mappings {
    struct synthetic_mapping *items;
    size_t count, capacity;
    uint32_t *of_location; /* index in ITEMS plus one, or 0, by location */
};

/* A location without a mapping gets that of its function's package, or else //anon if it has an address and the profile
 * knows what else there was in memory. STATUS_NO_MEMORY is the only failure. */
enum status synthetic_mappings_init(struct synthetic_mappings *synthetic, const struct profile *profile);
void synthetic_mappings_fini(struct synthetic_mappings *synthetic); /* accepts {0} */

#endif
