/* The declarations that the files of profile/ share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PROFILE_PRIVATE_H
#define OFFBEAT_PROFILE_PROFILE_PRIVATE_H

#include "profile/stated_costs.h"

/* profile_reserve for TABLE of PROFILE; COUNT more. */
#define PROFILE_RESERVE(profile, table, more, maximum)                                                                 \
    profile_reserve((profile), &(profile)->table.items, &(profile)->table.capacity, (profile)->table.count + (more),   \
                    sizeof(*(profile)->table.items), (maximum))

/* True if there is an entry INDEX and it is what adding the same would find. */
bool profile_is_string(const struct profile *profile, uint32_t index, struct slice text);
bool profile_is_function(const struct profile *profile, uint32_t index, const struct function *function);
bool profile_is_location(const struct profile *profile, uint32_t index, const struct location *location,
                         const struct line *lines, uint32_t line_count);

/* Gives PROCESS to each thread that has none. */
void profile_give_process(struct profile *profile, struct process_id process);

/* Adds those stacks of FROM that STACKS marks (not 0), and puts their ids in the place of the marks. The parent of one
 * that is marked is too, but stack 0. LOCATIONS are the new ids of FROM's. */
void profile_add_stacks_of(struct profile *profile, const struct profile *from, const uint32_t *locations,
                           uint32_t *stacks);

/* Adds the stated costs of FROM, which has some, to those of INTO. MAPS are the new indices of FROM's. */
struct stated_maps {
    const uint32_t *mappings, *functions, *locations, *threads, *label_sets;
};
void stated_costs_merge(struct profile *into, const struct profile *from, const struct stated_maps *maps);
/* Does for the stated costs what profile_keep_samples says. IS_KEPT is by sample, before any is removed. */
void stated_costs_keep(struct profile *profile, const bool *is_kept);
/* Keeps only the values of COLUMNS, COUNT of them, in that order. */
void stated_costs_keep_columns(struct profile *profile, const size_t *columns, uint32_t count);
/* The values of the entry INDEX: of functions, places and calls, each once. NULL after the last one. */
struct stated_values *stated_costs_values(struct stated_costs *costs, size_t index);

#endif
