/* Decides when the next tick comes, and which periods have none.  SPDX-License-Identifier: MIT */
#include "sampler/run/tick_schedule.h"

#include "base/unsigned.h"
#include "sampler/source/chance.h"
#include "sampler/kernel/priority.h"

enum { MILLION = 1000000, LATE_NS_MIN = 100000000 };

/* Returns the length of the period that starts at PERIOD_START_NS. Many processes live for a few milliseconds: their
 * first ticks come after half a millisecond, then twice as late each. Each stack stands for the time since the previous
 * one, so that no part of a life has more weight. Where recordings follow each other, a process lives for long, and all
 * periods are of one length. */
static uint64_t length_ns_at(const struct sampler *sampler, uint64_t period_start_ns)
{
    enum { FIRST_NS = 500000 };
    if (sampler->options.recording_ns > 0) return sampler->tick.period_ns;
    uint64_t age_ns = period_start_ns - sampler->start.ns, length_ns = age_ns > FIRST_NS ? age_ns : FIRST_NS;
    return least(length_ns, sampler->tick.period_ns);
}

/* Places the next tick at random in its period, so that no program is in step with the ticks, and programs that are
 * shorter than a period have their share of samples. */
static void place_tick(struct sampler *sampler, uint64_t period_start_ns)
{
    struct tick_schedule *schedule = &sampler->schedule;
    schedule->period_start_ns = period_start_ns;
    schedule->length_ns = length_ns_at(sampler, period_start_ns);
    sampler->schedule.deadline_ns = chance_tick_ns(&sampler->random_state, period_start_ns, schedule->length_ns);
}

void schedule_first_tick(struct sampler *sampler)
{
    place_tick(sampler, sampler->start.ns);
}

/* Returns the number of periods that get no tick, because a tick of COST_NS takes more than the sampler's share of a
 * processor, on the average of some ticks: with thousands of threads a tick costs milliseconds. */
static uint64_t periods_to_leave_out(struct sampler *sampler, uint64_t cost_ns)
{
    enum { TICKS_OF_AVERAGE = 4, PERIODS_MAX = 2 };
    uint64_t given_ppm = sampler->options.cpu_max_ppm, share_ppm = given_ppm ? given_ppm : SAMPLER_CPU_MAX_PPM;
    cost_ns = least(cost_ns, PERIODS_MAX * sampler->tick.period_ns); /* one tick that took long must not hold up many */
    sampler->schedule.tick_cost_ns += cost_ns / TICKS_OF_AVERAGE - sampler->schedule.tick_cost_ns / TICKS_OF_AVERAGE;
    if (!given_ppm && sampler->options.frequency_hz > SAMPLER_URGENT_HZ_MAX) return 0;
    return sampler->schedule.tick_cost_ns * MILLION / share_ppm / sampler->tick.period_ns;
}

/* Returns the number of periods that get no tick, because the kernel samples all threads that run, and the others
 * sleep. It is enough to tick before a timer's memory is full, and before much else may have begun, which is the less
 * likely the longer this has lasted. A crash loses at most TOGETHER_NS_MAX and a period. */
static uint64_t periods_without_news(const struct sampler *sampler)
{
    enum { STEADY_PARTS = 8, PERIODS_TOGETHER = 8, TOGETHER_NS_MIN = 16000000, TOGETHER_NS_MAX = 80000000 };
    uint64_t most = greatest(least(PERIODS_TOGETHER, TOGETHER_NS_MAX / sampler->tick.period_ns),
                             TOGETHER_NS_MIN / sampler->tick.period_ns);
    most = least(most, sampler->schedule.periods_with_room);
    return least(sampler->schedule.steady_periods / STEADY_PARTS, difference(most, 1));
}

static void note_starved(struct sampler *sampler, uint64_t missed)
{
    enum { STARVED_PERIODS_MIN = 4 };
    sampler->tick.is_starved = missed >= STARVED_PERIODS_MIN;
    atomic_store(&lifecycle.sampler_starved, sampler->tick.is_starved);
}

/* Returns the part of LATE_NS for which the sampler thread neither slept as it wanted nor waited for a processor: the
 * process was stopped. */
static uint64_t stopped_part_ns(struct sampler *sampler, uint64_t late_ns)
{
    enum { STOPPED_NS_MIN = 50000000 };
    uint64_t delay_ns = 0;
    if (late_ns < STOPPED_NS_MIN || !thread_read_own_delay(&delay_ns)) return 0;
    uint64_t stopped_ns = difference(late_ns, difference(delay_ns, sampler->cpu.own_delay_ns));
    sampler->cpu.own_delay_ns = delay_ns;
    return stopped_ns < STOPPED_NS_MIN ? 0 : stopped_ns;
}

/* Real-time threads on the sampler thread's processor precede its usual priority. */
static void precede_real_time_threads(const struct sampler *sampler)
{
    enum { CHECKED_MAX = 256 };
    uint32_t highest = 0;
    for (size_t i = 0; i < sampler->threads.count && i < CHECKED_MAX; i++) {
        uint32_t priority = thread_real_time_priority(sampler->threads.items[i].thread->files.tid);
        if (priority > highest) highest = priority;
    }
    if (highest > 0 && highest >= thread_real_time_priority(0)) thread_precede(0, highest);
}

void schedule_note_delay(struct sampler *sampler, uint64_t now_ns)
{
    uint64_t late_ns = difference(now_ns, sampler->schedule.deadline_ns);
    sampler->tick.stopped_ns = stopped_part_ns(sampler, late_ns);
    sampler->counters[RECORDING_STOPPED_NS] += sampler->tick.stopped_ns;
    if (sampler->tick.stopped_ns > 0) sampler->schedule.is_late = true;
    uint64_t missed = (late_ns - sampler->tick.stopped_ns) / sampler->tick.period_ns;
    if (missed == 0) return;
    if (late_ns - sampler->tick.stopped_ns >= LATE_NS_MIN) precede_real_time_threads(sampler);
    sampler->schedule.is_late = true;
    if (!sampler->tick.is_starved) note_starved(sampler, missed);
}

void schedule_next_tick(struct sampler *sampler, uint64_t cost_ns)
{
    enum { TIMER_SAMPLES_A_TICK = 4, TIMER_FACTOR_MAX = 64 };
    struct tick_schedule *schedule = &sampler->schedule;
    uint64_t next_ns = schedule->period_start_ns + schedule->length_ns;
    uint64_t passed = difference(monotonic_ns(), next_ns) / sampler->tick.period_ns;
    uint64_t missed = difference(passed, sampler->tick.stopped_ns / sampler->tick.period_ns);
    uint64_t wanted = periods_to_leave_out(sampler, cost_ns);
    sampler->tick.stopped_ns = 0;
    note_starved(sampler, missed);
    /* One stack stands for all of a long delay, so shares are less exact than the number of stacks suggests. */
    uint64_t late_ns = missed * sampler->tick.period_ns;
    if (late_ns >= LATE_NS_MIN) sampler->counters[RECORDING_LATE_NS] += late_ns;
    /* If timers took as many samples while ticks are left out, their memory would overflow, and each sample costs. */
    sampler->timers.factor = (uint32_t)least(1 + wanted / TIMER_SAMPLES_A_TICK, TIMER_FACTOR_MAX);
    sampler->counters[RECORDING_TICKS_MISSED] += missed;
    schedule->uncounted_ns = next_ns + passed * sampler->tick.period_ns;
    schedule->left_out = difference(wanted, passed);
    schedule->spared = difference(periods_without_news(sampler), passed + schedule->left_out);
    sampler->schedule.is_late = passed + schedule->left_out > 0;
    place_tick(sampler, schedule->uncounted_ns + (schedule->left_out + schedule->spared) * sampler->tick.period_ns);
}

static uint64_t take_periods(uint64_t *periods, uint64_t most)
{
    uint64_t taken = least(*periods, most);
    *periods -= taken;
    return taken;
}

void schedule_count_periods(struct sampler *sampler, uint64_t now_ns)
{
    struct tick_schedule *schedule = &sampler->schedule;
    uint64_t passed = difference(now_ns, schedule->uncounted_ns) / sampler->tick.period_ns;
    uint64_t left_out = take_periods(&schedule->left_out, passed);
    uint64_t spared = take_periods(&schedule->spared, passed - left_out);
    sampler->counters[RECORDING_TICKS_MISSED] += left_out;
    sampler->counters[RECORDING_TICKS_LEFT_OUT] += left_out;
    sampler->counters[RECORDING_TICKS_SPARED] += spared;
    schedule->uncounted_ns += (left_out + spared) * sampler->tick.period_ns;
}

void schedule_begin_scans(struct tick_schedule *schedule)
{
    schedule->is_steady = true;
    schedule->periods_with_room = UINT64_MAX;
}

void schedule_note_room(struct tick_schedule *schedule, uint64_t periods)
{
    schedule->is_steady &= periods > 0;
    schedule->periods_with_room = least(schedule->periods_with_room, periods);
}

void schedule_end_scans(struct tick_schedule *schedule, bool all_live)
{
    bool is_steady = schedule->is_steady && all_live;
    schedule->steady_periods = is_steady ? schedule->steady_periods + schedule->periods_in_tick : 0;
}
