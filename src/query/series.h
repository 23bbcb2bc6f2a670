/* Profiles of one process after the other in time: the mean of snapshots, the differences of values since the start of
 * the process (doc/serve.md).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_SERIES_H
#define OFFBEAT_QUERY_SERIES_H

#include "base/index_table.h"
#include "base/sha1.h"
#include "profile/profile.h"
#include "query/profile_rollup.h"
#include "store/store.h"

enum { SERIES_MAX = 4096 };

struct series;
struct series_list {
    uint64_t from_ns, to_ns; /* the range that counts: [from, to) */
    bool only_last;          /* snapshots: the last one of each series, not the mean */
    struct series **items;
    size_t count, capacity;
    struct index_table index; /* index of ITEMS by id */
    uint64_t profile_count, restart_count;
};

/* Describes the series of CHUNK, whose profile is PROFILE. */
void series_of_chunk(const struct store_chunk *chunk, const struct profile *profile, struct rollup_series *ret_series);

void series_list_init(struct series_list *list, const struct store_query *query);
/* Finds which profiles of each series are needed. For differences, these are also the nearest ones before and after the
 * range of QUERY, at most an hour away; for the newest state, only the last one in the range. */
enum status series_find_profiles(struct series_list *list, struct store *store, const struct store_query *query,
                                 struct error *error);
void series_list_fini(struct series_list *list);
/* The earliest start of a chunk that series_takes accepts. */
uint64_t series_first_ns(const struct series_list *list);
/* Returns whether CHUNK is needed: it is in the range, or the one before it that differences begin with. */
bool series_takes(struct series_list *list, const struct store_chunk *chunk);
/* Adds PROFILE, decoded from CHUNK, and leaves it empty. Chunks of a series come in the order of their starts; a
 * difference to one that comes late is part of the next one. */
enum status series_add(struct series_list *list, const struct store_chunk *chunk, struct profile *profile,
                       struct error *error);
/* Adds PROFILE, the sum of the profiles of SUMS, whose values are no differences. */
enum status series_add_sum(struct series_list *list, const struct rollup_series *sums, const struct profile *profile,
                           struct error *error);
/* The profiles of a sum: what grows since the start of a process as it was in the first one, as it grew from one to the
 * next, and as it was in the last one. */
struct series_increases {
    struct profile first, increases, last;
    uint64_t first_ns, last_ns; /* first start, last end */
};
/* Adds SUM, which describes the profiles of SUMS, and leaves its last one empty. STATUS_UNSUPPORTED if it begins before
 * what was added. */
enum status series_add_increases(struct series_list *list, const struct rollup_series *sums,
                                 struct series_increases *sum, struct error *error);
/* Returns whether SERIES has a profile in the range. */
bool series_is_used(const struct series *series);
/* Merges the series into MERGED. */
enum status series_finish(struct series_list *list, struct profile *merged, struct error *error);

#endif
