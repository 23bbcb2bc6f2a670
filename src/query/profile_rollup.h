/* Profiles as the store adds them up, and back: values by name of the thread and stack, without times and labels.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_PROFILE_ROLLUP_H
#define OFFBEAT_QUERY_PROFILE_ROLLUP_H

#include "base/buffer.h"
#include "profile/profile.h"
#include "store/store.h"

/* The parts of samples that an answer needs, beside their stacks and values. */
enum detail {
    DETAIL_ALL,     /* times and ids of threads: chunks are decoded */
    DETAIL_LABELS,  /* names of threads, and labels */
    DETAIL_THREADS, /* names of threads */
    DETAIL_STACKS,
};

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

/* Leaves of the threads of PROFILE what DETAIL needs, as profile_of_rollup has them. */
void profile_reduce(struct profile *profile, enum detail detail);

/* PROFILE is initialised and empty. STATUS_UNSUPPORTED if ROLLUP is damaged, or lacks what DETAIL needs. */
enum status profile_of_rollup(const struct store_rollup *rollup, enum detail detail, struct profile *profile,
                              struct error *error);

#endif
