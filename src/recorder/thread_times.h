/* Divides the time of a thread that is seen from outside. Its clocks say how long it ran, waited for a processor and
 * was blocked since the tick before; stacks say where. CPU time is written with the stacks of the thread that were
 * taken while it ran, blocked time with the stack where it is found blocked. Time without a stack is carried to the
 * next one of its kind.
 *
 * The ledger of the sampler (sampler/ledger) needs a CPU clock that is exact when its thread is scanned. The clocks of
 * an engine are some milliseconds old while a thread runs, so that its CPU time is lent before they show it; and
 * engines differ in what they see. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_THREAD_TIMES_H
#define OFFBEAT_RECORDER_THREAD_TIMES_H

#include "interpreters/recalled_memory.h"
#include "interpreters/interpreter.h"
#include "recorder/engine.h"
#include "recorder/thread_waits.h"
#include "sampler/record/recording_writer.h"

struct recorded_thread {
    pid_t tid;
    uint32_t number; /* number in the recording */
    char name[16];
    struct interpreted_thread interpreted; /* STATE 0: no interpreter is known to run it */
    struct recalled_parts *recalled;       /* parts of the interpreter's memory that its last stack took; may be NULL */
    bool was_looked_for;                   /* true if the interpreter's threads were listed for its sake */
    pid_t inner_tid;                       /* number in its own namespace of process numbers; 0: not known yet */
    struct recorded_process *process;
    struct recorded_thread *next; /* next thread of the same bucket */

    uint64_t time_ns, cpu_ns, run_delay_ns; /* clocks up to which its time was divided */
    struct recording_time unwritten;
    bool is_running;               /* true if it was running or runnable when it was observed last */
    bool is_resting;               /* true while the reader extends its last blocked stack */
    bool is_observed;              /* true if it was observed in the open tick */
    bool has_record;               /* true if the open tick has a record of it */
    bool has_running, has_blocked; /* true if it has a stack of the kind */
    bool has_ended;
    bool is_known;        /* false until its clocks were read */
    uint64_t lent_ns;     /* CPU time that was written before the clock showed it */
    uint64_t owed_ns;     /* CPU time of stacks in user code that could not be written */
    unsigned stack_count; /* stacks of the open tick that are not written yet */
    struct recording_stack last;
    struct engine_thread rest; /* last sight of it as blocked, with a stack */
    struct thread_waits waits; /* off-CPU mode only, which uses none of the times */
};

/* The open tick of a process. */
struct tick {
    struct recording_writer *writer;
    uint64_t time_ns;     /* CLOCK_MONOTONIC */
    uint64_t observed_ns; /* time when all threads were observed last, CLOCK_MONOTONIC */
    uint64_t period_ns;
    bool is_partial; /* true if it observed only threads with stacks */
    bool is_cpu_mode, records_waits, sees_user_code_only, sees_running;
};

struct walked_stack {
    const uint64_t *addresses;
    size_t count;
    enum unwind_outcome outcome;
};

/* Begins with the clocks of SEEN: time before it is not written, except for CPU time since all threads were observed if
 * THREAD IS_NEW since then. */
void thread_times_begin(struct recorded_thread *thread, const struct tick *tick, const struct engine_thread *seen,
                        bool is_new);

/* Adds the time up to the tick by the clocks of SEEN; NULL: THREAD was blocked. */
void thread_times_add(struct recorded_thread *thread, const struct tick *tick, const struct engine_thread *seen);

/* Writes a share of the CPU time with STACK, one of THREAD's stack_count stacks. */
void thread_times_write_running(struct recorded_thread *thread, const struct tick *tick,
                                const struct walked_stack *stack);

/* Writes the blocked time with STACK, and lets the reader extend it until THREAD is observed again. */
void thread_times_write_blocked(struct recorded_thread *thread, const struct tick *tick,
                                const struct walked_stack *stack);

/* Writes the time for which THREAD was stopped. */
void thread_times_write_stopped(struct recorded_thread *thread, const struct tick *tick);

/* Writes the time that no stack of the engine can cover, and that other time comes later. */
void thread_times_end_tick(struct recorded_thread *thread, const struct tick *tick);

/* Writes what is left, because THREAD or the recording ends. */
void thread_times_close(struct recorded_thread *thread, const struct tick *tick);

#endif
