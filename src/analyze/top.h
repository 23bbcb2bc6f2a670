/* The hottest functions of a profile.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_TOP_H
#define OFFBEAT_ANALYZE_TOP_H

#include "profile/profile.h"

struct top_function {
    struct string_id name;    /* "" only if the profile has frames without any name or address */
    struct string_id file;    /* source file of the first location seen; may be "" */
    struct string_id package; /* file name of the mapping; may be "" */
    int64_t self, total;      /* TOTAL counts a recursive function once a sample */
};

struct top_thread {
    struct thread_id thread; /* 0 = all threads together */
    int64_t total;           /* of all the thread's samples */
    uint64_t duration_ns;    /* by thread only: first to last sample */
    struct top_function *functions;
    size_t function_count;
};

struct top {
    size_t value_index;
    int64_t total;
    struct top_thread *threads; /* one, or one for each thread that has samples */
    size_t thread_count;
};

struct top_options {
    size_t value_index;
    bool by_thread;     /* group by thread, and within it by function name alone */
    bool by_cumulative; /* order by TOTAL; default: by SELF */
};

/* Orders functions by |self| (or |total|) falling, then by name. Functions without a name are named by address:
 * "0x1234". Adds strings to PROFILE. TOP is set on success; free it with top_fini. */
enum status top_compute(struct profile *profile, const struct top_options *options, struct top *ret_top,
                        struct error *error);
void top_fini(struct top *top);

#endif
