/* The interface of an engine: a way to see the threads of other processes. The recorder (recorder.h) chooses one, tells
 * it which processes to watch and where their code is, calls it at each tick, and divides the threads' time by what it
 * delivers. An engine knows neither recordings nor names.
 *
 * An engine delivers sights, and may leave one kind of them to another engine:
 *   engine_stack   where a thread ran when its processor's or its own timer fired
 *   engine_thread  a thread's clocks and state at a tick, and its registers if it is blocked
 *   engine_wait    in off-CPU mode, a wait of a thread, whose stack came when it began
 * One thread at a time uses an engine. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_ENGINE_H
#define OFFBEAT_RECORDER_ENGINE_H

#include "format/recording/recording_layout.h"
#include "interpreters/interpreter.h"
#include "recorder/code_file.h"
#include "unwind/copied_stack.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ENGINE_DENIAL_SIZE = 256 };

/* --- Processes, which the recorder maintains ------------------------------------------------------------------------
 */

/* An executable segment in the memory of a process. */
struct process_module {
    uint64_t start, end;    /* address range */
    uint64_t base;          /* address to which the table of FILE is relative; modulo 2^64 */
    struct code_file *file; /* file, shared by all processes that map it; its table may come later */
    uint32_t number;        /* number in the recording of the process */
    bool is_libc;           /* true if it is the C library, by its name */
    bool is_java;           /* true if it is a Java virtual machine, by its name */
    uint64_t seen_ns;       /* time from which on it is known to be there, CLOCK_MONOTONIC */
};

/* Code without a file: generated at run time, mostly with frame pointers. */
struct generated_code {
    uint64_t start, end;
};

struct watched_process {
    pid_t pid;
    uint64_t start_ticks;                 /* start of the process, clock ticks since boot (proc(5), starttime) */
    const struct process_module *modules; /* list sorted by START, without overlaps */
    size_t module_count;
    const struct generated_code *generated; /* list sorted by START, without overlaps */
    size_t generated_count;
    uint64_t generation; /* number that grows when the list or a table of it changes */
    bool has_unloaded;   /* true if code has gone: other code may take its place between two lists */
    bool is_added;       /* true after add_process */
    void *engine_data;   /* the engine's own data; NULL before add_process */
};

/* --- Sights, which the engine delivers ------------------------------------------------------------------------------
 */

/* A stack of a running thread: either ADDRESSES, or registers and a piece of the stack that the recorder unwinds. */
struct engine_stack {
    pid_t pid, tid;
    uint64_t time_ns; /* CLOCK_MONOTONIC */

    const uint64_t *addresses; /* frames, the innermost first, as unwind_walk gives them */
    size_t count;              /* number of addresses; 0: REGISTERS and COPY count */
    enum unwind_outcome outcome;

    struct unwind_registers registers;
    struct copied_stack copy; /* size 0: the recorder reads the process's memory */

    const uint64_t *stack_pointers;         /* stack pointers of ADDRESSES; NULL: not known */
    const struct process_memory *functions; /* memory in which an interpreter's frames were copied at the same time;
                                               NULL: none */

    bool begins_wait;                 /* true if the thread left its processor at TIME_NS */
    const uint64_t *kernel_addresses; /* frames inside the kernel, the innermost first */
    size_t kernel_count;
};

/* A wait of a thread, which has a processor again. Times are ns of CLOCK_MONOTONIC. */
struct engine_wait {
    pid_t pid, tid;
    enum recording_wait reason;
    uint64_t began_ns, ended_ns;
    uint64_t woken_ns;          /* 0: it was not asleep */
    uint32_t one_in;            /* number of waits that it stands for */
    pid_t waker_pid, waker_tid; /* 0: an interrupt */
    const char *waker;          /* name of the thread */
};

/* Waits of a thread that are not delivered, since it was observed first. */
struct engine_other_waits {
    uint64_t short_ns, left_out_ns; /* times of waits below the threshold, and of those not chosen */
    uint64_t short_count, left_out_count;
};

enum thread_state {
    THREAD_RUNNING, /* on a processor or waiting for one */
    THREAD_BLOCKED,
    THREAD_STOPPED, /* a signal, a debugger or the freezer stopped it */
    THREAD_ENDED,
};

/* A thread at a tick. Numbers grow from the start of the thread. */
struct engine_thread {
    pid_t pid, tid;
    uint64_t time_ns;      /* CLOCK_MONOTONIC */
    uint64_t cpu_ns;       /* CPU time */
    uint64_t run_delay_ns; /* time for which it was runnable and waited for a processor */
    enum thread_state state;
    bool has_registers;     /* true if REGISTERS are those of a blocked thread */
    bool has_all_registers; /* false: only IP, SP and the arguments of its system call are known */
    struct unwind_registers registers;
    char name[16];          /* name; "": it is not known, or as before */
    uint64_t wait_began_ns; /* time when the wait began in which it is; 0: it is in none, or nobody knows */
    enum recording_wait wait_reason;
    struct engine_other_waits other_waits;
};

enum process_change {
    PROCESS_FORKED, /* PID is a new child of PARENT */
    PROCESS_EXECUTED,
    PROCESS_ENDED,
    PROCESS_MAPPED, /* it has new code, or ran at an address in no known module */
};

/* Receiver of what an engine sees. Pointers are valid during the call only. */
struct engine_sink {
    void *context;
    void (*stack)(void *context, const struct engine_stack *stack);
    void (*thread)(void *context, const struct engine_thread *thread);
    void (*wait)(void *context, const struct engine_wait *wait);
    void (*process)(void *context, pid_t pid, pid_t parent, enum process_change change);
};

/* --- Engines --------------------------------------------------------------------------------------------------------
 */

struct engine_options {
    uint64_t period_ns;
    bool is_cpu_mode;     /* true if only CPU time counts, and threads are not observed at ticks */
    bool records_waits;   /* true if waits are delivered, and no stacks of running threads */
    uint64_t wait_ns_min; /* duration from which on a wait is delivered */
    bool takes_kernel_stacks;
    bool watches_all;      /* true if nearly all processes of the machine are watched */
    bool follows_children; /* true if new processes of those that are watched are reported */
};

/* The reason why an engine cannot be used, and what to do about it. */
struct engine_denial {
    char reason[ENGINE_DENIAL_SIZE]; /* "perf_event_paranoid is 3", without a full stop */
    char remedy[ENGINE_DENIAL_SIZE]; /* command that grants it; "": nothing does */
};

/* Counts since the engine was opened. */
struct engine_losses {
    uint64_t stacks_lost; /* stacks for which the buffer had no room */
    uint64_t outdated;    /* stacks in code that was unloaded or replaced before they were read */
    uint64_t runs_missed; /* times that the engine was not called by the kernel */
};

struct engine;

struct engine_ops {
    const char *name;  /* "bpf", "perf" or "proc" */
    bool sees_running; /* true if it delivers stacks of running threads */
    bool sees_threads; /* true if it has OBSERVE; otherwise the proc engine observes the threads beside it */
    bool sees_waits;   /* true if it delivers waits, and stacks inside the kernel */
    bool sees_changes; /* true if it reports new processes, and programs that processes execute */

    /* Tries what the engine needs on this machine, with the rights of this process. Returns false with *RET_DENIAL. */
    bool (*probe)(struct engine_denial *ret_denial);

    /* Returns NULL with *RET_DENIAL. */
    struct engine *(*open)(const struct engine_options *options, struct engine_denial *ret_denial);
    /* Returns true if time inside of system calls has no stacks. NULL: it has. */
    bool (*sees_user_code_only)(const struct engine *engine);
    void (*close)(struct engine *engine); /* accepts NULL; leaves nothing in the kernel */

    /* Changes the time between two stacks of a running thread of PROCESS; NULL: of all that are added later. The
     * function is NULL if there are no such stacks. */
    void (*set_period)(struct engine *engine, struct watched_process *process, uint64_t period_ns);

    /* Begins to watch PROCESS, which stays valid until remove_process. Returns false with *RET_DENIAL. */
    bool (*add_process)(struct engine *engine, struct watched_process *process, struct engine_denial *ret_denial);
    /* Called before the modules are listed for update_process: code that comes from now on may not be in the list. May
     * be NULL. */
    void (*begin_listing)(struct engine *engine, struct watched_process *process);
    /* Takes over a changed list of modules, or a table that is ready. May be NULL. */
    void (*update_process)(struct engine *engine, struct watched_process *process);
    void (*remove_process)(struct engine *engine, struct watched_process *process);

    /* Lets the engine copy the frames that an interpreter has for THREAD, whose description is at STATE, with its
     * stacks; STATE 0 ends that. NULL: it cannot. */
    void (*watch_functions)(struct engine *engine, pid_t tid, uint64_t state, const struct interpreter_chain *chain);

    /* Delivers the stacks and changes that were gathered since the last call. Called at each tick, or every 100 ms. */
    void (*poll)(struct engine *engine, const struct engine_sink *sink);

    /* Delivers one engine_thread for each thread of the watched processes that ran since the last call, or that is new
     * or ended; a thread that is left out was blocked all the time. NULL unless SEES_THREADS. */
    void (*observe)(struct engine *engine, const struct engine_sink *sink);

    /* Delivers the threads that have ended since the last call, a part of what OBSERVE does. NULL: it cannot. */
    void (*observe_ends)(struct engine *engine, const struct engine_sink *sink);

    /* Called from inside of the sink for the thread that is delivered as blocked, after its stack was read. Returns
     * true if it has run since it was SEEN. NULL: the kernel is asked by /proc. */
    bool (*has_run)(struct engine *engine, const struct engine_thread *seen);

    void (*losses)(const struct engine *engine, struct engine_losses *ret_losses);

    /* Forgets the table of FILE, which is in no watched process. NULL: the engine has none. */
    void (*forget_file)(struct engine *engine, const struct code_file *file);
    /* Returns the bytes that the engine has in the kernel. NULL: none that are worth counting. */
    uint64_t (*kernel_bytes)(const struct engine *engine);
};

extern const struct engine_ops engine_bpf, engine_perf, engine_proc;

#endif
