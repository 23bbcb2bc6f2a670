/* Stacks of threads that were sampled, for threads that were not: they lived between two ticks, or the sampler rarely
 * got a processor.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_RECORDING_BORROWED_STACKS_H
#define OFFBEAT_FORMAT_RECORDING_BORROWED_STACKS_H

#include "profile/profile.h"

/* A sample whose stack another thread lent says so. */
#define BORROWED_LABEL "stack"
#define BORROWED_LABEL_VALUE "of threads with the same start routine"

/* Divides the time of samples whose stack is [too short to sample], below a start routine, among the stacks of other
 * threads with that routine, in proportion to their times; CPU, runnable and blocked time each for themselves.
 * The runnable time of a sample without CPU time, which are waits after sleeps, is given to stacks where threads slept,
 * in proportion to the time there, that of others to stacks of CPU time. A routine with fewer than 8 samples lends
 * nothing. A borrower has about one stack for each period of its time, as if it had been sampled, or all of them.
 * PROFILE: a recording's, with its columns of values. By index of its threads, ROUTINES: where each of them started, 0
 * if that is not known; BORROWS: whether it may borrow. By index of its stacks, SLEPT: whether a thread was seen asleep
 * there, where it may have been for a moment only and then have waited for long. Adds SAMPLES_MAX samples at most. The
 * time so divided, in nanoseconds. */
uint64_t borrow_stacks(struct profile *profile, const struct location_id *routines, const bool *borrows,
                       const bool *slept, size_t samples_max);

/* Sets an element of RET_BORROWS, by index of PROFILE's threads, for each thread that has less than NS_MAX of the time
 * and no stack. False without memory. */
bool find_short_borrowers(const struct profile *profile, uint64_t ns_max, bool *ret_borrows);

#endif
