/* Decides which transactions are sampled (facts §3.8). Counts and calls nothing.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRACE_SAMPLING_H
#define OFFBEAT_TRACE_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

enum trace_decision { TRACE_UNDECIDED, TRACE_NOT_SAMPLED, TRACE_SAMPLED };

/* End of the random numbers, in millionths from 0 to below 1, that all parts of a trace share to decide alike. */
enum { TRACE_RAND_END = 1000000 };

/* The inputs of a decision, strongest first. A rate that is not set is negative. */
struct trace_evidence {
    enum trace_decision wanted; /* decision of the program for this transaction */
    double sampler_rate;        /* answer of traces_sampler */
    enum trace_decision parent; /* decision of the process that called */
    double parent_rate;         /* rate that decided there */
    double rate;                /* traces_sample_rate */
    bool is_tracing_on;         /* a rate or a sampler is set */
    uint32_t rand_millionths;
};

struct trace_sampling {
    bool is_sampled;
    bool is_decided; /* false: tracing is off, and the parent's decision is passed on */
    bool is_own;     /* the decision is not inherited: RATE replaces the parent's rate */
    double rate;     /* the deciding rate; negative if unknown */
    bool is_faulty;  /* a rate was no number from 0 to 1: not sampled */
};

struct trace_sampling trace_decide(const struct trace_evidence *evidence);

/* Returns a number for a trace that began elsewhere and has no number, from the range that led to the PARENT's decision
 * by RATE. FRESH is a random number below TRACE_RAND_END, returned if the two do not restrict it. */
uint32_t trace_rand_of_decision(enum trace_decision parent, double rate, uint32_t fresh);

#endif
