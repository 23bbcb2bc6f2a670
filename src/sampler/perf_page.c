/* SPDX-License-Identifier: MIT */
#include "sampler/perf_page.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

const struct perf_page *perf_page_open(pid_t tid)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = PERF_COUNT_SW_DUMMY, /* counts nothing; only its scheduling is of interest */
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    int descriptor = (int)syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (descriptor < 0) return NULL;
    void *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, descriptor, 0);
    int errno_value = errno;
    (void)close(descriptor); /* the mapping keeps the event */
    errno = errno_value;
    return page == MAP_FAILED ? NULL : page;
}

void perf_page_close(const struct perf_page *page)
{
    if (page) (void)munmap((void *)(uintptr_t)page, PAGE);
}

uint32_t perf_page_count(const struct perf_page *page)
{
    const struct perf_event_mmap_page *shared = (const void *)page;
    return __atomic_load_n(&shared->lock, __ATOMIC_ACQUIRE);
}
