/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_tasks.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

/* In the order of the kernel's NET_NS_INDEX … CGROUP_NS_INDEX. */
static const char *const namespace_names[PERF_NAMESPACE_KINDS] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};

enum { NAMESPACE_TEXT_MAX = sizeof("cgroup:18446744073709551615 ") };

static bool is_tid(const void *context, uint32_t index, const void *key)
{
    return ((const struct perf_tasks *)context)->threads.items[index].tid == *(const uint32_t *)key;
}

struct perf_thread *perf_tasks_thread(struct perf_tasks *tasks, uint32_t tid)
{
    uint64_t hash = hash_mix(tid, 3);
    uint32_t found = index_table_find(&tasks->threads.index, hash, is_tid, tasks, &tid);
    if (found != INDEX_NONE) return &tasks->threads.items[found];
    if (!INDEXED_ARRAY_PUSH(&tasks->threads, PERF_THREADS_MAX, hash, (struct perf_thread){.tid = tid})) return NULL;
    return &tasks->threads.items[tasks->threads.count - 1];
}

static bool is_cgroup(const void *context, uint32_t index, const void *key)
{
    return ((const struct perf_tasks *)context)->cgroups.items[index].id == *(const uint64_t *)key;
}

static uint32_t find_cgroup(const struct perf_tasks *tasks, uint64_t id)
{
    return index_table_find(&tasks->cgroups.index, hash_mix(id, 5), is_cgroup, tasks, &id);
}

bool perf_tasks_add_cgroup(struct perf_tasks *tasks, uint64_t id, struct string_id path)
{
    return find_cgroup(tasks, id) != INDEX_NONE ||
           INDEXED_ARRAY_PUSH(&tasks->cgroups, PERF_CGROUPS_MAX, hash_mix(id, 5), (struct perf_cgroup){id, path});
}

struct string_id perf_tasks_cgroup_path(const struct perf_tasks *tasks, uint64_t id, struct profile *profile)
{
    uint32_t found = find_cgroup(tasks, id);
    return found == INDEX_NONE ? profile_text(profile, "unknown") : tasks->cgroups.items[found].path;
}

/* Zeros are written for a kind that the kernel does not have and for a process that perf may not look into. A later
 * kernel may know more kinds. */
struct string_id perf_tasks_take_namespaces(struct perf_tasks *tasks, struct cursor *cursor, struct profile *profile)
{
    struct perf_namespace kinds[PERF_NAMESPACE_KINDS] = {0};
    char text[PERF_NAMESPACE_KINDS * NAMESPACE_TEXT_MAX];
    size_t size = 0;
    uint64_t count = cursor_u64(cursor);
    for (size_t i = 0; i < count && i < PERF_NAMESPACE_KINDS; i++) {
        kinds[i].device = cursor_u64(cursor);
        kinds[i].inode = cursor_u64(cursor);
    }
    if (cursor->failed) return (struct string_id){0};
    for (size_t i = 0; i < PERF_NAMESPACE_KINDS; i++) {
        struct perf_namespace *first = &tasks->first[i];
        if (first->inode == 0) *first = kinds[i];
        if (kinds[i].inode == 0 || (kinds[i].inode == first->inode && kinds[i].device == first->device)) continue;
        int written = snprintf(text + size, sizeof(text) - size, "%s%s:%" PRIu64, size > 0 ? " " : "",
                               namespace_names[i], kinds[i].inode);
        if (written > 0) size += (size_t)written;
    }
    return profile_string(profile, slice_of(text, size));
}

void perf_tasks_fini(struct perf_tasks *tasks)
{
    free(tasks->threads.items);
    free(tasks->cgroups.items);
    index_table_fini(&tasks->threads.index);
    index_table_fini(&tasks->cgroups.index);
    *tasks = (struct perf_tasks){0};
}
