/* SPDX-License-Identifier: MIT */
#include "sampler/run/ended_threads.h"

#include "base/kernel.h"
#include "base/unsigned.h"
#include "sampler/run/thread_time.h"
#include "sampler/run/idle_threads.h"
#include "sampler/run/short_lived_threads.h"
#include "sampler/run/thread_sources.h"

uint64_t ended_threads_unseen_cpu_ns(const struct sampler *sampler)
{
    uint64_t all_ns = 0, seen_ns = sampler->cpu.ended_ns, own_ns = 0;
    (void)kernel_clock_ns(CLOCK_PROCESS_CPUTIME_ID, &all_ns);
    for (size_t i = 0; i < sampler->threads.count; i++) {
        const struct target_thread *thread = sampler->threads.items[i].thread;
        uint64_t cpu_ns = thread->ledger.cpu_ns;
        if (thread->listing.is_listed) (void)thread_cpu_ns(thread->files.tid, &cpu_ns);
        if (thread->ledger.life.ends > 0 && cpu_ns < thread->ledger.life.cpu_ns)
            cpu_ns = thread->ledger.life.cpu_ns; /* its final value */
        if (!thread->scan.is_accounted) seen_ns += cpu_ns;
    }
    (void)thread_cpu_ns(sampler->threads.sampler_tid, &own_ns);
    return all_ns > seen_ns + own_ns ? all_ns - seen_ns - own_ns : 0;
}

/* Returns the CPU time of THREAD after its last scan. If many threads end at one tick, the first ones get it. */
static uint64_t take_unseen_time(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t unseen_max_ns = 2 * sampler->tick.period_ns;
    if (sampler->cpu.unseen_tick != sampler->tick.number) sampler->cpu.unseen_ns = ended_threads_unseen_cpu_ns(sampler);
    sampler->cpu.unseen_tick = sampler->tick.number;
    uint64_t unseen_ns = sampler->cpu.unseen_ns < unseen_max_ns ? sampler->cpu.unseen_ns : unseen_max_ns;
    sampler->cpu.unseen_ns -= unseen_ns;
    thread->ledger.cpu_ns += unseen_ns;
    sampler->cpu.ended_ns += thread->ledger.cpu_ns;
    thread->scan.is_accounted = true;
    return unseen_ns;
}

/* Writes the remaining time of THREAD, which has reported its CPU time. */
static void close_as_reported(struct sampler *sampler, struct target_thread *thread)
{
    if (!thread->scan.is_known) {
        short_lived_threads_add(sampler, &thread->ledger.life);
        return;
    }
    uint64_t unseen_cpu_ns = difference(thread->ledger.life.cpu_ns, thread->ledger.cpu_ns);
    thread->ledger.cpu_ns += unseen_cpu_ns;
    sampler->cpu.ended_ns += thread->ledger.cpu_ns;
    thread->scan.is_accounted = true;
    sources_credit(sampler, thread, NULL);
    thread_time_close_as_reported(sampler, thread, unseen_cpu_ns);
    short_lived_threads_credit(sampler, thread);
}

void ended_thread_close(struct sampler *sampler, struct target_thread *thread)
{
    if (!sampler->ending.is_ending)
        short_lived_threads_read(sampler); /* it was listed before it ended: its event is there */
    if (thread->ledger.life.ends > 0) {
        close_as_reported(sampler, thread);
    } else if (sampler->ending.is_ending) {
        thread_time_write_rest(sampler, thread);
    } else {
        uint64_t unseen_ns = take_unseen_time(sampler, thread);
        sources_credit(sampler, thread, NULL);
        thread_time_close(sampler, thread, unseen_ns);
    }
    sources_forget(sampler, thread, SOURCE_END_GONE);
    thread_files_close(&thread->files);
    idle_thread_forget(sampler, thread);
}
