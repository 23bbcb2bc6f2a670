/* The processes of a profile: each sample may name one by its labels "pid" and "process".  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_PROFILE_PROCESSES_H
#define OFFBEAT_PROFILE_PROCESSES_H

#include "profile/profile.h"

#define PROCESS_ID_LABEL "pid"
#define PROCESS_NAME_LABEL "process"

struct process {
    int64_t pid;           /* 0: not known */
    struct string_id name; /* "": not known */
};

/* ITEMS[0] is the process of samples without these labels: the one that the facts of the same names tell. A process
 * that runs another program (exec) keeps its pid and becomes another item. Without a label "process", the name is that
 * of the thread whose id is the pid. */
struct processes {
    struct process *items;
    size_t count, capacity;
    uint32_t *of_labels; /* by label set: index in ITEMS */
    struct index_table index;
};

/* False without memory. Finish with processes_fini in both cases. */
bool processes_find(struct processes *processes, const struct profile *profile);
void processes_fini(struct processes *processes);

static inline uint32_t process_of_sample(const struct processes *processes, const struct profile *profile,
                                         size_t sample)
{
    return processes->of_labels[profile->samples.labels[sample].index];
}

/* Labels for the samples of PROFILE if it holds one process that only its facts name; else none. Valid as long as
 * PROFILE. */
struct profile_extra_labels processes_labels_of_one(const struct processes *processes, const struct profile *profile);

/* True if two processes are known. */
bool processes_are_several(const struct processes *processes);

/* The name that the thread of SAMPLE had when it was taken. */
struct string_id profile_thread_name_at(const struct profile *profile, size_t sample);

#endif
