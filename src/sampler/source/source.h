/* A source is one way to the stacks of threads. A tick knows nothing else of it than the functions of this table
 * (run/thread_sources.c). Sources do not know the ledger, and not each other: what one has to know of another is in
 * struct source_thread.
 *
 * All run on the sampler thread. A tick that finds a thread awake calls offer, then observe, take until there is
 * nothing more, and want for what is missing. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SOURCE_H
#define OFFBEAT_SAMPLER_SOURCE_H

#include "format/recording/recording_layout.h"
#include "interpreters/interpreter.h"
#include "sampler/kernel/proc_files.h"
#include "sampler/modules/modules.h"
#include "sampler/observe/found_stack.h"
#include "sampler/source/clock_signals.h"
#include "sampler/source/perf_timer.h"
#include "sampler/source/run_queue_waits.h"
#include "sampler/source/sample_credit.h"

/* Work of the open tick that is limited. */
struct tick_spent {
    uint32_t requests;
    uint32_t pages;                     /* perf pages opened */
    uint32_t timers;                    /* perf timers opened */
    uint32_t switch_counts;             /* threads whose context switches were counted */
    uint32_t first_scans;               /* threads whose first stack was read */
    struct modules_budget table_budget; /* time for tables that a walk waits for */
};

/* Limits and lengths of timers and requests. */
struct timer_limits {
    uint64_t full_at;        /* number of perf timers when the kernel refused one more; 0: it has not */
    uint32_t factor;         /* multiple of the period that perf timers use, because ticks are left out */
    uint64_t kernel_tick_ns; /* kernel tick of timers on CPU clocks, ns; 0: there are no such timers */
    uint64_t signal_ns;      /* CPU time that one of their signals stands for, ns */
    uint32_t requests_in_tick_max;
};

/* The open tick, as sources see it. */
struct source_tick {
    enum recording_mode mode;
    uint64_t period_ns;
    uint64_t begin_ns;       /* start of the sampler, CLOCK_MONOTONIC */
    uint64_t start_ns;       /* start of the tick, CLOCK_MONOTONIC */
    uint32_t number;         /* number of the tick, from 1 */
    uint32_t ticks_a_second; /* ticks in a second, those that are left out included */
    uint32_t periods;        /* periods that the tick stands for; a factor for all limits of a tick */
    bool is_late;            /* true if the tick comes late, or periods without a tick precede it */
    bool is_starved;         /* true if the sampler thread hardly gets a processor */
    struct timer_limits *limits;
    struct tick_spent *spent;
    uint64_t *random_state;
    uint64_t *counters; /* counters of the recording, by enum recording_counter */
    struct modules *modules;
    struct recording_writer *writer;
};

/* The account of a thread, as the ledger has it at the moment of a call. */
struct source_account {
    uint64_t cpu_ns;            /* CPU time at the last scan, ns */
    uint64_t written_cpu_ns;    /* the thread's CPU clock up to which time is written, ns */
    uint64_t delay_ns;          /* all waits for a processor, ns */
    uint64_t unwritten_wait_ns; /* the part of them that is not written, ns */
    uint32_t requests_max;      /* requests after which this thread is sent none in the open tick */
    bool has_run;               /* true if it has a stack of CPU time */
    bool is_first_scan;         /* true if the last scan was the first one */
};

/* CPU time that the source cannot have a stack for. */
struct source_loss {
    bool is_there;
    enum recording_loss cause;
    uint64_t cpu_ns; /* the thread's CPU clock up to which it is lost, ns */
};

/* The perf timer of a thread's CPU time, as all sources see it (shared_timer.h). */
struct shared_timer {
    const struct perf_timer *open; /* NULL: there is none */
    uint32_t stack_size;           /* bytes that its timer copies; 0: unknown; over the maximum: it gets no timer */
    bool has_large_stack;          /* true if a copy was once too small */
    bool is_running;               /* true if the thread runs, by a timer that sees all */
};

/* The last time that a thread was seen to have slept. */
struct seen_sleep {
    uint64_t count;  /* voluntary context switches when a signal was last considered */
    uint64_t cpu_ns; /* CPU time when a signal was first considered with that count, ns */
};

/* The thread, as sources see it, and what they tell one another of it. */
struct source_thread {
    struct thread_files *files;
    uint64_t clock_ns; /* CPU clock, last read, ns */
    struct source_account account;
    struct source_loss lost; /* set by a call that has found time to be lost */
    struct shared_timer timer;
    struct sample_credit credit;
    struct run_queue_waits waits;
    struct sample_request *asked;    /* open request to the thread; NULL: there is none */
    uint64_t asked_cpu_ns;           /* CPU time at the last request, ns */
    uint64_t no_signal_until_cpu_ns; /* CPU time until which no signal is sent, after it was in sigwait, ns */
    struct seen_sleep last_sleep;
    struct sample_request *clock;          /* request for signals of its CPU clock; NULL: there are none */
    struct clock_reading clock_read;       /* state at the last reading of these */
    uint32_t ticks_without_table;          /* ticks since the last stack at which a walk met a new module */
    struct interpreted_thread interpreted; /* STATE 0: no interpreter runs it */
};

enum {
    SOURCE_PERIODS_TO_WAIT = 4, /* periods of CPU time to wait for a timer or a reply before another way is tried */
    SOURCE_LASTING_NS = 50000,  /* CPU time after which a thread is not about to sleep again, ns */
};

/* Returns the CPU time up to CPU_NS that is not written, ns. */
static inline uint64_t source_unwritten_ns(const struct source_thread *thread, uint64_t cpu_ns)
{
    return cpu_ns > thread->account.written_cpu_ns ? cpu_ns - thread->account.written_cpu_ns : 0;
}

enum source_sight {
    SOURCE_SEES_WAITS,   /* it has stacks where a wait for a processor began */
    SOURCE_SEES_RUNNING, /* it has stacks of CPU time, and the sampler thread asks nobody */
    SOURCE_SEES_BLOCKED, /* it has the stack of a thread that is blocked */
    SOURCE_ASKS,         /* it asks the thread for its stack */
};

enum source_offer {
    SOURCE_HAS,       /* there is a stack */
    SOURCE_WILL_HAVE, /* one comes without more being done */
    SOURCE_NO,        /* none comes unless it is wanted */
    SOURCE_DENIED,    /* none can come */
};

enum source_need {
    SOURCE_FOR_NOTHING,
    SOURCE_FOR_CPU_TIME,      /* the thread runs, and has run for long enough to deserve a timer */
    SOURCE_FOR_LONG_WAIT,     /* the thread waits for a processor, and timers are to see it when it has one */
    SOURCE_WITHOUT_SIGNAL,    /* the thread can receive no signal */
    SOURCE_NOW,               /* the thread runs, and is not about to sleep */
    SOURCE_NOW_UNLESS_ASLEEP, /* the thread was awake, but may be about to sleep */
    SOURCE_WHERE_IT_WAITS,    /* the thread waits for a processor: its stack there is wanted */
};

enum source_end {
    SOURCE_END_ASLEEP, /* the thread has not run for a while */
    SOURCE_END_GONE,   /* the thread has ended */
    SOURCE_END_ASIDE,  /* the sampler thread ends, and another one continues */
};

enum source_stack_kind {
    SOURCE_STACK_NONE,    /* nothing to write */
    SOURCE_STACK_RUNNING, /* for CPU time up to CPU_NS */
    SOURCE_STACK_WAIT,    /* for waits for a processor */
    SOURCE_STACK_BLOCKED, /* where the thread is blocked */
    SOURCE_STACK_SLEPT,   /* where the thread slept until it was woken */
};

struct source_stack {
    enum source_stack_kind kind;
    struct found_stack found; /* valid until the next call of any source */
    uint64_t cpu_ns;          /* the thread's CPU clock up to which it stands for CPU time, ns */
};

/* Functions that a source does not need are NULL. STATE is its own, of STATE_BYTES, zeros at first. */
struct source {
    enum source_sight sight;
    size_t state_bytes;
    /* Finds out what is possible. Called once, on the thread that starts the sampler. */
    void (*prepare)(struct source_tick *tick);
    /* Says what is to be expected, and ends what can bring no stack. */
    enum source_offer (*offer)(struct source_tick *tick, struct source_thread *thread, void *state);
    /* Fetches what was taken since the last call. Precedes take. */
    void (*observe)(struct source_tick *tick, struct source_thread *thread, void *state);
    /* Takes the next stack: SOURCE_HAS. SOURCE_WILL_HAVE: it needs a table that is being built. */
    enum source_offer (*take)(struct source_tick *tick, struct source_thread *thread, void *state,
                              struct source_stack *ret);
    /* Tries to have a stack come later, if that is worth its cost. */
    enum source_offer (*want)(struct source_tick *tick, struct source_thread *thread, void *state,
                              enum source_need need);
    /* Returns the number of periods for which it sees all that THREAD does, if that goes on as in the open tick. */
    uint64_t (*room)(struct source_tick *tick, struct source_thread *thread, void *state);
    void (*forget)(struct source_tick *tick, struct source_thread *thread, void *state, enum source_end end);
};

/* All sources, the one that disturbs programs least first; NULL at the end. */
enum { SOURCES_MAX = 8 };
extern const struct source *const sources[];

#endif
