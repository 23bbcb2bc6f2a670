/* Divides the time of each thread. The kernel's numbers say how long: a thread's CPU clock, and schedstat for
 * the time that it waited for a processor; for the rest it was blocked. Stacks only say where. So a scan that comes
 * late stands for all the time since the previous one, and nothing is dropped. doc/decisions/sampler.md describes the
 * estimator.
 *
 * A ledger makes no system call and knows neither files nor other threads: it is told what was observed, and writes to
 * a sink. At each tick that finds a thread awake: set CPU_NS, ledger_begin_tick, ledger_note_delay, a credit for each
 * stack, ledger_end_tick. A thread that is left out of a tick was blocked at its last blocked stack.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_LEDGER_H
#define OFFBEAT_SAMPLER_LEDGER_H

#include "format/recording/recording_layout.h"
#include "sampler/ledger/routine_sums.h"
#include "sampler/observe/found_stack.h"
#include "sampler/observe/thread_events.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ledger_state {
    LEDGER_UNKNOWN,
    LEDGER_BLOCKED,  /* the thread is blocked, and its stack is in the recording */
    LEDGER_RUNNABLE, /* the thread runs, or waits for a processor */
};

/* Wall-clock time of a thread. */
struct ledger_wall {
    uint64_t since_ns;        /* start of the time that is written, CLOCK_MONOTONIC; 0: it precedes the sampler */
    uint64_t pending_ns;      /* time that is not written yet, ns */
    uint64_t prewritten_ns;   /* coming time that is written already, or precedes the thread, ns */
    uint64_t start_credit_ns; /* time before the tick that found the thread, in which it may have lived, ns */
    uint64_t since_asleep_ns; /* time since a tick last saw the thread asleep, ns */
    uint64_t ran_in_ns;       /* length of the last tick in which it ran, ns */
    uint64_t has_waited_ns;   /* time since then, ns */
};

/* Waits for a processor of a thread. */
struct ledger_waits {
    uint64_t delay_ns;      /* all waits, by the kernel's last count, ns */
    uint64_t delay_read_ns; /* time of that reading, which can be long after the start of its tick */
    uint64_t written_ns;    /* the part of DELAY_NS that is written, ns */
    uint64_t preempted_ns;  /* waits after preemptions, by the timer's last count, ns */
    int64_t woken_ns;       /* unwritten waits after wake-ups, ns; negative if the timer's count is ahead */
    uint64_t unknown_ns;    /* unwritten waits after wake-ups or preemptions, ns */
    bool has_delay;         /* true if the start of the kernel's count of waits is known */
    bool has_seen_switch;   /* true if the timer had seen a context switch at the last reading */
};

struct ledger_beginning {
    bool was_there;         /* true if the thread is older than the sampler */
    bool is_new;            /* true for a younger thread that was not scanned yet */
    bool is_first_scan;     /* true if the last scan was the first one */
    bool is_reported;       /* true if the thread has reported its creation, which is SINCE_NS */
    bool has_written_start; /* true if the wait for the first processor is written */
};

/* State of a thread in the present recording. */
struct ledger_records {
    uint32_t number;          /* number of the thread */
    uint32_t written_tick;    /* last tick with a sample */
    bool has_blocked;         /* true if it has a blocked stack, for waits after a wake-up */
    bool has_run;             /* true if it has a stack of CPU time */
    bool has_written_routine; /* true if it has the start routine */
};

/* The account of one thread. */
struct ledger {
    uint64_t cpu_ns;         /* CPU time at the last scan, ns; the caller sets it */
    enum ledger_state state; /* state at the last scan, which continues until the thread runs */
    struct ledger_records records;
    void *sink_data;         /* the sink's own data of the thread */
    uint64_t cpu_written_ns; /* the thread's CPU clock up to which time is written, ns */
    struct ledger_wall wall;
    struct ledger_waits waits;
    struct ledger_beginning beginning;
    struct thread_event life; /* last event that the thread has reported; zeros until then */
};

/* Receiver of what ledgers write. Each function writes one record (recording_layout.h). */
struct ledger_sink {
    void *context;
    void (*sample)(void *context, struct ledger *ledger, struct recording_time time, const struct found_stack *stack);
    void (*more)(void *context, struct ledger *ledger, enum recording_share share, struct recording_time time);
    void (*lost)(void *context, struct ledger *ledger, enum recording_loss cause, struct recording_time time);
    void (*woken)(void *context, struct ledger *ledger, uint64_t wait_ns);
    void (*waiting)(void *context, struct ledger *ledger);
    void (*routine)(void *context, struct ledger *ledger); /* writes LIFE.ROUTINE */
};

/* The open tick, and what is the same for all threads of a recording. */
struct ledger_tick {
    enum recording_mode mode;
    uint64_t period_ns;
    uint64_t recording_start_ns; /* CLOCK_MONOTONIC */
    uint32_t number;             /* number of the tick, from 1 */
    uint64_t start_ns;           /* CLOCK_MONOTONIC */
    uint64_t span_ns;            /* time since the previous tick, ns */
    uint64_t before_ns;          /* start of the last tick, CLOCK_MONOTONIC */
    uint64_t stopped_ns;         /* time since the previous tick for which the process was stopped, ns */
    bool is_starved;             /* true if the sampler thread hardly gets a processor */
    const struct ledger_sink *sink;
    struct routine_table *routines;
};

static inline bool ledger_tick_is_of_cpu_mode(const struct ledger_tick *tick)
{
    return tick->mode == RECORDING_CPU;
}

/* --- Beginning ---------------------------------------------------------------------------------------------------- */

/* Begins with CPU_NS, the clock of a thread that is older than the sampler. Time before that is not written. */
void ledger_open_existing(struct ledger *ledger, uint64_t cpu_ns);
/* Writes CPU_NS and AGE_NS of a process that was forked for its recording as the start of its thread. */
void ledger_open_forked(const struct ledger_tick *tick, struct ledger *ledger, uint64_t cpu_ns, uint64_t age_ns);

/* Begins at the first tick that sees the thread. */
void ledger_open(struct ledger *ledger);

/* Corrects the start of a thread that was scanned before it reported its creation. */
void ledger_note_creation(const struct ledger_tick *tick, struct ledger *ledger);

/* Continues in a new recording, which knows the thread as NUMBER. */
void ledger_begin_recording(struct ledger *ledger, uint32_t number);

/* --- A tick ------------------------------------------------------------------------------------------------------- */

/* Adds the time since the previous tick. Called at each scan that does not leave the thread to its last blocked stack.
 */
void ledger_begin_tick(const struct ledger_tick *tick, struct ledger *ledger);

/* Waits of a thread that have ended since the last count, by what preceded them: a wake-up, or a preemption. Fractions:
 * an open wait of unknown kind. */
struct ended_waits {
    double woken, others;
};

/* Context switches of a thread, as its perf timer has recorded them. */
struct ledger_timer {
    bool is_there;
    bool has_seen_switch;  /* true once it has recorded a switch */
    uint64_t preempted_ns; /* all waits for a processor after preemptions, ns */
};

/* The time that a thread has waited for a processor since it began. */
struct ledger_delay {
    uint64_t ns;      /* the kernel's count, which grows when a wait ends, ns */
    uint64_t read_ns; /* time of the reading, CLOCK_MONOTONIC */
    struct ledger_timer timer;
    const struct ended_waits *waits; /* waits since the last count; NULL: not known */
};

/* Returns true if ledger_note_delay needs WAITS to divide the waits up to DELAY_NS. Not in CPU mode. */
bool ledger_wants_waits(const struct ledger *ledger, uint64_t delay_ns, const struct ledger_timer *timer);

/* Notes how long the thread, which has run since the last scan, waited for a processor. Not in CPU mode. */
void ledger_note_delay(const struct ledger_tick *tick, struct ledger *ledger, const struct ledger_delay *delay);

/* Forgets the counts of a perf timer that is closed. */
void ledger_forget_timer(struct ledger *ledger);

/* Writes STACK for the thread's unwritten CPU time, up to CPU_NS of its clock, and for its waits for a processor,
 * unless IS_OBSERVED: then it is known where these begin. Returns what was written. */
struct recording_time ledger_credit_running(const struct ledger_tick *tick, struct ledger *ledger, uint64_t cpu_ns,
                                            bool is_observed, const struct found_stack *stack);

/* Writes STACK for the thread's waits for a processor alone. Returns what was written. */
struct recording_time ledger_credit_wait(const struct ledger_tick *tick, struct ledger *ledger,
                                         const struct found_stack *stack);

/* Writes STACK for the time that the thread was blocked, and for that of the ticks that follow until it runs.
 * SWITCHING_NS of its CPU time were context switches, which are written here, too. Returns the part of them that was
 * written, ns. */
uint64_t ledger_credit_blocked(const struct ledger_tick *tick, struct ledger *ledger, uint64_t switching_ns,
                               const struct found_stack *stack);

/* Does the same for the time that the thread slept before it was woken. */
uint64_t ledger_credit_sleep(const struct ledger_tick *tick, struct ledger *ledger, uint64_t switching_ns,
                             const struct found_stack *stack);

/* Writes CPU time up to CPU_NS for which there is no stack. */
void ledger_write_lost(const struct ledger_tick *tick, struct ledger *ledger, uint64_t cpu_ns,
                       enum recording_loss cause);

/* Writes blocked time for which the kernel shows no stack. */
void ledger_write_unreadable(const struct ledger_tick *tick, struct ledger *ledger);

/* Returns the unwritten CPU time up to CPU_NS, and the unwritten waits for a processor, ns. */
uint64_t ledger_unwritten_cpu_ns(const struct ledger *ledger, uint64_t cpu_ns);
uint64_t ledger_unwritten_wait_ns(const struct ledger *ledger);

/* Counts the state in which a late tick has found the thread. */
void ledger_note_state(const struct ledger_tick *tick, const struct ledger *ledger);

/* Writes that the open tick's time is written later, unless a sample of it was written. */
void ledger_end_tick(const struct ledger_tick *tick, struct ledger *ledger);

/* --- End ---------------------------------------------------------------------------------------------------------- */

/* The end of a thread. */
struct ledger_end {
    uint64_t unseen_cpu_ns;          /* CPU time after the last scan, ns; CPU_NS of the ledger includes it */
    bool has_timer;                  /* true if a perf timer records its context switches */
    bool is_missing;                 /* true if it had ended at the open tick */
    const struct ended_waits *waits; /* last waits of a thread that has reported its end; NULL: not known */
};

/* Writes the rest of a thread that has ended. This and the next two functions return what they wrote for where the
 * thread ran. */
struct recording_time ledger_close(const struct ledger_tick *tick, struct ledger *ledger, const struct ledger_end *end);

/* Does the same for a thread that has reported when it ended, after ledger_note_creation. */
struct recording_time ledger_close_as_reported(const struct ledger_tick *tick, struct ledger *ledger,
                                               const struct ledger_end *end);

/* Writes all unwritten time to the last stacks, because the thread or the recording ends. */
struct recording_time ledger_write_rest(const struct ledger_tick *tick, struct ledger *ledger, bool has_timer);

#endif
