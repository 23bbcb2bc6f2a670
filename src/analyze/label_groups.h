/* The samples of a profile by their labels: samples with the same labels and the same thread are one group.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_LABEL_GROUPS_H
#define OFFBEAT_ANALYZE_LABEL_GROUPS_H

#include "profile/profile.h"

struct label_group {
    struct label_set_id labels;
    struct thread_id thread;
};

struct label_groups {
    struct label_group *items; /* groups in the order of their first samples */
    size_t count, capacity;
    uint32_t *group_of_sample;
    struct index_table index;
};

/* False without memory. */
bool label_groups_init(struct label_groups *groups, const struct profile *profile);
void label_groups_fini(struct label_groups *groups); /* accepts {0} */

#endif
