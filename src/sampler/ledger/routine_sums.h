/* Statistics of threads by start routine: threads that were observed stand for others of their routine.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_ROUTINE_SUMS_H
#define OFFBEAT_SAMPLER_ROUTINE_SUMS_H

#include <stddef.h>
#include <stdint.h>

enum { ROUTINES_MAX = 64 };

/* Waits for a processor of all threads of a routine. */
struct routine_waits {
    uint64_t timed_ns;           /* waits that a perf timer saw, ns */
    uint64_t timed_preempted_ns; /* the part of TIMED_NS after preemptions, ns */
    double woken;                /* waits after wake-ups, by the kernel's count of context switches */
    double others;               /* waits after preemptions, by that count */
    uint64_t late_ticks;         /* threads that late ticks saw */
    uint64_t late_ticks_asleep;  /* threads that late ticks saw asleep */
};

/* Time of ended threads of a routine that no tick saw and no record has reported yet, ns. */
struct routine_unwritten {
    uint64_t cpu_ns, blocked_ns;
    uint64_t preempted_ns;  /* waits for a processor after a preemption, ns */
    uint64_t woken_ns;      /* waits for a processor after a wake-up, ns */
    uint64_t start_wait_ns; /* waits for the first processor, ns */
    uint32_t ends;          /* number of these threads */
};

/* Time without a processor, blocked or waiting, that is not divided yet, of threads that no tick saw. */
struct routine_off_time {
    uint64_t ns;
    uint64_t sleeps;      /* voluntary context switches in it */
    uint64_t preemptions; /* other context switches in it */
};

struct routine_sums {
    uint64_t routine; /* address of the start routine; 0: unknown, or one of too many */
    struct routine_unwritten unwritten;
    struct routine_off_time off;
    uint64_t seen_off_ns;   /* time without a processor of threads that a tick saw, ns */
    uint64_t seen_delay_ns; /* the part of SEEN_OFF_NS that they waited for a processor, ns */
    struct routine_waits waits;
};

struct routine_table {
    struct routine_sums items[ROUTINES_MAX]; /* sums; the last one is for all further routines */
    size_t count;
};

/* Returns the sums of ROUTINE. All routines that find no free entry share the last one. */
struct routine_sums *routine_sums_of(struct routine_table *table, uint64_t routine);

#endif
