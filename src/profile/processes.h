/* The process of each sample, for reports: its labels "pid" and "process" name it, or else its thread's process.
 *  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_PROFILE_PROCESSES_H
#define OFFBEAT_PROFILE_PROCESSES_H

#include "profile/profile.h"

#define PROCESS_ID_LABEL "pid"
#define PROCESS_NAME_LABEL "process"

/* A process that runs another program (exec) keeps its pid and has two of these. */
struct process_key {
    int64_t pid;           /* 0: not known */
    struct string_id name; /* "": not known */
};

/* ITEMS[0] is the process that the metadata of the same names describes. A sample without these labels and whose thread
 * has no known process belongs to it. Without a name, an item gets the name of the thread whose id is the pid. */
struct processes {
    struct process_key *items;
    size_t count, capacity;
    uint32_t *of_labels;    /* index in ITEMS by label set; 0: the labels do not say */
    uint32_t *of_processes; /* index in ITEMS by process of the profile */
    struct index_table index;
};

/* False without memory. Finish with processes_fini in both cases. */
bool processes_find(struct processes *processes, const struct profile *profile);
void processes_fini(struct processes *processes);

static inline uint32_t process_of_sample(const struct processes *processes, const struct profile *profile,
                                         size_t sample)
{
    uint32_t of_labels = processes->of_labels[profile->samples.labels[sample].index];
    if (of_labels != 0 || profile->processes.count <= 1) return of_labels;
    return processes->of_processes[profile_thread(profile, profile->samples.thread[sample])->process.index];
}

/* Labels for the samples of PROFILE if it holds one process that only its metadata names; else none. Valid as long as
 * PROFILE. */
struct profile_extra_labels processes_labels_of_one(const struct processes *processes, const struct profile *profile);

/* Adds the labels of the place of PROFILE's only process: its unit, container and pod, where its metadata name them. */
void processes_add_place(struct profile_extra_labels *labels, const struct profile *profile);

/* True if two processes are known. */
bool processes_are_several(const struct processes *processes);

enum { PROCESS_LABEL_SIZE = 40 };
/* "1234", or the profiler id of a process whose pid is not known. False if neither is known. */
bool process_label(const struct profile *profile, struct process_id id, char ret_text[PROCESS_LABEL_SIZE]);

/* The name that the thread of SAMPLE had when it was taken. */
struct string_id profile_thread_name_at(const struct profile *profile, size_t sample);

/* Returns the name of the script that an interpreter ran in PROFILE's first or only process; "" if there is none. */
const char *profile_script(const struct profile *profile);

#endif
