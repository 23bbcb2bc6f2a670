/* Threads that sleep for long get the page of a perf event (perf_page.h), which shows without a system call that they
 * still sleep. It makes each wake-up a little dearer, so that threads which wake up often lose it again.
 * SPDX-License-Identifier: MIT */
#include "sampler/sampler_private.h"

#include "base/seccomp_filter.h"

#include <errno.h>

enum {
    ASLEEP_TICKS_FOR_PAGE = 2,
    PAGES_A_TICK_MAX = 64, /* pages to open in a tick; opening one costs some microseconds */
    WAKE_WEIGHT = 4,       /* ticks asleep that a wake-up counts for */
    WAKES_MAX = 64,
    SECONDS_WITHOUT_PAGE = 10,
};

uint32_t idle_thread_count(const struct target_thread *thread)
{
    return thread->page ? perf_page_count(thread->page) : 0;
}

bool idle_thread_continues(const struct listed_thread *listed)
{
    return listed->page_asleep && perf_page_count(listed->page_asleep) == listed->count_asleep;
}

static void open_page(struct sampler *sampler, struct target_thread *thread)
{
    if (sampler->counters[RECORDING_PERF_ERRNO] || sampler->pages_in_tick >= PAGES_A_TICK_MAX) return;
    bool is_allowed = sampler->pages_in_tick++ > 0 || filter_allows(FILTER_PERF);
    int denial = EPERM;
    thread->page = is_allowed ? perf_page_open(thread->tid, &denial) : NULL;
    if (thread->page)
        sampler->counters[RECORDING_PERF_PAGES]++;
    else if (denial != ESRCH)
        sampler->counters[RECORDING_PERF_ERRNO] = (uint64_t)denial;
}

void idle_thread_forget(struct sampler *sampler, struct target_thread *thread)
{
    if (!thread->page) return;
    perf_page_close(thread->page);
    thread->page = NULL;
    sampler->counters[RECORDING_PERF_PAGES]--;
}

void idle_thread_note_asleep(struct sampler *sampler, struct listed_thread *listed, uint32_t count)
{
    struct target_thread *thread = listed->thread;
    listed->page_asleep = thread->page;
    listed->count_asleep = count;
    if (thread->asleep_ticks < ASLEEP_TICKS_FOR_PAGE)
        thread->asleep_ticks++;
    else if (!thread->page && sampler->tick >= thread->no_page_until_tick)
        open_page(sampler, thread);
}

void idle_thread_note_awake(struct sampler *sampler, struct listed_thread *listed)
{
    struct target_thread *thread = listed->thread;
    uint32_t ticks_asleep = sampler->tick - thread->awake_tick - 1;
    thread->awake_tick = sampler->tick;
    listed->page_asleep = NULL;
    thread->asleep_ticks = 0;
    if (!thread->page) return;
    thread->wakes = (thread->wakes > ticks_asleep ? thread->wakes - ticks_asleep : 0) + WAKE_WEIGHT;
    if (thread->wakes < WAKES_MAX) return;
    idle_thread_forget(sampler, thread);
    thread->wakes = 0;
    thread->no_page_until_tick = sampler->tick + SECONDS_WITHOUT_PAGE * sampler->ticks_a_second;
}
