/* The interpreter in a recorded process, and the functions that it runs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_INTERPRETED_PROCESS_H
#define OFFBEAT_RECORDER_INTERPRETED_PROCESS_H

#include "interpreters/merged_stack.h"
#include "interpreters/place_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct engine_ops;
struct recorded_process;
struct recorded_thread;
struct walked_stack;

/* Has not been looked for if all but the engine is 0. */
struct interpreted_process {
    const struct engine_ops *engine_ops; /* engine that may copy functions of running threads */
    struct engine *engine;
    enum interpreter_attached attached;
    struct interpreter_state state;
    struct native_view view;
    struct memory_range lock; /* lock that a thread must have to run; size 0: not known */
    uint32_t image;           /* number of the module that has the interpreter */
    uint32_t images_seen;     /* modules below this number were examined */
    uint64_t listed_tick, changed_tick;
    size_t listed_count; /* threads of the process at the last listing of the interpreter's */
    uint32_t new_budget; /* threads that this tick may still list for the sake of new ones */
    bool has_threads;    /* true once a thread of the process was in a listing */
    struct place_table places;
    uint64_t stacks, torn, gone;
};

/* Looks for an interpreter and its new threads. Called at each tick, after the code is listed. */
void interpreted_process_refresh(struct recorded_process *process);

/* Looks for the interpreter again, because PROCESS has a new recording, and perhaps another program. */
void interpreted_process_restart(struct recorded_process *process);

/* A stack that gets the functions that an interpreter runs. */
struct interpreted_target {
    struct walked_stack *walked;
    uint64_t *addresses; /* addresses of WALKED; RECORDING_FRAMES_MAX of them */
    const uint64_t *stack_pointers;
    const struct process_memory *copied; /* memory in which the functions are; NULL: that of the process */
    uint64_t argument;                   /* first argument of the system call in which the thread sleeps; 0: none */
};

/* Adds the functions that THREAD runs. Where TARGET has no copy of them, THREAD sleeps. */
void interpreted_process_add(struct recorded_thread *thread, const struct interpreted_target *target);

/* Ends what the engine does for THREAD. */
void interpreted_process_forget_thread(struct recorded_thread *thread);

void interpreted_process_fini(struct interpreted_process *interpreted);

#endif
