/* A recorder, for its own files: recorder.c has its processes and ticks, sights.c takes what engines
 * see, recorder_index.c finds processes and threads.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_RECORDER_PRIVATE_H
#define OFFBEAT_RECORDER_RECORDER_PRIVATE_H

#include "recorder/cpu_budget.h"
#include "recorder/gone_children.h"
#include "recorder/kept_maps.h"
#include "recorder/memory_budget.h"
#include "recorder/recorded_process.h"
#include "recorder/recorder.h"
#include "recorder/remote_memory.h"

enum { RECORDER_BUCKETS = 1 << 12 };

/* A stack that waits for the clocks of its thread. */
struct queued_stack {
    struct recorded_process *process;
    pid_t tid;
    enum unwind_outcome outcome;
    size_t first, count; /* place of its addresses */
};

struct recorder {
    struct recorder_options options;
    const struct engine_ops *observer_ops; /* engine that observes the threads; may be that of the options */
    struct engine *engine, *observer;
    struct code_files files;
    struct kept_maps maps;
    ARRAY_OF(struct recorded_process *) processes;
    struct recorded_process *by_pid[RECORDER_BUCKETS];
    struct gone_children gone;
    struct recorded_thread *threads[RECORDER_BUCKETS];
    ARRAY_OF(struct queued_stack) stacks; /* stacks of the open tick */
    ARRAY_OF(uint64_t) addresses;
    uint64_t period_ns, slot_ns, next_ns; /* ticks fall at random in slots of a period each */
    struct cpu_budget budget;
    struct memory_budget memory_budget;
    size_t left_out_count; /* processes that the last search left out for want of memory */
    uint64_t random, follow_ns;
    bool observes_rarely; /* true if only CPU time counts, and the engine reports ends of threads */
    uint64_t observe_ns;  /* time from which on all threads are observed again */
    uint64_t lost_stacks, outdated_stacks;
    struct remote_stack memory;
    uint64_t walked[RECORDING_FRAMES_MAX], joined[RECORDING_FRAMES_MAX], stack_pointers[RECORDING_FRAMES_MAX];
};

/* --- Processes and threads ---------------------------------------------------------------------------------------- */

struct recorded_thread *recorder_find_thread(struct recorder *recorder, const struct recorded_process *process,
                                             pid_t tid);
/* Returns NULL if there is no room. */
struct recorded_thread *recorder_find_or_add_thread(struct recorder *recorder, struct recorded_process *process,
                                                    pid_t tid);
void recorder_forget_thread(struct recorder *recorder, const struct recorded_thread *thread);

struct recorded_process *recorder_find_process(const struct recorder *recorder, pid_t pid);
/* Returns the process whose recording has what is seen of PID. */
struct recorded_process *recorder_process_with(const struct recorder *recorder, pid_t pid);
void recorder_note_process(struct recorder *recorder, struct recorded_process *process);
void recorder_forget_process(struct recorder *recorder, const struct recorded_process *process);

/* --- Sights ------------------------------------------------------------------------------------------------------- */

/* Functions of an engine_sink, whose context is the recorder. */
void recorder_take_stack(void *context, const struct engine_stack *stack);
void recorder_take_thread(void *context, const struct engine_thread *seen);
void recorder_take_wait(void *context, const struct engine_wait *wait);

/* Lets engines know the code of PROCESS, and has its names kept. */
void recorder_show_code(struct recorder *recorder, struct recorded_process *process);
/* Lets the engine know that the code of PROCESS is going to be listed. */
void recorder_begin_listing(struct recorder *recorder, struct recorded_process *process);
/* Lists the code of PROCESS again: no stack may be walked or named with the old list. */
void recorder_list_code(struct recorder *recorder, struct recorded_process *process);

/* Observes all threads, or most of the time only those that have stacks: the others have nothing to write. */
void recorder_observe(struct recorder *recorder, const struct engine_sink *sink, uint64_t now_ns);
/* Reads the stack of THREAD, which is blocked. If its clock has moved meanwhile, the stack may be of two moments. */
void recorder_read_blocked(struct recorder *recorder, struct recorded_thread *thread, const struct engine_thread *seen);

/* Writes the stacks of the open tick. */
void recorder_write_stacks(struct recorder *recorder);
/* Drops the stacks of PROCESS that wait to be written. */
void recorder_drop_stacks(struct recorder *recorder, const struct recorded_process *process);

/* Returns a number below LIMIT. */
uint64_t recorder_random_below(struct recorder *recorder, uint64_t limit);

#endif
