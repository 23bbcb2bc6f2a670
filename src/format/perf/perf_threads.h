/* The names of threads in a perf.data file, at the time of the record at hand.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_THREADS_H
#define OFFBEAT_FORMAT_PERF_PERF_THREADS_H

#include "base/index_table.h"
#include "profile/profile.h"

enum { PERF_THREADS_MAX = 4 << 20 };

struct perf_thread {
    uint32_t tid;
    uint32_t pid;                /* of its last sample */
    struct string_id name;       /* now; "": not known */
    struct string_id shown;      /* the name that the profile gives it: that of its first sample */
    struct thread_id id;         /* 0: no sample yet */
    struct string_id namespaces; /* now; "": the first ones, or not known */
};

/* {0} is valid and empty. */
struct perf_threads {
    struct perf_thread *items;
    size_t count, capacity;
    struct index_table by_tid;
};

/* The thread TID, which is added if it is new. Valid until the next call. NULL: too many, or no memory. */
struct perf_thread *perf_threads_get(struct perf_threads *threads, uint32_t tid);

void perf_threads_fini(struct perf_threads *threads);

#endif
