/* Time of a process before its recording began.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PROCESS_STARTS_H
#define OFFBEAT_CLI_PROCESS_STARTS_H

#include "base/index_table.h"
#include "profile/profile.h"

#include <sys/types.h>

/* {0} is empty. */
struct process_starts {
    struct process_clock {
        pid_t pid;
        uint64_t cpu_ns; /* CPU time that the profiles of this process have, ns */
        uint64_t end_ns; /* end of the last of them */
    } * items;
    size_t count, capacity;
    struct index_table index;
    double rest_of_period; /* part of a period that is not yet a sample: samples are whole periods */
};

/* The time that a process used before its recording began: in exec, in the dynamic linker, and in the constructors
 * of libraries that come first. Its first thread waited for a processor meanwhile; a profile of CPU time does not
 * say so. */
struct process_start {
    uint64_t cpu_ns, wait_ns;
};

/* Adds BEFORE to PROFILE, of one recording of process PID. The sample is called STARTING, and PROFILE begins earlier by
 * that time. A process that calls exec has several recordings and one clock: they come in their order, and what earlier
 * ones have is left out; only the first one has waits. The CPU time that was added: no more than has passed since the
 * one before. */
uint64_t process_starts_add(struct process_starts *starts, struct profile *profile, pid_t pid,
                            struct process_start before);

/* The CPU time of all samples. */
uint64_t recorded_cpu_ns(const struct profile *profile);

void process_starts_fini(struct process_starts *starts);

#endif
