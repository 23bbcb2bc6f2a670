/* SPDX-License-Identifier: MIT */
#include "sampler/run/policy.h"
#include "sampler/run/timer.h"
#include "sampler/run/cpu_clock_timer.h"

uint32_t policy_requests_max(const struct sampler *sampler, const struct target_thread *thread)
{
    return sampler->timers.requests_in_tick_max *
           (thread->ledger.records.has_run ? 1 : sampler->schedule.periods_in_tick);
}

bool policy_asks_for_calls(const struct target_thread *thread)
{
    return timer_sees_user_code(thread) && thread->ledger.records.has_run;
}

bool policy_leaves_to_timer(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    if (sampler->schedule.is_late && !thread->ledger.records.has_run) return false;
    if (timer_sees_user_code(thread) && !timer_wants_reply(sampler, thread, cpu_ns)) return true;
    if (thread->cpu_clock.request && (thread->ledger.records.has_run || !thread->ledger.beginning.is_first_scan))
        return !cpu_clock_timer_is_late(sampler, thread, ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns));
    if (timer_sees_user_code(thread) && sampler->timers.kernel_tick_ns == 0) return false;
    return thread->perf.timer.control &&
           ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) < POLICY_PERIODS_TO_WAIT * sampler->tick.period_ns;
}

bool policy_allows_first_scan(struct sampler *sampler, const struct target_thread *thread)
{
    if (sampler_is_cpu_mode(sampler) || thread->ledger.state != LEDGER_UNKNOWN) return true;
    uint32_t scans_max =
        (POLICY_FIRST_SCANS_A_SECOND / sampler->schedule.ticks_a_second + 1) * sampler->schedule.periods_in_tick;
    return sampler->spent.first_scans++ < scans_max;
}

enum policy_way policy_for_running(const struct sampler *sampler, const struct target_thread *thread, uint64_t cpu_ns,
                                   bool is_busy, bool may_recheck)
{
    const struct ledger *ledger = &thread->ledger;
    bool has_time = sampler->tick.period_ns / POLICY_SELDOM_AWAKE >= POLICY_LASTING_NS; /* true up to 1 kHz */
    if (is_busy || policy_asks_for_calls(thread) || !has_time || !may_recheck) return POLICY_ASK;
    bool is_first = thread->files.tid == sampler->start.thread && !ledger->records.has_run;
    bool is_new = is_first || (ledger->beginning.is_first_scan && cpu_ns >= POLICY_LASTING_NS);
    bool is_asked = sampler->schedule.is_late || timer_sees_user_code(thread) || is_new;
    return is_asked ? POLICY_ASK_UNLESS_ASLEEP : POLICY_RECHECK;
}
