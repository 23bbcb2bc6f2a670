/* SPDX-License-Identifier: MIT */
#include "sampler/perf_page.h"

#include "base/kernel.h"
#include "base/pages.h"

#include <errno.h>
#include <linux/perf_event.h>

enum { PAGE = 4096 };

const struct perf_page *perf_page_open(pid_t tid, int *ret_errno)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = PERF_COUNT_SW_DUMMY, /* counts nothing; only its scheduling is of interest */
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    long descriptor =
        kernel_call6(SYS_perf_event_open, kernel_address(&attributes), tid, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
    *ret_errno = descriptor < 0 ? (int)-descriptor : 0;
    if (descriptor < 0) return NULL;
    void *page = pages_map(PAGE, PROT_READ, MAP_SHARED, (int)descriptor);
    kernel_close((int)descriptor); /* the mapping keeps the event */
    if (!page) *ret_errno = EPERM; /* the kernel's errno when there is no locked memory left */
    return page;
}

void perf_page_close(const struct perf_page *page)
{
    if (page) kernel_unmap(page, PAGE);
}

uint32_t perf_page_count(const struct perf_page *page)
{
    const struct perf_event_mmap_page *shared = (const void *)page;
    return __atomic_load_n(&shared->lock, __ATOMIC_ACQUIRE);
}
