/* SPDX-License-Identifier: MIT */
#include "base/descriptor_table.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "base/seccomp_filter.h"

#include <sched.h>
#include <sys/resource.h>

static bool take_with_close_range(int kept)
{
    enum { UNSHARE = 1u << 1 };
    if (kernel_call3(SYS_close_range, kept + 1l, UINT32_MAX, UNSHARE) != 0) return false;
    if (kept > 0) (void)kernel_call3(SYS_close_range, 0, kept - 1l, 0);
    return true;
}

/* Closes those that one read of the list has. False at its end. */
static bool close_some(int list, int kept)
{
    _Alignas(struct kernel_entry) char bytes[4096] = {0};
    long size = kernel_call3(SYS_getdents64, list, kernel_address(bytes), sizeof(bytes));
    for (long at = 0; at < size;) {
        const struct kernel_entry *entry = (const void *)(bytes + at);
        const char *name = entry->name;
        at += entry->size;
        if (*name == '.') continue;
        int number = (int)plain_parse(&name, 10);
        if (number != list && number != kept) kernel_close(number);
    }
    return size > 0;
}

static void close_up_to_limit(int kept)
{
    enum { HIGHEST = 1 << 20 };
    struct rlimit limit = {0};
    (void)kernel_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, kernel_address(&limit));
    int end = limit.rlim_cur < HIGHEST ? (int)limit.rlim_cur : HIGHEST;
    for (int number = 0; number < end; number++) {
        if (number != kept) kernel_close(number);
    }
}

/* Does the same on kernels before Linux 5.9, which lack close_range. The list is opened in the new table. */
static bool take_with_unshare(int kept)
{
    if (kernel_call3(SYS_unshare, CLONE_FILES, 0, 0) != 0) return false;
    int list = kernel_open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY, 0);
    if (list < 0) {
        close_up_to_limit(kept);
        return true;
    }
    while (close_some(list, kept)) continue;
    kernel_close(list);
    return true;
}

bool descriptor_table_take(int kept)
{
    return filter_allows(FILTER_DESCRIPTORS) && (take_with_close_range(kept) || take_with_unshare(kept));
}
