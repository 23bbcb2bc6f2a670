/* SPDX-License-Identifier: MIT */
#include "sampler/run/recheck_list.h"

#include "base/kernel.h"
#include "sampler/run/policy.h"
#include "sampler/run/thread_sources.h"

static struct target_thread *recheck_list[POLICY_RECHECKS_MAX];
static size_t recheck_count;

void recheck_list_clear(void)
{
    recheck_count = 0;
}

bool recheck_list_has_room(void)
{
    return recheck_count < POLICY_RECHECKS_MAX;
}

void recheck_list_add(struct sampler *sampler, struct target_thread *thread, bool may_wait)
{
    if (sampler->schedule.is_late || recheck_count >= POLICY_RECHECKS_MAX) return;
    thread->scan.may_wait = may_wait;
    recheck_list[recheck_count++] = thread;
}

/* Checks THREAD again. Returns false if it woke up so recently that this must be repeated. */
static bool recheck(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t cpu_ns = 0;
    if (!thread_cpu_ns(thread->files.tid, &cpu_ns)) return true;
    thread->source.clock_ns = cpu_ns;
    if (thread->scan.may_wait) {
        if (cpu_ns == thread->ledger.cpu_ns) sources_ask(sampler, thread, SOURCE_WHERE_IT_WAITS);
        return true;
    }
    enum source_offer result = sources_read_blocked(sampler, thread);
    if (result == SOURCE_HAS) return true;
    if (cpu_ns < thread->ledger.cpu_ns + SOURCE_LASTING_NS) return false;
    if (result == SOURCE_NO) sources_ask(sampler, thread, SOURCE_NOW);
    return true;
}

void recheck_list_run(struct sampler *sampler)
{
    struct timespec pause = {.tv_nsec = POLICY_RECHECK_AFTER_NS};
    unsigned rounds_max = sampler->schedule.is_late ? 0 : POLICY_RECHECK_ROUNDS_MAX; /* later ticks write their time */
    for (unsigned round = 0; round < rounds_max && recheck_count > 0; round++) {
        uint64_t until_ns = monotonic_ns() + (uint64_t)pause.tv_nsec;
        /* A busy loop would keep a processor that they may wait for. */
        (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0, 0);
        if (monotonic_ns() > until_ns + POLICY_RECHECK_LATE_NS) return;
        pause.tv_nsec *= 2;
        size_t kept = 0;
        for (size_t i = 0; i < recheck_count; i++) {
            if (!recheck(sampler, recheck_list[i])) recheck_list[kept++] = recheck_list[i];
        }
        recheck_count = kept;
    }
}
