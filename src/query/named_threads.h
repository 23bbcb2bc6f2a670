/* Threads as sums of processes know them: by their names, without ids.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_NAMED_THREADS_H
#define OFFBEAT_QUERY_NAMED_THREADS_H

#include "profile/profile.h"

enum { THREAD_NAMES_MAX = 64, THREAD_NAME_SIZE = 128 };

/* The names of the threads of a profile. Threads above the maximum have one name. {0} is a valid empty one. */
struct thread_names {
    char items[THREAD_NAMES_MAX][THREAD_NAME_SIZE];
    size_t count;       /* [0] is "", the name of no thread */
    uint8_t *of_thread; /* index of the name of each thread */
};

/* False without memory. */
bool thread_names_init(struct thread_names *names, const struct profile *profile);
void thread_names_fini(struct thread_names *names);

/* The thread of PROFILE that has NAME and no process; 0 for the empty name. */
struct thread_id named_thread(struct profile *profile, struct slice name);
/* Makes threads of equal names one; without KEEPS_NAMES, samples have no threads. */
void name_threads(struct profile *profile, bool keeps_names);

#endif
