/* The kernel takes the stack of a thread that runs: a timer of the thread's own CPU time (perf's cpu-clock event) goes
 * off on its own processor and copies its registers and the top of its stack into memory that it shares with us. That
 * is exact where a signal is not: a signal from another processor is seen at once by a thread that is inside the
 * kernel, but some 10 µs later by one that is not, and shorter bursts of user code are attributed to the following
 * system call. The timer wakes no thread and interrupts no wait. To see time inside the kernel, it needs a right
 * (perf_event_paranoid of at most 1, or CAP_PERFMON). With perf_event_paranoid 2 any user may have a timer that takes a
 * stack only if it goes off while its thread runs user code. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PERF_TIMER_H
#define OFFBEAT_SAMPLER_PERF_TIMER_H

#include "unwind/machine.h"

#include <sys/types.h>

enum perf_timer_sight {
    PERF_TIMER_SEES_ALL,
    PERF_TIMER_SEES_USER_CODE,
    PERF_TIMER_SEES_STOPS, /* not its CPU time: it takes a stack where its thread loses its processor */
};

enum {
    PERF_TIMER_STACK_MIN = 4 << 10,
    PERF_TIMER_STACK_MAX = 63 << 10, /* the kernel drops a record of more than 64 KB */
    PERF_TIMER_NEWS_MAX = 31,
};

/* A context switch: the thread begins to run, or stops. */
struct perf_timer_switch {
    uint64_t time_ns;
    bool is_stop;
    bool was_preempted; /* true if it stopped in favour of others */
    bool is_in_call;    /* true if it is still in the call in which it slept, and has run for moments only */
};

struct perf_timer {
    struct perf_event_mmap_page *control; /* NULL: there is no timer */
    enum perf_timer_sight sight;
    int descriptor;       /* descriptor of a timer that is controlled after it was opened; else -1 */
    bool is_asked;        /* true if it was asked for a sample and has not taken it */
    bool is_free;         /* true if it takes a sample each period */
    size_t control_bytes; /* size of the page before the ring */
    size_t ring_size;
    uint32_t stack_size;
    uint64_t head;                   /* position of the newest record that was read */
    uint64_t sample_end;             /* position of the end of the sample that was decoded last */
    bool has_seen_switch;            /* true once it runs freely and has recorded a switch */
    struct perf_timer_switch newest; /* newest switch that was read; {0}: none */
    uint32_t sleeps;                 /* voluntary context switches in the last reading */
    uint64_t preempted_ns;           /* all waits for a processor after preemptions, ns */
    struct perf_timer_rate {
        double stops, ns; /* moving averages of a reading: stops, and the time that it covers, ns */
    } rate;
};

/* Opens a timer that takes a sample each PERIOD_NS of TID's CPU time (or each PERIOD_NS stops), with up to STACK_SIZE
 * bytes of stack (a power of two), in RING_SIZE bytes (rounded up to a power of two), in which later samples overwrite
 * earlier ones. A PERIOD_NS of 0 is a timer that takes a sample only when it is asked for one. Only a timer that sees
 * all and has a period keeps no descriptor; the others need a table of our own for it (process_own_descriptors).
 * Returns 0, or the errno with which the kernel denies it. */
int perf_timer_open(struct perf_timer *timer, pid_t tid, enum perf_timer_sight sight, uint64_t period_ns,
                    uint32_t stack_size, uint32_t ring_size);
/* Returns how many samples the timer's memory holds. */
uint32_t perf_timer_room(const struct perf_timer *timer);
/* Reads how long the timer has been active: its thread's CPU time without context switches. Needs a descriptor. */
bool perf_timer_active_ns(const struct perf_timer *timer, uint64_t *ret_ns);

/* Has the timer take a sample each PERIOD_NS of CPU time (or stops) without being asked, or changes that period. */
void perf_timer_run_freely(struct perf_timer *timer, uint64_t period_ns);

void perf_timer_close(struct perf_timer *timer); /* accepts {0} */

/* Has the timer take a sample when its thread has run for 10 µs more, unless it has yet to take one. */
void perf_timer_ask(struct perf_timer *timer);

struct perf_timer_news {
    uint32_t count;                          /* new samples */
    uint32_t kept_count;                     /* samples that are still in memory, at most PERF_TIMER_NEWS_MAX */
    uint64_t positions[PERF_TIMER_NEWS_MAX]; /* positions of these, newest first */
};

struct perf_timer_sample {
    const struct perf_timer *timer; /* timer that took it */
    uint64_t time_ns;               /* CLOCK_MONOTONIC */
    struct unwind_registers registers;
    const uint64_t *stack; /* copy of the stack from SP on, in memory that the kernel writes to */
    size_t stack_bytes;
};

/* Reads the new records: waits after preemptions, and where the samples are. Returns how many are still in memory. */
uint32_t perf_timer_read(struct perf_timer *timer, struct perf_timer_news *ret_news);

/* Decodes sample NUMBER (oldest first) of NEWS, which is valid until the next call. Returns false if the kernel has
 * overwritten it. */
bool perf_timer_sample(struct perf_timer *timer, const struct perf_timer_news *news, uint32_t number,
                       struct perf_timer_sample *ret_sample);

/* Samples of a timer that sees stops, where waits for a processor began that have ended. */
struct perf_timer_stops {
    uint32_t count;       /* all samples, also where the thread went to sleep */
    uint64_t wait_ns;     /* waits that began at one of them, ns */
    uint64_t position;    /* position of one of these, chosen at random in proportion to the waits */
    uint64_t its_wait_ns; /* wait that began there, ns */
};
void perf_timer_read_stops(struct perf_timer *timer, uint64_t *random_state, struct perf_timer_stops *ret_stops);

/* Decodes the chosen sample. Returns false if there is none, or the kernel has overwritten it. */
bool perf_timer_stop(struct perf_timer *timer, const struct perf_timer_stops *stops,
                     struct perf_timer_sample *ret_sample);

/* Returns the number of stops of the thread in PERIOD_NS, by the readings of a timer of its CPU time; 0: unknown. */
double perf_timer_stops_in(const struct perf_timer *timer, uint64_t period_ns);

/* Returns false if the kernel has overwritten the sample that was decoded last. */
bool perf_timer_holds(const struct perf_timer *timer);

#endif
