/* Profiles as the store adds them up, and back: values by name of the thread and stack, with the labels that all
 * samples have (query/rollup_labels.h), without times. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_PROFILE_ROLLUP_H
#define OFFBEAT_QUERY_PROFILE_ROLLUP_H

#include "base/buffer.h"
#include "base/sha1.h"
#include "profile/profile.h"
#include "query/kinds.h"
#include "query/rollup_labels.h"
#include "store/store.h"

/* The parts of samples that an answer needs, beside their stacks and values. */
enum detail {
    DETAIL_ALL,     /* times and ids of threads: chunks are decoded */
    DETAIL_LABELS,  /* names of threads, and labels */
    DETAIL_THREADS, /* names of threads */
    DETAIL_STACKS,
};

/* The values that profile_of_rollup reads, of columns that are differences; others have 0 in the first and the last
 * ones. */
enum rollup_part { ROLLUP_INCREASES, ROLLUP_FIRST, ROLLUP_LAST };

/* Parts of sums that an answer needs. */
struct rollup_needs {
    enum detail detail;
    struct slice tags[2]; /* keys of labels that choose samples; empty: none */
    bool has_differences; /* columns that are differences; without, they are left out */
    enum rollup_part part;
};

/* Profiles that are added only to others of one series (query/series.h). */
struct rollup_series {
    char id[SHA1_TEXT_SIZE];
    enum kind_rule rules[PROFILE_VALUES_MAX]; /* rules of the columns */
    uint64_t profile_count, restart_count;
};

/* {0} is a valid empty one. */
struct profile_rollup {
    struct store_rollup rollup;
    struct buffer text; /* the header, then the frames */
    struct rollup_labels labels;
    struct slice *frames;
    struct store_node *nodes;
    uint64_t *values;
};

/* False if PROFILE cannot be added up so: it has negative values, places that only their addresses name, or too much of
 * something. SERIES: its columns that are differences are those that grow (store_rollup.running_count), and its
 * profiles are counted; NULL: profiles add up. ROLLUP is to be finished in every case. */
bool profile_rollup_init(struct profile_rollup *rollup, const struct profile *profile,
                         const struct rollup_series *series);
void profile_rollup_fini(struct profile_rollup *rollup);

/* PROFILE is initialised and empty. RET_SERIES has a PROFILE_COUNT of 0 if profiles add up. STATUS_UNSUPPORTED if
 * ROLLUP is damaged, or lacks what NEEDS has. */
enum status profile_of_rollup(const struct store_rollup *rollup, const struct rollup_needs *needs,
                              struct profile *profile, struct rollup_series *ret_series, struct error *error);

#endif
