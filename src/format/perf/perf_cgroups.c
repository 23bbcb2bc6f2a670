/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_cgroups.h"

#include "base/array.h"
#include "base/hash.h"

static bool is_id(const void *context, uint32_t index, const void *key)
{
    return ((const struct perf_cgroups *)context)->items[index].id == *(const uint64_t *)key;
}

static uint32_t find(const struct perf_cgroups *cgroups, uint64_t id)
{
    return index_table_find(&cgroups->by_id, hash_mix(id, 5), is_id, cgroups, &id);
}

bool perf_cgroups_add(struct perf_cgroups *cgroups, uint64_t id, struct string_id path)
{
    if (find(cgroups, id) != INDEX_NONE) return true;
    if (!array_reserve(&cgroups->items, &cgroups->capacity, cgroups->count + 1, sizeof(*cgroups->items),
                       PERF_CGROUPS_MAX) ||
        !index_table_add(&cgroups->by_id, hash_mix(id, 5), (uint32_t)cgroups->count))
        return false;
    cgroups->items[cgroups->count++] = (struct perf_cgroup){.id = id, .path = path};
    return true;
}

struct string_id perf_cgroups_path(const struct perf_cgroups *cgroups, uint64_t id, struct profile *profile)
{
    uint32_t found = find(cgroups, id);
    return found == INDEX_NONE ? profile_text(profile, "unknown") : cgroups->items[found].path;
}

void perf_cgroups_fini(struct perf_cgroups *cgroups)
{
    free(cgroups->items);
    index_table_fini(&cgroups->by_id);
    *cgroups = (struct perf_cgroups){0};
}
