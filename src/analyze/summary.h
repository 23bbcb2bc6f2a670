/* The contents of a profile, in numbers.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_SUMMARY_H
#define OFFBEAT_ANALYZE_SUMMARY_H

#include "profile/profile.h"

struct summary {
    uint64_t sample_count;     /* number of samples taken: the sum of samples/count, where that is the first value */
    size_t entry_count;        /* entries of the profile: equal samples may be one */
    size_t stack_count;        /* distinct ones that samples have */
    size_t deepest_stack;      /* frames of the deepest of them, inlined ones too */
    size_t frame_count;        /* distinct places in the code */
    size_t nameless_count;     /* number of these without any name */
    size_t kinds[FRAME_KINDS]; /* number of these by kind; inlined functions are counted in addition */
    size_t image_count;        /* mappings */
    size_t thread_count;       /* number of threads with samples */
    uint64_t *thread_samples;  /* samples by thread, thread_table_count of them; [0] counts samples without a thread */
    size_t thread_table_count;
    uint64_t first_ns, last_ns; /* times of the entries; 0 where the profile keeps none */
};

/* RET_SUMMARY is set on success; free it with summary_fini. */
enum status summary_compute(const struct profile *profile, struct summary *ret_summary, struct error *error);
void summary_fini(struct summary *summary);

/* The extent of the finite values of a measurement; all 0 if there are none. */
struct measurement_extent {
    size_t count;
    double least, greatest, mean;
};
struct measurement_extent measurement_extent(const struct measurement *measurement);

#endif
