/* SPDX-License-Identifier: MIT */
#include "sampler/periods.h"

#include "base/unsigned.h"

static const double seldom = 0.02;

void periods_begin(struct periods *periods, uint64_t cpu_ns, uint64_t period_ns)
{
    double due_ns = periods->calls_due * (double)periods->period_ns;
    *periods = (struct periods){.start_cpu_ns = cpu_ns,
                                .period_ns = period_ns,
                                .calls_due = due_ns / (double)period_ns,
                                .answers = periods->answers,
                                .answers_in_call = periods->answers_in_call};
}

uint64_t periods_counted(const struct periods *periods)
{
    return periods->user - periods->lent + periods->calls + periods->outside + periods->sleeping;
}

static uint64_t all_periods(const struct periods *periods)
{
    return periods_counted(periods) + periods->asked;
}

static uint64_t known_periods(const struct periods *periods)
{
    return difference(all_periods(periods), periods->open);
}

/* The part of all, at the last request, that was inside the kernel. */
static double kernel_part(const struct periods *periods)
{
    double all = (double)all_periods(periods);
    return all > 0 ? 1 - (double)periods->user / all : 1;
}

/* Of a thread that is rarely inside the kernel few answers are accepted, and each costs some 10 µs. So it is asked less
 * often, and each answer that is accepted stands for the periods that have come together. */
double periods_between(const struct periods *periods)
{
    const double most = 32;
    double part = kernel_part(periods);
    if (part >= seldom) return 0;
    double wanted = (seldom / part) * (seldom / part);
    return wanted < most ? wanted : most;
}

/* --- Context switches --------------------------------------------------------------------------------------------- */

/* To stop and to start again, for each sleep: 3 to 7 µs where this was measured. */
static uint64_t switching_ns_max(const struct periods *periods)
{
    enum { SWITCH_NS_MAX = 10000 };
    return periods->sleeps * SWITCH_NS_MAX;
}

/* The time without the event that sleeps explain. The rest is of preemptions, and from before the event was there. */
static uint64_t inactive_ns_of_sleeps(const struct periods *periods)
{
    return least(periods->inactive_ns, switching_ns_max(periods));
}

/* The periods, no more than MOST, that sleeps explain beyond the time without the event. */
static uint64_t periods_of_sleeps(const struct periods *periods, uint64_t most)
{
    uint64_t ns = difference(switching_ns_max(periods), inactive_ns_of_sleeps(periods));
    return least(difference(ns / periods->period_ns, periods->sleeping), most);
}

uint64_t periods_switching_ns(const struct periods *periods)
{
    uint64_t all_ns = inactive_ns_of_sleeps(periods) + periods->sleeping * periods->period_ns;
    return difference(all_ns, periods->switching_written_ns);
}

/* Without stacks where the thread blocks, other ones stand for the switches, too. */
uint64_t periods_accounted_cpu_ns(const struct periods *periods, uint64_t cpu_ns, uint64_t watched_ns)
{
    uint64_t counted = periods_counted(periods), known_ns = (counted - periods->sleeping) * periods->period_ns;
    uint64_t charged_ns = difference(cpu_ns, periods->start_cpu_ns);
    bool is_apart = periods->switching_written_ns > 0;
    uint64_t switching_ns = is_apart ? periods_switching_ns(periods) : 0;
    if (watched_ns <= counted * periods->period_ns) return difference(cpu_ns, switching_ns);
    if (is_apart) charged_ns = difference(charged_ns, inactive_ns_of_sleeps(periods));
    double accounted_ns = (double)known_ns / (double)watched_ns * (double)charged_ns;
    return periods->start_cpu_ns + periods->switching_written_ns + (uint64_t)accounted_ns;
}

/* --- Calls, and the rest ------------------------------------------------------------------------------------------
 *
 * Hits come at moments that do not depend on what the thread does. So the part of them that comes from inside calls is
 * the part of its time that it spends in calls, and as many periods are due to stacks in calls. What the timer has seen
 * inside the kernel beyond that remains for page faults, interrupts, and switches to other threads, during which no
 * answer can be taken. It is given to answers from outside, unless the thread's sleeps explain it: then to stacks where
 * it sleeps. Both numbers vary, the hits' more: the kernel looks at its ticks only. So calls get no more than the timer
 * has seen, a difference that can be chance counts for less, and what answers from outside had too much until then is
 * lent by stacks of user code. */

/* A timer's hits meet the thread at random, and all of them are counted. A thread that is asked for one stack, or
 * seldom, is asked when it was inside the kernel. */
static bool are_by_chance(const struct periods *periods, struct slot_hits hits)
{
    return hits.are_all && hits.count > 0 && kernel_part(periods) >= seldom;
}

static void count_answers(struct periods *periods, struct slot_hits hits)
{
    enum { ANSWERS_MAX = 1024 };
    periods->answers += hits.count;
    periods->answers_in_call += hits.in_call;
    if (periods->answers < ANSWERS_MAX) return;
    periods->answers /= 2;
    periods->answers_in_call /= 2;
}

/* Of the time in which no hits say it, the part that was spent in calls: as all answers together say, but no more than
 * inside the kernel. As long as there are few, all of that is taken to be calls. */
static double usual_part_in_calls(const struct periods *periods)
{
    enum { FEW = 64 };
    double kernel = kernel_part(periods);
    double part = (periods->answers_in_call + FEW * kernel) / (periods->answers + FEW);
    return part < kernel ? part : kernel;
}

/* Calls get PART of the time since the last answer. What cannot be paid for long is forgotten. */
static void add_due(struct periods *periods, double part)
{
    const double most = 64;
    uint64_t all = known_periods(periods);
    periods->calls_due += (double)difference(all, periods->answered) * part;
    periods->answered = all;
    if (periods->calls_due > most) periods->calls_due = most;
}

static uint64_t whole(double count)
{
    return count >= 1 ? (uint64_t)count : 0;
}

static double in_kernel(const struct periods *periods)
{
    return (double)known_periods(periods) - (double)periods->user;
}

/* Of those inside the kernel, how many were in no call: what the timer has found beyond the hits. Both vary. As less
 * than nothing cannot be given to anything, the difference itself would leave too little for calls in half of all runs
 * with calls only. So it counts as far as it is unlikely by chance: one of 0.7 standard deviations for half, one of two
 * for nine tenths. With the entire variance, calls would have too much where there are faults (test_periods). */
static double in_no_call(const struct periods *periods)
{
    double all = (double)known_periods(periods), kernel = in_kernel(periods);
    double excess = kernel - (double)periods->calls - periods->calls_due;
    if (excess <= 0) return 0;
    if (periods->hits == 0) return excess;
    double variance = kernel * (1 - kernel / all) * (1 + all / (double)periods->hits);
    return excess * excess * excess / (excess * excess + variance / 2);
}

/* What calls can be given now. */
static uint64_t payable(const struct periods *periods)
{
    return whole(in_kernel(periods) - in_no_call(periods) - (double)periods->calls);
}

void periods_add_user(struct periods *periods, uint64_t count)
{
    periods->user += count;
}

bool periods_are_due(const struct periods *periods)
{
    return payable(periods) > 0;
}

void periods_lend(struct periods *periods, uint64_t count, uint64_t left)
{
    periods->lent += least(difference(payable(periods), left), count);
}

void periods_note_request(struct periods *periods, uint64_t in_kernel)
{
    periods->asked = in_kernel;
}

void periods_note_cpu_clock_start(struct periods *periods)
{
    periods->open = 0;
    add_due(periods, usual_part_in_calls(periods));
}

static void give(struct periods *periods, uint64_t *to, uint64_t count)
{
    *to += count;
    periods->asked -= count;
}

/* What is inside the kernel, in no call, and given to no stack yet. */
static uint64_t rest(const struct periods *periods)
{
    double given = (double)periods->outside + (double)periods->sleeping;
    return least(whole(in_no_call(periods) - given), periods->asked);
}

static uint64_t give_to_call(struct periods *periods)
{
    uint64_t count = least(payable(periods), periods->asked);
    periods->calls_due -= (double)count;
    give(periods, &periods->calls, count);
    return count;
}

static uint64_t give_to_outside(struct periods *periods)
{
    uint64_t count = rest(periods), of_sleeps = periods_of_sleeps(periods, count);
    give(periods, &periods->sleeping, of_sleeps);
    give(periods, &periods->outside, count - of_sleeps);
    return count - of_sleeps;
}

bool periods_accept(struct periods *periods, struct slot_hits hits, bool was_in_call, uint64_t open_call_ns)
{
    periods->open = open_call_ns / periods->period_ns;
    bool is_known = are_by_chance(periods, hits);
    count_answers(periods, hits);
    if (hits.are_all) periods->hits += hits.count;
    add_due(periods, is_known ? (double)hits.in_call / hits.count : usual_part_in_calls(periods));
    return (was_in_call ? give_to_call(periods) : give_to_outside(periods)) > 0;
}

void periods_give_up(struct periods *periods)
{
    give(periods, &periods->outside, periods->asked);
}

enum hit_kind periods_preferred_hit(const struct periods *periods)
{
    return payable(periods) >= rest(periods) ? HIT_IN_CALL : HIT_OUTSIDE;
}
