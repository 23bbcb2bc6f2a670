/* The stacks that the stated costs of a profile (profile/stated_costs.h) most likely came from, for views that need
 * some.
 *
 * A file of callgrind does not say which callers of a function its cost belongs to. Each stack gets its share of a
 * function's cost in proportion to what the calls along it cost. The cost of each place is exact; what a function costs
 * with all that it calls is an estimate, and reports take that from the stated costs.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_STACK_ESTIMATE_H
#define OFFBEAT_FORMAT_COMMON_STACK_ESTIMATE_H

#include "profile/profile.h"

enum {
    STACK_ESTIMATE_STACKS_FREE = 1 << 16,  /* stacks of any file, and one more for 16 bytes of it */
    STACK_ESTIMATE_SAMPLES_FREE = 1 << 18, /* samples beyond one for each place, and one more for 16 bytes */
    STACK_ESTIMATE_VALUES_FREE = 4 << 20,  /* values of all samples, and one more for each byte */
    STACK_ESTIMATE_STEPS_FREE = 4 << 20,   /* calls that are followed, and 4 more for each byte */
    STACK_ESTIMATE_DEPTH_MAX = 512,        /* frames of a stack */
};

/* Completes the stated costs of PROFILE and adds samples with estimated stacks, and a comment that says so if there are
 * calls. SOURCE_BYTES is the size of the file. STATUS_TOO_LARGE if there are more values than such a file can have. */
enum status stack_estimate_add_samples(struct profile *profile, size_t source_bytes, struct error *error);

#endif
