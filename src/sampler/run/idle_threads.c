/* Threads that sleep for long get the page that the kernel shares for a perf event. Its sequence count
 * (perf_event_mmap_page.lock) moves whenever the thread is given a processor, so it shows without a system call that
 * the thread still sleeps. Any user may have pages as long as perf_event_paranoid is at most 2; each one counts against
 * the user's share of locked memory, and costs its thread about 0.7 µs at every context switch, so that threads which
 * wake up often lose it again. SPDX-License-Identifier: MIT */
#include "sampler/run/idle_threads.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/seccomp_filter.h"

#include <errno.h>
#include <linux/perf_event.h>

enum {
    PAGE = 4096,
    ASLEEP_TICKS_FOR_PAGE = 2,
    PAGES_A_TICK_MAX = 64, /* pages to open in a tick; opening one costs some microseconds */
    WAKE_WEIGHT = 4,       /* ticks asleep that a wake-up counts for */
    WAKES_MAX = 64,
    SECONDS_WITHOUT_PAGE = 10,
};

uint32_t idle_thread_count(const struct target_thread *thread)
{
    return thread->idle.page ? __atomic_load_n(&thread->idle.page->lock, __ATOMIC_ACQUIRE) : 0;
}

bool idle_thread_continues(const struct listed_thread *listed)
{
    const struct perf_event_mmap_page *page = listed->page_asleep;
    return page && __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE) == listed->count_asleep;
}

/* Opens the page of TID. No descriptor stays open. Returns NULL if the kernel denies it, for *RET_ERRNO. */
static struct perf_event_mmap_page *map_page(pid_t tid, int *ret_errno)
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

static void open_page(struct sampler *sampler, struct target_thread *thread)
{
    if (sampler->counters[RECORDING_PERF_ERRNO] || sampler->spent.pages >= PAGES_A_TICK_MAX) return;
    bool is_allowed = sampler->spent.pages++ > 0 || filter_allows(FILTER_PERF);
    int denial = EPERM;
    thread->idle.page = is_allowed ? map_page(thread->files.tid, &denial) : NULL;
    if (thread->idle.page)
        sampler->counters[RECORDING_PERF_PAGES]++;
    else if (denial != ESRCH)
        sampler->counters[RECORDING_PERF_ERRNO] = (uint64_t)denial;
}

void idle_thread_forget(struct sampler *sampler, struct target_thread *thread)
{
    if (!thread->idle.page) return;
    pages_free(thread->idle.page, PAGE);
    thread->idle.page = NULL;
    sampler->counters[RECORDING_PERF_PAGES]--;
}

void idle_thread_note_asleep(struct sampler *sampler, struct listed_thread *listed, uint32_t count)
{
    struct target_thread *thread = listed->thread;
    listed->page_asleep = thread->idle.page;
    listed->count_asleep = count;
    if (thread->idle.asleep_ticks < ASLEEP_TICKS_FOR_PAGE)
        thread->idle.asleep_ticks++;
    else if (!thread->idle.page && sampler->tick.number >= thread->idle.no_page_until_tick)
        open_page(sampler, thread);
}

void idle_thread_note_awake(struct sampler *sampler, struct listed_thread *listed)
{
    struct target_thread *thread = listed->thread;
    uint32_t ticks_asleep = sampler->tick.number - thread->idle.awake_tick - 1;
    thread->idle.awake_tick = sampler->tick.number;
    listed->page_asleep = NULL;
    thread->idle.asleep_ticks = 0;
    if (!thread->idle.page) return;
    thread->idle.wakes = (thread->idle.wakes > ticks_asleep ? thread->idle.wakes - ticks_asleep : 0) + WAKE_WEIGHT;
    if (thread->idle.wakes < WAKES_MAX) return;
    idle_thread_forget(sampler, thread);
    thread->idle.wakes = 0;
    thread->idle.no_page_until_tick = sampler->tick.number + SECONDS_WITHOUT_PAGE * sampler->schedule.ticks_a_second;
}
