/* SPDX-License-Identifier: MIT */
#include "sampler/source/sample_credit.h"

#include "base/unsigned.h"

static const double seldom = 0.02;

void sample_credit_begin(struct sample_credit *credit, uint64_t cpu_ns, uint64_t period_ns)
{
    double due_ns = credit->calls_due * (double)credit->period_ns;
    *credit = (struct sample_credit){.event.start_cpu_ns = cpu_ns,
                                     .period_ns = period_ns,
                                     .calls_due = due_ns / (double)period_ns,
                                     .replies = credit->replies,
                                     .replies_in_call = credit->replies_in_call};
}

uint64_t sample_credit_given(const struct sample_credit *credit)
{
    return credit->user - credit->lent + credit->calls + credit->outside + credit->sleeping;
}

static uint64_t all_periods(const struct sample_credit *credit)
{
    return sample_credit_given(credit) + credit->asked;
}

static uint64_t known_periods(const struct sample_credit *credit)
{
    return difference(all_periods(credit), credit->open);
}

/* Returns the share of all periods, at the last request, that was inside the kernel. */
static double kernel_part(const struct sample_credit *credit)
{
    double all = (double)all_periods(credit);
    return all > 0 ? 1 - (double)credit->user / all : 1;
}

double sample_credit_periods_between(const struct sample_credit *credit)
{
    /* Few replies of a thread that is rarely inside the kernel are accepted, and each costs some 10 µs. So it is asked
     * less often, and each accepted reply stands for the periods that have come together. */
    const double most = 32;
    double part = kernel_part(credit);
    if (part >= seldom) return 0;
    double wanted = (seldom / part) * (seldom / part);
    return wanted < most ? wanted : most;
}

/* --- Context switches --------------------------------------------------------------------------------------------- */

/* Returns the most CPU time that stopping and starting can take for all sleeps, ns; 3 to 7 µs each where it was
 * measured. */
static uint64_t switching_ns_max(const struct sample_credit *credit)
{
    enum { SWITCH_NS_MAX = 10000 };
    return credit->switches.sleeps * SWITCH_NS_MAX;
}

/* Returns the time without the event that sleeps explain, ns. The rest is of preemptions, and from before the event. */
static uint64_t inactive_ns_of_sleeps(const struct sample_credit *credit)
{
    return least(credit->event.inactive_ns, switching_ns_max(credit));
}

uint64_t sample_credit_switching_ns(const struct sample_credit *credit)
{
    uint64_t all_ns = inactive_ns_of_sleeps(credit) + credit->sleeping * credit->period_ns;
    return difference(all_ns, credit->switches.written_ns);
}

uint64_t sample_credit_accounted_cpu_ns(const struct sample_credit *credit, uint64_t cpu_ns, uint64_t watched_ns)
{
    uint64_t counted = sample_credit_given(credit), known_ns = (counted - credit->sleeping) * credit->period_ns;
    uint64_t charged_ns = difference(cpu_ns, credit->event.start_cpu_ns);
    /* Without stacks where the thread blocks, other ones stand for the switches, too. */
    bool is_apart = credit->switches.written_ns > 0;
    uint64_t switching_ns = is_apart ? sample_credit_switching_ns(credit) : 0;
    if (watched_ns <= counted * credit->period_ns) return difference(cpu_ns, switching_ns);
    if (is_apart) charged_ns = difference(charged_ns, inactive_ns_of_sleeps(credit));
    double accounted_ns = (double)known_ns / (double)watched_ns * (double)charged_ns;
    return credit->event.start_cpu_ns + credit->switches.written_ns + (uint64_t)accounted_ns;
}

/* --- Calls, and the rest ------------------------------------------------------------------------------------------
 *
 * Timer signals come at moments that do not depend on what the thread does. So the share of them inside calls is the
 * share of its time that the thread spends in calls, and as many periods are due to stacks in calls. The timer sees
 * further periods inside the kernel: page faults, interrupts, and switches to other threads, during which no reply can
 * be taken. These are given to replies from outside, unless the thread's sleeps explain them: then to stacks where it
 * sleeps. Both numbers vary, that of the signals more, because they come at the kernel's ticks only. So calls get no
 * more than the timer has seen, a difference that can be chance counts for less, and if replies from outside had too
 * much, stacks of user code lend periods to calls. */

/* Returns the share of calls in time without signals of its own: that of all replies together, but no more than the
 * share inside the kernel. As long as there are few replies, all of that is taken to be calls. */
static double usual_part_in_calls(const struct sample_credit *credit)
{
    enum { FEW = 64 };
    double kernel = kernel_part(credit);
    double part = (credit->replies_in_call + FEW * kernel) / (credit->replies + FEW);
    return part < kernel ? part : kernel;
}

/* Makes PART of the time since the last reply due to calls. A debt that cannot be paid for long is forgotten. */
static void add_due(struct sample_credit *credit, double part)
{
    const double most = 64;
    uint64_t all = known_periods(credit);
    credit->calls_due += (double)difference(all, credit->replied) * part;
    credit->replied = all;
    if (credit->calls_due > most) credit->calls_due = most;
}

static uint64_t whole(double count)
{
    return count >= 1 ? (uint64_t)count : 0;
}

static double in_kernel(const struct sample_credit *credit)
{
    return (double)known_periods(credit) - (double)credit->user;
}

/* Returns how many kernel periods were in no call: what the timer has found beyond the signals. Both vary. As a
 * negative number cannot be given to anything, the difference itself would leave too little for calls in half of all
 * runs with calls only. So it counts as far as it is unlikely by chance: a difference of 0.7 standard deviations for
 * half, one of two for nine tenths. With the entire variance, calls would have too much where there are faults
 * (test_periods). */
static double in_no_call(const struct sample_credit *credit)
{
    double all = (double)known_periods(credit), kernel = in_kernel(credit);
    double excess = kernel - (double)credit->calls - credit->calls_due;
    if (excess <= 0) return 0;
    if (credit->signals == 0) return excess;
    double variance = kernel * (1 - kernel / all) * (1 + all / (double)credit->signals);
    return excess * excess * excess / (excess * excess + variance / 2);
}

/* Returns the number of periods that can be given to calls. */
static uint64_t payable(const struct sample_credit *credit)
{
    return whole(in_kernel(credit) - in_no_call(credit) - (double)credit->calls);
}

bool sample_credit_is_due(const struct sample_credit *credit)
{
    return payable(credit) > 0;
}

void sample_credit_lend(struct sample_credit *credit, uint64_t count, uint64_t left)
{
    credit->lent += least(difference(payable(credit), left), count);
}

void sample_credit_note_request(struct sample_credit *credit, uint64_t in_kernel)
{
    credit->asked = in_kernel;
}

void sample_credit_note_cpu_clock_start(struct sample_credit *credit)
{
    credit->open = 0;
    add_due(credit, usual_part_in_calls(credit));
}

static void give(struct sample_credit *credit, uint64_t *to, uint64_t count)
{
    *to += count;
    credit->asked -= count;
}

/* Returns the number of kernel periods in no call that are not given to a stack yet. */
static uint64_t rest(const struct sample_credit *credit)
{
    double given = (double)credit->outside + (double)credit->sleeping;
    return least(whole(in_no_call(credit) - given), credit->asked);
}

/* Gives periods to a reply from outside of calls. Returns their number, without those that sleeps explain beyond the
 * time without the event. */
static uint64_t give_to_outside(struct sample_credit *credit)
{
    uint64_t count = rest(credit);
    uint64_t switching_ns = difference(switching_ns_max(credit), inactive_ns_of_sleeps(credit));
    uint64_t of_sleeps = least(difference(switching_ns / credit->period_ns, credit->sleeping), count);
    give(credit, &credit->sleeping, of_sleeps);
    give(credit, &credit->outside, count - of_sleeps);
    return count - of_sleeps;
}

bool sample_credit_accept(struct sample_credit *credit, struct timer_signals signals, bool was_in_call,
                          uint64_t open_call_ns)
{
    enum { REPLIES_TO_HALVE = 1024 };
    credit->open = open_call_ns / credit->period_ns;
    /* A timer's signals meet the thread at random, and all of them are counted. A thread that is asked for one stack,
     * or seldom, is asked when it was inside the kernel. */
    bool is_known = signals.are_all && signals.count > 0 && kernel_part(credit) >= seldom;
    credit->replies += signals.count;
    credit->replies_in_call += signals.in_call;
    if (credit->replies >= REPLIES_TO_HALVE) {
        credit->replies /= 2;
        credit->replies_in_call /= 2;
    }
    if (signals.are_all) credit->signals += signals.count;
    add_due(credit, is_known ? (double)signals.in_call / signals.count : usual_part_in_calls(credit));
    if (!was_in_call) return give_to_outside(credit) > 0;
    uint64_t count = least(payable(credit), credit->asked);
    credit->calls_due -= (double)count;
    give(credit, &credit->calls, count);
    return count > 0;
}

void sample_credit_give_up(struct sample_credit *credit)
{
    give(credit, &credit->outside, credit->asked);
}

enum signal_origin sample_credit_preferred_origin(const struct sample_credit *credit)
{
    return payable(credit) >= rest(credit) ? ORIGIN_IN_CALL : ORIGIN_OUTSIDE;
}
