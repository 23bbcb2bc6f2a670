/* A process that is recorded: its recording, its code and its threads.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_RECORDED_PROCESS_H
#define OFFBEAT_RECORDER_RECORDED_PROCESS_H

#include "recorder/interpreted_process.h"
#include "recorder/process_code.h"
#include "recorder/process_place.h"
#include "recorder/thread_times.h"

struct recorder_options;

/* Counts of one recording. */
struct recorded_counts {
    uint64_t ticks, ticks_missed, stacks, blocked_stacks;
    uint64_t unseen_stacks; /* stacks that end in code whose file could not be read */
};

struct recorded_process {
    struct watched_process watched; /* description for the engines */
    struct recorded_process *next;  /* next process of the same bucket */
    struct process_code code;
    struct interpreted_process interpreted;
    struct recording_writer *writer;
    ARRAY_OF(struct recorded_thread *) threads;
    uint32_t next_thread;
    struct tick tick;
    uint64_t first_cpu_ns, cpu_ns; /* CPU time of the process when the recording began, and at the last look */
    uint64_t usage_ns;             /* time of the last record of usage, CLOCK_MONOTONIC */
    bool needs_listing;            /* true if a stack was at an address in no module */
    bool has_run;                  /* true if one of its threads has run since its code was listed */
    uint64_t relist_pause_ns; /* time between two listings that stacks ask for; longer while they find nothing new */
    bool is_observed; /* true if all its threads were observed once, or if it began while its parent was recorded */
    bool has_ended;
    uint64_t ticks; /* ticks of all its recordings */
    struct recorded_counts counts;
    uint64_t thinning;   /* N: each N-th stack of running threads is enough */
    uint64_t restart_ns; /* time of the next recording, CLOCK_MONOTONIC */
    uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE];
    struct process_place place;
    char executable[4096];
};

/* Begins the recording of process PID, whose ticks are like TICK. Returns NULL with *RET_DENIAL. */
struct recorded_process *recorded_process_new(pid_t pid, const struct recorder_options *options,
                                              const struct tick *tick, struct code_files *files,
                                              struct engine_denial *ret_denial);

/* Frees PROCESS, of which nothing was sampled, and leaves no recording. */
void recorded_process_discard(struct recorded_process *process);

/* Ends the recording with the counters. ENGINE is an enum recording_engine. */
void recorded_process_free(struct recorded_process *process, const struct recorder_options *options, uint64_t engine);

/* Ends the recording between two ticks, unless it has no stack yet, and continues with another one, which leaves out no
 * time. The modules have other numbers then, and a thread that rests needs a stack. */
void recorded_process_restart(struct recorded_process *process, const struct recorder_options *options,
                              struct code_files *files, uint64_t engine);

/* Returns true if it is time to list its code again, or if a stack needs it. */
bool recorded_process_is_due(struct recorded_process *process, uint64_t now_ns);
/* Lists its code again. */
void recorded_process_list(struct recorded_process *process, const struct recorder_options *options,
                           struct code_files *files);

/* Begins a tick at TIME_NS, and ends it. */
void recorded_process_begin_tick(struct recorded_process *process, uint64_t time_ns);
void recorded_process_end_tick(struct recorded_process *process);

/* Returns thread TID, which is made if it is new; NULL if there is no room. */
struct recorded_thread *recorded_process_add_thread(struct recorded_process *process, pid_t tid);
void recorded_process_free_thread(struct recorded_thread *thread);

#endif
