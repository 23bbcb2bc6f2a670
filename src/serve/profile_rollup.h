/* Profiles as the store adds them up, and back: values by stack, without times, threads and labels.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_PROFILE_ROLLUP_H
#define OFFBEAT_SERVE_PROFILE_ROLLUP_H

#include "base/buffer.h"
#include "profile/profile.h"
#include "store/store.h"

/* {0} is a valid empty one. */
struct profile_rollup {
    struct store_rollup rollup;
    struct buffer text; /* the header, then the frames */
    struct slice *frames;
    struct store_node *nodes;
    uint64_t *values;
};

/* False if PROFILE cannot be added up so: it has negative values, places that only their addresses name, or too much of
 * something. ROLLUP is to be finished in every case. */
bool profile_rollup_init(struct profile_rollup *rollup, const struct profile *profile);
void profile_rollup_fini(struct profile_rollup *rollup);

/* PROFILE is initialised and empty. */
enum status profile_of_rollup(const struct store_rollup *rollup, struct profile *profile, struct error *error);

#endif
