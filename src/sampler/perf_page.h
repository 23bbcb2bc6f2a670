/* Shows without cost whether a thread has run: the page that the kernel shares for a perf event of it carries a
 * sequence count (perf_event_mmap_page.lock) that moves whenever the thread is given a processor. No system call,
 * unprivileged, as long as perf_event_paranoid is at most 2; each page counts against the user's share of locked
 * memory. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PERF_PAGE_H
#define OFFBEAT_SAMPLER_PERF_PAGE_H

#include <stdint.h>
#include <sys/types.h>

struct perf_page;

/* Returns NULL if the kernel denies it, for *RET_ERRNO. No descriptor stays open. Each page costs its thread about 0.7
 * µs at every context switch, so it is for threads that sleep. */
const struct perf_page *perf_page_open(pid_t tid, int *ret_errno);
void perf_page_close(const struct perf_page *page); /* accepts NULL */

uint32_t perf_page_count(const struct perf_page *page);

#endif
