/* The hottest functions of a profile.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_TOP_H
#define OFFBEAT_ANALYZE_TOP_H

#include "analyze/grouping.h"
#include "profile/processes.h"

struct top_function {
    struct name_id name;      /* name with its file, line or address, as the granularity has it */
    struct string_id file;    /* source file of the first location that bears the name; may be "" */
    struct string_id package; /* file name of its mapping; may be "" */
    int64_t self, total;      /* TOTAL counts a recursive function once a sample */
};

enum top_grouping { TOP_OF_ALL, TOP_BY_THREAD, TOP_BY_PROCESS };

struct top_group {
    struct thread_id thread;    /* TOP_BY_THREAD; 0 = the samples of no thread */
    struct process_key process; /* TOP_BY_PROCESS */
    int64_t total; /* sum of all the group's samples, or of a difference's base if it has one, each without its sign */
    uint64_t duration_ns; /* time from the first to the last sample, unless TOP_OF_ALL; 0 without times */
    struct top_function *functions;
    size_t function_count;
};

struct top {
    size_t value_index;
    enum top_grouping grouping;
    int64_t total;
    /* One; or one for each thread that has samples, in the profile's order; or for each process, by falling total. */
    struct top_group *groups;
    size_t group_count;
    struct names names; /* names of the functions */
};

struct top_options {
    size_t value_index; /* index below the profile's value_type_count */
    enum top_grouping grouping;
    bool by_cumulative;  /* order by TOTAL; default: by SELF */
    bool is_mean;        /* each sum is divided by the sum of the first value */
    bool drops_negative; /* negative functions of a difference are left out */
    enum granularity granularity;
    bool no_inlines, has_columns; /* options as in struct grouping_options */
};

/* Computes TOP. By default, functions with equal names are one function, even in different files, and each inlined
 * function counts as a separate frame. A frame without a name is named by its location: "libx.so.1+0x1234" (the address
 * as the file has it), "0x1234" without a mapping. Functions are ordered by |self| (or |total|) falling, then by the
 * other, then by name. Sums that leave 64 bits stay at their limit. TOP is set on success; free it with top_fini,
 * before PROFILE. */
enum status top_compute(const struct profile *profile, const struct top_options *options, struct top *ret_top,
                        struct error *error);
void top_fini(struct top *top);

#endif
