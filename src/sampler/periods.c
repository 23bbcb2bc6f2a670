/* SPDX-License-Identifier: MIT */
#include "sampler/periods.h"

#include "base/unsigned.h"

static const double seldom = 0.02;

uint64_t periods_counted(const struct timer_account *account)
{
    return account->user_periods - account->lent_periods + account->kernel_periods + account->sleep_periods;
}

static uint64_t all_periods(const struct timer_account *account)
{
    return periods_counted(account) + account->asked_periods;
}

/* The part of all, at the last request, that was inside the kernel. */
static double kernel_part(const struct timer_account *account)
{
    double all = (double)all_periods(account);
    return all > 0 ? 1 - (double)account->user_periods / all : 1;
}

/* Of a thread that is rarely inside the kernel few answers are accepted, and each costs some 10 µs. So it is asked less
 * often, and each answer that is accepted stands for the periods that have come together. */
double periods_between(const struct timer_account *account)
{
    const double most = 32;
    double part = kernel_part(account);
    if (part >= seldom) return 0;
    double periods = (seldom / part) * (seldom / part);
    return periods < most ? periods : most;
}

/* --- Context switches --------------------------------------------------------------------------------------------- */

/* To stop and to start again, for each sleep: 3 to 7 µs where this was measured. */
static uint64_t switching_ns_max(const struct timer_account *account)
{
    enum { SWITCH_NS_MAX = 10000 };
    return account->sleeps * SWITCH_NS_MAX;
}

/* The time without the event that sleeps explain. The rest is of preemptions, and from before the event was there. */
static uint64_t inactive_ns_of_sleeps(const struct timer_account *account)
{
    return least(account->inactive_ns, switching_ns_max(account));
}

/* The periods, no more than MOST, that sleeps explain beyond the time without the event. */
static uint64_t periods_of_sleeps(const struct timer_account *account, uint64_t most)
{
    uint64_t ns = difference(switching_ns_max(account), inactive_ns_of_sleeps(account));
    return least(difference(ns / account->period_ns, account->sleep_periods), most);
}

uint64_t periods_switching_ns(const struct timer_account *account)
{
    uint64_t all_ns = inactive_ns_of_sleeps(account) + account->sleep_periods * account->period_ns;
    return difference(all_ns, account->switching_written_ns);
}

/* Without stacks where the thread blocks, other ones stand for the switches, too. */
uint64_t periods_accounted_cpu_ns(const struct timer_account *account, uint64_t cpu_ns, uint64_t watched_ns)
{
    uint64_t counted = periods_counted(account), known_ns = (counted - account->sleep_periods) * account->period_ns;
    uint64_t charged_ns = difference(cpu_ns, account->start_cpu_ns);
    bool is_apart = account->switching_written_ns > 0;
    uint64_t switching_ns = is_apart ? periods_switching_ns(account) : 0;
    if (watched_ns <= counted * account->period_ns) return difference(cpu_ns, switching_ns);
    if (is_apart) charged_ns = difference(charged_ns, inactive_ns_of_sleeps(account));
    double accounted_ns = (double)known_ns / (double)watched_ns * (double)charged_ns;
    return account->start_cpu_ns + account->switching_written_ns + (uint64_t)accounted_ns;
}

/* --- Calls, and the rest ------------------------------------------------------------------------------------------
 *
 * Hits come at moments that do not depend on what the thread does. So the part of them that comes from inside calls is
 * the part of its time that it spends in calls, and as many periods are due to stacks in calls. What the timer has seen
 * inside the kernel beyond that remains for page faults, interrupts, and switches to other threads, during which no
 * answer can be taken. It is given to answers from outside, unless the thread's sleeps explain it: then to stacks where
 * it sleeps. Both numbers vary, the hits' more: the kernel looks at its ticks only. So calls get no more than the timer
 * has seen, and what answers from outside had too much until then is lent by stacks of user code. */

/* A timer's hits meet the thread at random, and all of them are counted. A thread that is asked for one stack, or
 * seldom, is asked when it was inside the kernel. */
static bool are_by_chance(const struct timer_account *account, struct slot_hits hits)
{
    return hits.are_all && hits.count > 0 && kernel_part(account) >= seldom;
}

static void count_answers(struct timer_account *account, struct slot_hits hits)
{
    enum { ANSWERS_MAX = 1024 };
    account->answers += hits.count;
    account->answers_in_call += hits.in_call;
    if (account->answers < ANSWERS_MAX) return;
    account->answers /= 2;
    account->answers_in_call /= 2;
}

/* Of the time in which no hits say it, the part that was spent in calls: as all answers together say, but no more than
 * inside the kernel. As long as there are few, all of that is taken to be calls. */
static double usual_part_in_calls(const struct timer_account *account)
{
    enum { FEW = 64 };
    double kernel = kernel_part(account);
    double part = (account->answers_in_call + FEW * kernel) / (account->answers + FEW);
    return part < kernel ? part : kernel;
}

/* Calls get PART of the time since the last answer. What cannot be paid for long is forgotten. */
static void add_due(struct timer_account *account, double part)
{
    const double most = 64;
    uint64_t all = all_periods(account);
    account->calls_due += (double)difference(all, account->answered_periods) * part;
    account->answered_periods = all;
    if (account->calls_due > most) account->calls_due = most;
}

static uint64_t whole(double periods)
{
    return periods >= 1 ? (uint64_t)periods : 0;
}

static uint64_t payable(const struct timer_account *account)
{
    uint64_t in_kernel = difference(all_periods(account), account->user_periods);
    return least(whole(account->calls_due), difference(in_kernel, account->calls_periods));
}

void periods_add_user(struct timer_account *account, uint64_t count)
{
    account->user_periods += count;
}

bool periods_are_due(const struct timer_account *account)
{
    return payable(account) > 0;
}

void periods_lend(struct timer_account *account, uint64_t count, uint64_t left)
{
    account->lent_periods += least(difference(payable(account), left), count);
}

void periods_note_request(struct timer_account *account, uint64_t in_kernel)
{
    account->asked_periods = in_kernel;
}

void periods_note_armed(struct timer_account *account)
{
    add_due(account, usual_part_in_calls(account));
}

static void give(struct timer_account *account, uint64_t *to, uint64_t periods)
{
    *to += periods;
    account->asked_periods -= periods;
}

/* Of the periods inside the kernel, what no call explains. So much as was lent is given already. */
static uint64_t rest(const struct timer_account *account)
{
    return whole((double)account->asked_periods - (double)account->lent_periods - account->calls_due);
}

bool periods_accept(struct timer_account *account, struct slot_hits hits, bool was_in_call)
{
    bool is_known = are_by_chance(account, hits);
    count_answers(account, hits);
    add_due(account, is_known ? (double)hits.in_call / hits.count : usual_part_in_calls(account));
    uint64_t periods = least(payable(account), account->asked_periods);
    if (was_in_call) {
        account->calls_due -= (double)periods;
        account->calls_periods += periods;
    } else {
        periods = rest(account);
        uint64_t of_sleeps = periods_of_sleeps(account, periods);
        give(account, &account->sleep_periods, of_sleeps);
        periods -= of_sleeps;
    }
    give(account, &account->kernel_periods, periods);
    return periods > 0;
}

void periods_give_up(struct timer_account *account)
{
    give(account, &account->kernel_periods, account->asked_periods);
}

enum hit_kind periods_preferred_hit(const struct timer_account *account)
{
    return account->calls_due >= (double)rest(account) ? HIT_IN_CALL : HIT_OUTSIDE;
}
