/* The state of the sampler thread.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLER_STATE_H
#define OFFBEAT_SAMPLER_SAMPLER_STATE_H

#include "sampler/ledger/ledger.h"
#include "sampler/modules/modules.h"
#include "sampler/source/sample_requests.h"
#include "sampler/sampler.h"
#include "sampler/run/sampler_lifecycle.h"
#include "sampler/observe/thread_events.h"
#include "sampler/run/threads.h"

enum { SHORT_LIVED_BEGUN_MAX = 1024, SAMPLER_URGENT_HZ_MAX = 1000 };

/* Threads that live between two ticks. */
struct short_lived_threads {
    struct routine_table routines;
    size_t begun_count;
    struct thread_event begun[SHORT_LIVED_BEGUN_MAX]; /* begin events of threads that were not listed yet */
};

/* When ticks come, and the place of the open tick in that. */
struct tick_schedule {
    uint32_t ticks_a_second;
    uint64_t period_start_ns, length_ns; /* period in which the next tick falls: CLOCK_MONOTONIC and length, ns */
    uint64_t left_out;                   /* periods that had no tick because ticks cost too much, since UNCOUNTED_NS */
    uint64_t spared;                     /* periods that had no tick because all threads sleep, since UNCOUNTED_NS */
    uint64_t uncounted_ns;    /* start of the first period that the recording does not count yet, CLOCK_MONOTONIC, ns */
    uint64_t tick_cost_ns;    /* moving average of the CPU time of a tick, ns */
    uint64_t deadline_ns;     /* start of the next tick, CLOCK_MONOTONIC */
    uint64_t end_ns;          /* end of all ticks, CLOCK_MONOTONIC */
    uint32_t periods_in_tick; /* periods that the tick stands for; a factor for all limits of a tick */
    bool is_late;             /* true if the tick comes late, or periods without a tick precede it */
    bool is_steady;           /* true if each thread continues what it did at the previous tick */
    uint64_t steady_periods;  /* periods in a row with IS_STEADY */
    uint64_t periods_with_room; /* periods whose samples fit into the memory of every timer */
};

/* State of the process when the sampler was started. */
struct sampler_start {
    uint64_t ns;            /* CLOCK_MONOTONIC */
    uint64_t age_ns;        /* age of a forked process, ns; else 0 */
    pid_t thread;           /* thread that called sampler_start */
    uint64_t thread_cpu_ns; /* CPU time of THREAD, ns */
    uint64_t thread_sleeps; /* voluntary context switches of THREAD; UINT64_MAX: unknown */
    uint64_t process_cpu_ns;
    uint64_t system_cpu_ns; /* CPU time of the process inside the kernel, ns */
    bool may_ask_usage;     /* true if the seccomp filters allow FILTER_USAGE */
};

/* Work that is done from time to time. */
struct sampler_chores {
    bool has_news;           /* true if a sample was written since the last flush */
    bool has_unread_names;   /* true if names of threads that ran remain to be read */
    uint32_t name_refreshes; /* ticks that still have to read names */
    uint64_t second_due_ns;  /* next work of each second, CLOCK_MONOTONIC */
    uint64_t names_due_ns;   /* next reading of names, CLOCK_MONOTONIC */
    uint64_t flushed_ns;     /* last flush, CLOCK_MONOTONIC */
    uint64_t followed_ns;    /* last reading of the program's rights, CLOCK_MONOTONIC */
};

/* The end, and stepping aside. */
struct sampler_ending {
    enum recording_end reason, reason_if_away;
    bool is_ending, has_finished;
    bool is_resumed;         /* true if this thread continues the work of one that stepped aside */
    bool begins_again;       /* true if it does so in a new recording */
    uint64_t aside_since_ns; /* CLOCK_MONOTONIC */
    struct handed_file handed;
};

/* CPU time that is not in the ledger of a listed thread. */
struct unlisted_cpu {
    uint64_t ended_ns;  /* CPU time of threads that ended, ns */
    uint64_t unseen_ns; /* CPU time of ended threads after their last scan, as of UNSEEN_TICK, ns */
    uint32_t unseen_tick;
    uint64_t own_ns;       /* CPU time of the sampler thread a second ago, ns */
    uint64_t own_delay_ns; /* time that the sampler thread had waited for a processor, last read, ns */
    uint64_t measured_ns;  /* CPU time of the sampler thread at the end of the last tick, ns */
};

struct sampler {
    struct sampler_options options;
    uint64_t random_state;
    uint64_t counters[RECORDING_COUNTER_COUNT];
    struct threads threads;
    struct modules modules;
    struct recording_writer *writer;
    struct sampler_start start;
    struct tick_schedule schedule;
    struct ledger_tick tick;
    struct tick_spent spent;
    struct timer_limits timers;
    struct sampler_chores chores;
    struct sampler_ending ending;
    struct short_lived_threads short_lived_threads;
    struct unlisted_cpu cpu;
};

static inline bool sampler_is_cpu_mode(const struct sampler *sampler)
{
    return sampler->tick.mode == RECORDING_CPU;
}

#endif
