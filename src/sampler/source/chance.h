/* When samples are taken: at random, so that no program is in step with them. The estimator's simulation
 * (test/unit/test_estimator.c) uses these rules, too.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_CHANCE_H
#define OFFBEAT_SAMPLER_CHANCE_H

#include <stdint.h>

/* Any number of 31 bits; not for secrets. */
static inline uint64_t chance_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
    return *state >> 33;
}

/* Any number from 0 to END, without END. */
static inline double chance_below(uint64_t *state, double end)
{
    return (double)chance_number(state) / 0x1p31 * end;
}

/* A tick falls anywhere in its period. */
static inline uint64_t chance_tick_ns(uint64_t *state, uint64_t period_start_ns, uint64_t period_ns)
{
    return period_start_ns + chance_number(state) % period_ns;
}

/* A timer's next period: 60 to 140 % of PERIOD_NS. */
static inline uint64_t chance_timer_ns(uint64_t *state, uint64_t period_ns)
{
    uint64_t least_ns = period_ns / 5 * 3;
    return least_ns + chance_number(state) % (2 * (period_ns - least_ns) + 1);
}

/* One that a timer keeps: 3 to 10 % more or less, because what programs are most likely to be in step with is the
 * period that was asked for. */
static inline uint64_t chance_kept_timer_ns(uint64_t *state, uint64_t period_ns)
{
    uint64_t away_ns = period_ns / 100 * 3 + chance_number(state) % (period_ns / 100 * 7 + 1);
    return chance_number(state) % 2 == 0 ? period_ns - away_ns : period_ns + away_ns;
}

#endif
