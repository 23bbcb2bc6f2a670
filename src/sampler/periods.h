/* The periods of CPU time of a timer that sees user code only (perf_timer.h), and which stacks stand for them. At the
 * end of each period, its thread is in user code, and there is a stack; or inside the kernel, and there is none.
 * Signals then find the calls. doc/decisions/sampler.md describes it, and test_periods simulates it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PERIODS_H
#define OFFBEAT_SAMPLER_PERIODS_H

#include "sampler/slots.h"

/* Since the timer was opened. Numbers of periods, unless the name says something else. */
struct periods {
    uint64_t start_cpu_ns, period_ns;
    uint64_t user;     /* with a stack of user code, */
    uint64_t lent;     /* of which calls got so many */
    uint64_t calls;    /* given to answers in calls: inside the kernel, or lent */
    uint64_t outside;  /* inside the kernel, given to answers from outside of calls, or to none at all */
    uint64_t sleeping; /* inside the kernel, given to stacks where the thread sleeps */
    uint64_t asked;    /* inside the kernel, given to none when a stack was last asked for */
    uint64_t open;     /* at the end, in a call that has not ended: no hit stands for them yet */
    uint64_t answered; /* all but these, at the last answer */
    double calls_due;  /* that stacks in calls have to stand for, and do not yet */
    uint64_t hits;     /* of a timer on the thread's CPU clock: they say how many */
    uint32_t answers, answers_in_call; /* of signals; older ones count for less */

    uint64_t read_at_ns, inactive_ns; /* CPU time since the start when the event was read, and without the event */
    uint64_t sleeps;                  /* how often the thread gave its processor up voluntarily */
    uint64_t switching_written_ns;    /* what stacks where the thread blocks stand for */
};

/* A timer is opened. What is due to calls since an earlier one of this thread remains so. */
void periods_begin(struct periods *periods, uint64_t cpu_ns, uint64_t period_ns);

/* Those that are given to stacks. */
uint64_t periods_counted(const struct periods *periods);

/* How many periods should pass between two requests: 0, or more if the thread is rarely inside the kernel. */
double periods_between(const struct periods *periods);

/* COUNT stacks of user code came. */
void periods_add_user(struct periods *periods, uint64_t count);
/* Of these, calls get what is due to them beyond LEFT: the periods inside the kernel that are given to none. */
void periods_lend(struct periods *periods, uint64_t count, uint64_t left);
bool periods_are_due(const struct periods *periods); /* else there is nothing to lend */

/* A stack is asked for: IN_KERNEL periods are inside the kernel and given to none. Before each of the following. */
void periods_note_request(struct periods *periods, uint64_t in_kernel);
/* From now on the thread's CPU clock asks it. */
void periods_note_cpu_clock_start(struct periods *periods);
/* True if an answer, one of HITS, stands for some of these periods; they are then given to it. For the last
 * OPEN_CALL_NS the thread has been in a call that continues. */
bool periods_accept(struct periods *periods, struct slot_hits hits, bool was_in_call, uint64_t open_call_ns);
/* There is no answer: they are counted all the same. */
void periods_give_up(struct periods *periods);
/* Which of the next hits should be the answer. */
enum hit_kind periods_preferred_hit(const struct periods *periods);

/* The CPU time of context switches, not written yet. */
uint64_t periods_switching_ns(const struct periods *periods);
/* The part of the thread's CPU clock, which shows CPU_NS, that is given to stacks. WATCHED_NS: the time in which the
 * timer can have gone off. */
uint64_t periods_accounted_cpu_ns(const struct periods *periods, uint64_t cpu_ns, uint64_t watched_ns);

#endif
