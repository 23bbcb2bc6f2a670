/* Which transactions are sampled (facts §3.8). Decides; counts and calls nothing.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRACE_SAMPLING_H
#define OFFBEAT_TRACE_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

enum trace_decision { TRACE_UNDECIDED, TRACE_NOT_SAMPLED, TRACE_SAMPLED };

/* A number of 0 to below 1 that all parts of a trace share, so that they decide alike: in millionths, as it is sent. */
enum { TRACE_RAND_END = 1000000 };

/* The inputs of a decision, strongest first. A rate that is not set is negative. */
struct trace_evidence {
    enum trace_decision wanted; /* by the program, for this transaction */
    double sampler_rate;        /* what traces_sampler gave */
    enum trace_decision parent; /* of the process that called */
    double parent_rate;         /* that decided there */
    double rate;                /* traces_sample_rate */
    bool is_tracing_on;         /* a rate or a sampler is set */
    uint32_t rand_millionths;
};

struct trace_sampling {
    bool is_sampled;
    bool is_decided; /* false: tracing is off, and what the parent decided is passed on */
    bool is_own;     /* not inherited: RATE replaces that of the parent */
    double rate;     /* that decided; negative if it is not known */
    bool is_faulty;  /* a rate was no number from 0 to 1: not sampled */
};

struct trace_sampling trace_decide(const struct trace_evidence *evidence);

/* The number for a trace that began elsewhere and has no number: one of the range that led to the PARENT's decision
 * by RATE. FRESH is a random number below TRACE_RAND_END, returned if the two do not restrict it. */
uint32_t trace_rand_of_decision(enum trace_decision parent, double rate, uint32_t fresh);

#endif
