/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_namespaces.h"

#include <inttypes.h>
#include <stdio.h>

/* In the order of the kernel's NET_NS_INDEX … CGROUP_NS_INDEX. */
static const char *const names[PERF_NAMESPACE_KINDS] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};

enum { KIND_TEXT_MAX = sizeof("cgroup:18446744073709551615 ") };

static struct string_id text_of_others(const struct perf_namespaces *namespaces, const struct perf_namespace *kinds,
                                       struct profile *profile)
{
    char text[PERF_NAMESPACE_KINDS * KIND_TEXT_MAX];
    size_t size = 0;
    for (size_t i = 0; i < PERF_NAMESPACE_KINDS; i++) {
        const struct perf_namespace *first = &namespaces->first[i];
        if (kinds[i].inode == 0 || (kinds[i].inode == first->inode && kinds[i].device == first->device)) continue;
        int written =
            snprintf(text + size, sizeof(text) - size, "%s%s:%" PRIu64, size > 0 ? " " : "", names[i], kinds[i].inode);
        if (written > 0) size += (size_t)written;
    }
    return profile_string(profile, slice_of(text, size));
}

/* Zeros are written for a kind that the kernel does not have and for a process that perf may not look into. A later
 * kernel may know more kinds. */
struct string_id perf_namespaces_take(struct perf_namespaces *namespaces, struct cursor *cursor,
                                      struct profile *profile)
{
    struct perf_namespace kinds[PERF_NAMESPACE_KINDS] = {0};
    uint64_t count = cursor_u64(cursor);
    for (size_t i = 0; i < count && i < PERF_NAMESPACE_KINDS; i++) {
        kinds[i].device = cursor_u64(cursor);
        kinds[i].inode = cursor_u64(cursor);
    }
    if (cursor->failed) return (struct string_id){0};
    for (size_t i = 0; i < PERF_NAMESPACE_KINDS; i++)
        if (namespaces->first[i].inode == 0) namespaces->first[i] = kinds[i];
    return text_of_others(namespaces, kinds, profile);
}
