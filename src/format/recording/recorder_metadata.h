/* Metadata of the recorder in a recording, which `offbeat info` shows. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_RECORDING_RECORDER_METADATA_H
#define OFFBEAT_FORMAT_RECORDING_RECORDER_METADATA_H

#include "format/recording/recording_layout.h"
#include "profile/profile.h"

enum { RECORDER_OUTCOMES = 6 }; /* outcomes of a stack walk in the flags of a sample */

struct recorder_counts {
    uint64_t counters[RECORDING_COUNTER_COUNT];
    uint64_t taken, repeated;             /* stacks, and ticks for which a blocked one was taken again */
    uint64_t unseen;                      /* ticks of threads of which nothing was known */
    uint64_t outcomes[RECORDER_OUTCOMES]; /* numbers of stacks taken, by outcome */
    uint64_t lost_ns[RECORDING_LOSSES];
    uint64_t short_threads;
    uint64_t short_waits, waits_left_out; /* waits below the threshold, and waits that were left out at random */
    uint64_t too_short_ns, borrowed_ns;
    uint64_t woken_waits_ns;                   /* waits for a processor after wake-ups */
    uint64_t first_usage_cpu_ns, usage_cpu_ns; /* CPU time of the process, at the first and the last record */
    uint64_t started_cpu_ns;                   /* CPU time of samples in FIRST_USAGE_CPU_NS */
    struct string_id interpreter;              /* name and version of an interpreter in the process; "" = none */
    bool is_unknown_interpreter;               /* true if its functions cannot be read */
    bool is_stopped;                           /* the recorder ended the recording */
};

/* Adds them to PROFILE. PERIOD_NS: more than 0. */
void recorder_metadata_add(struct profile *profile, const struct recorder_counts *counts, enum recording_mode mode,
                           uint64_t period_ns);

#endif
