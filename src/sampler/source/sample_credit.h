/* Decides which stacks stand for which periods of a perf timer that sees user code only (perf_timer.h). At the end of
 * each period its thread is either in user code, and there is a stack, or inside the kernel, and there is none. Signals
 * then find the system calls. doc/decisions/sampler.md describes the estimator, and test_periods simulates it.
 *
 * A period inside the kernel is "given" to the reply that stands for it. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLE_CREDIT_H
#define OFFBEAT_SAMPLER_SAMPLE_CREDIT_H

#include "sampler/source/sample_requests.h"

/* The perf event of a timer that sees user code. */
struct credit_event {
    uint64_t start_cpu_ns; /* CPU time when it was opened, ns */
    uint64_t read_at_ns;   /* CPU time since the start at which it was last read, ns */
    uint64_t inactive_ns;  /* CPU time until then in which it was not active, ns */
};

/* Context switches of a thread with such a timer. */
struct credit_switches {
    uint64_t sleeps;     /* voluntary context switches */
    uint64_t written_ns; /* CPU time of context switches that is written, ns */
};

/* Numbers of periods since the timer was opened, unless the name says something else. */
struct sample_credit {
    uint64_t period_ns; /* length of a period, ns */
    uint64_t user;      /* periods with a stack of user code */
    uint64_t lent;      /* periods of USER that calls stand for */
    uint64_t calls;     /* periods given to replies from system calls, the lent ones included */
    uint64_t outside;   /* kernel periods given to replies from outside of calls, or to none at all */
    uint64_t sleeping;  /* kernel periods given to stacks where the thread sleeps */
    uint64_t asked;     /* kernel periods that were not given when a stack was last requested */
    uint64_t open;      /* last periods, in a call that has not ended and has no signal yet */
    uint64_t replied;   /* periods before the open ones, at the last reply */
    double calls_due;   /* periods that stacks in calls still have to stand for */
    uint64_t signals;   /* signals of a timer on the thread's CPU clock, which measure the share of calls */
    uint32_t replies;   /* signals of all kinds; older ones count for less */
    uint32_t replies_in_call;
    struct credit_event event;
    struct credit_switches switches;
};

/* Begins with a new timer of PERIOD_NS, opened at CPU_NS of the thread's clock. What is due to calls remains due. */
void sample_credit_begin(struct sample_credit *credit, uint64_t cpu_ns, uint64_t period_ns);

/* Returns the number of periods that are given to stacks. */
uint64_t sample_credit_given(const struct sample_credit *credit);

/* Returns how many periods should pass between two requests: more than 0 if the thread is rarely inside the kernel. */
double sample_credit_periods_between(const struct sample_credit *credit);

/* Lends to calls what is due to them beyond LEFT, the kernel periods that are not given: at most COUNT periods, for
 * which stacks of user code have just come. */
void sample_credit_lend(struct sample_credit *credit, uint64_t count, uint64_t left);
bool sample_credit_is_due(const struct sample_credit *credit); /* false: there is nothing to lend */

/* Notes that a stack is requested while IN_KERNEL kernel periods are not given. Precedes each of the following. */
void sample_credit_note_request(struct sample_credit *credit, uint64_t in_kernel);
/* Notes that the thread's CPU clock asks it from now on. */
void sample_credit_note_cpu_clock_start(struct sample_credit *credit);
/* Gives periods to a reply to one of SIGNALS. The thread has been for OPEN_CALL_NS in a call that continues. Returns
 * false if the reply stands for no period, and is not written. */
bool sample_credit_accept(struct sample_credit *credit, struct timer_signals signals, bool was_in_call,
                          uint64_t open_call_ns);
/* Counts the periods of a request that gets no reply. */
void sample_credit_give_up(struct sample_credit *credit);
/* Returns the origin that the next reply should have. */
enum signal_origin sample_credit_preferred_origin(const struct sample_credit *credit);

/* Returns the CPU time of context switches that is not written yet, ns. */
uint64_t sample_credit_switching_ns(const struct sample_credit *credit);
/* Returns the part of the thread's CPU clock, which shows CPU_NS, that is given to stacks. The timer can have gone off
 * during WATCHED_NS of it. */
uint64_t sample_credit_accounted_cpu_ns(const struct sample_credit *credit, uint64_t cpu_ns, uint64_t watched_ns);

#endif
