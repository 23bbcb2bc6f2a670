/* Stacks of threads that an interpreter runs in this process: they get the functions of the program. The sampler thread
 * reads stacks of sleeping threads, and gives numbers to the places in all stacks; a running thread reads its own
 * functions in the signal handler. run/interpreted_threads.c finds the interpreter and its threads.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_INTERPRETED_STACKS_H
#define OFFBEAT_SAMPLER_INTERPRETED_STACKS_H

#include "interpreters/place_table.h"
#include "interpreters/recalled_memory.h"
#include "sampler/source/remote_unwind.h"
#include "sampler/source/source.h"

/* The interpreter of this process. The sampler thread's alone, but PROCESS, which handlers read once threads have it:
 * it is never emptied, because a handler of an earlier start can still be reading. */
struct interpreted_found {
    struct interpreted_process process;
    enum interpreter_attached attached;
    struct memory_range lock; /* lock that a thread must have to run; size 0: not known */
    struct place_table places;
    struct interpreted_work work;
    struct recalled_memory recalled;
};

extern struct interpreted_found interpreted_found;
extern const struct process_memory interpreted_own_memory;

/* Lets the handler of REQUEST read functions if an interpreter runs its THREAD. */
void interpreted_stacks_prepare(struct sample_request *request, struct interpreted_thread thread);

/* Replaces the functions in REPLY by numbers of places in the recording. */
void interpreted_stacks_finish(struct source_tick *tick, struct sample_reply *reply);

/* Adds functions to STACK of THREAD, which sleeps. Returns false if the thread has run meanwhile. */
bool interpreted_stacks_add(struct source_tick *tick, const struct source_thread *thread, struct remote_stack *stack);

#endif
