/* Profiles as the store adds them up, and back: values by stack, without times, threads and labels.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_SUMS_H
#define OFFBEAT_SERVE_SUMS_H

#include "base/buffer.h"
#include "profile/profile.h"
#include "store/store.h"

/* {0} is a valid empty one. */
struct profile_sum {
    struct store_sum sum;
    struct buffer text; /* the header, then the frames */
    struct slice *frames;
    struct store_node *nodes;
    uint64_t *values;
};

/* False if PROFILE cannot be added up so: it has negative values, places that only their addresses name, or too much of
 * something. SUM is to be finished in every case. */
bool profile_sum_init(struct profile_sum *sum, const struct profile *profile);
void profile_sum_fini(struct profile_sum *sum);

/* PROFILE is initialised and empty. */
enum status profile_of_sum(const struct store_sum *sum, struct profile *profile, struct error *error);

#endif
