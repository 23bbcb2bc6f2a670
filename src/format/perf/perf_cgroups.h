/* The paths of the cgroups in a perf.data file. Their ids are never used twice.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_CGROUPS_H
#define OFFBEAT_FORMAT_PERF_PERF_CGROUPS_H

#include "base/index_table.h"
#include "profile/profile.h"

enum { PERF_CGROUPS_MAX = 1 << 20 };

#define CGROUP_LABEL "cgroup"

struct perf_cgroup {
    uint64_t id;
    struct string_id path;
};

/* {0} is valid and empty. */
struct perf_cgroups {
    struct perf_cgroup *items;
    size_t count, capacity;
    struct index_table by_id;
};

/* As in perf, the first path of an id counts. False: too many, or no memory. */
bool perf_cgroups_add(struct perf_cgroups *cgroups, uint64_t id, struct string_id path);

/* "unknown", as perf prints it, if ID has no path. */
struct string_id perf_cgroups_path(const struct perf_cgroups *cgroups, uint64_t id, struct profile *profile);

void perf_cgroups_fini(struct perf_cgroups *cgroups);

#endif
