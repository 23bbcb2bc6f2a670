/* The periods of CPU time of a timer that sees user code only (perf_timer.h), and which stacks stand for them. At the
 * end of each period, its thread is in user code, and there is a stack; or inside the kernel, and there is none.
 * Signals then find the calls. doc/decisions/sampler.md describes it, and test_periods simulates it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLE_CREDIT_H
#define OFFBEAT_SAMPLER_SAMPLE_CREDIT_H

#include "sampler/sample_requests.h"

/* Since the timer was opened. Numbers of periods, unless the name says something else. */
struct sample_credit {
    uint64_t start_cpu_ns, period_ns;
    uint64_t user;     /* with a stack of user code, */
    uint64_t lent;     /* of which calls got so many */
    uint64_t calls;    /* given to replies in calls: inside the kernel, or lent */
    uint64_t outside;  /* inside the kernel, given to replies from outside of calls, or to none at all */
    uint64_t sleeping; /* inside the kernel, given to stacks where the thread sleeps */
    uint64_t asked;    /* inside the kernel, given to none when a stack was last asked for */
    uint64_t open;     /* at the end, in a call that has not ended: no signal stands for them yet */
    uint64_t replied;  /* all but these, at the last reply */
    double calls_due;  /* that stacks in calls have to stand for, and do not yet */
    uint64_t signals;  /* of a timer on the thread's CPU clock: they say how many */
    uint32_t replies, replies_in_call; /* of signals; older ones count for less */

    uint64_t read_at_ns, inactive_ns; /* CPU time since the start when the event was read, and without the event */
    uint64_t sleeps;                  /* how often the thread gave its processor up voluntarily */
    uint64_t switching_written_ns;    /* what stacks where the thread blocks stand for */
};

/* A timer is opened. What is due to calls since an earlier one of this thread remains so. */
void sample_credit_begin(struct sample_credit *credit, uint64_t cpu_ns, uint64_t period_ns);

/* Those that are given to stacks. */
uint64_t sample_credit_given(const struct sample_credit *credit);

/* How many periods should pass between two requests: 0, or more if the thread is rarely inside the kernel. */
double sample_credit_periods_between(const struct sample_credit *credit);

/* COUNT stacks of user code came. */
void sample_credit_add_user(struct sample_credit *credit, uint64_t count);
/* Of these, calls get what is due to them beyond LEFT: the periods inside the kernel that are given to none. */
void sample_credit_lend(struct sample_credit *credit, uint64_t count, uint64_t left);
bool sample_credit_is_due(const struct sample_credit *credit); /* else there is nothing to lend */

/* A stack is asked for: IN_KERNEL periods are inside the kernel and given to none. Before each of the following. */
void sample_credit_note_request(struct sample_credit *credit, uint64_t in_kernel);
/* From now on the thread's CPU clock asks it. */
void sample_credit_note_cpu_clock_start(struct sample_credit *credit);
/* True if an reply, one of SIGNALS, stands for some of these periods; they are then given to it. For the last
 * OPEN_CALL_NS the thread has been in a call that continues. */
bool sample_credit_accept(struct sample_credit *credit, struct timer_signals signals, bool was_in_call,
                          uint64_t open_call_ns);
/* There is no reply: they are counted all the same. */
void sample_credit_give_up(struct sample_credit *credit);
/* Which of the next signals should be the reply. */
enum signal_origin sample_credit_preferred_origin(const struct sample_credit *credit);

/* The CPU time of context switches, not written yet. */
uint64_t sample_credit_switching_ns(const struct sample_credit *credit);
/* The part of the thread's CPU clock, which shows CPU_NS, that is given to stacks. WATCHED_NS: the time in which the
 * timer can have gone off. */
uint64_t sample_credit_accounted_cpu_ns(const struct sample_credit *credit, uint64_t cpu_ns, uint64_t watched_ns);

#endif
