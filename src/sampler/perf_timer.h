/* The kernel takes the stack of a thread that runs: a timer of the thread's own CPU time (perf's cpu-clock event) goes
 * off on its own processor and copies its registers and the top of its stack into memory that it shares with us. That
 * is exact where a signal is not: a signal from another processor is seen at once by a thread that is inside the
 * kernel, but some 10 µs later by one that is not, and bursts of user code that are shorter are reported as the system
 * call that follows them. It wakes nobody and breaks no wait off. To see time inside the kernel, it needs the right to
 * look there (perf_event_paranoid of at most 1, or CAP_PERFMON). With perf_event_paranoid 2 anybody may have a timer
 * that takes a stack only if it goes off while its thread runs user code. SPDX-License-Identifier: MIT */
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
};

/* When the thread began to run, or stopped. */
struct perf_timer_switch {
    uint64_t time_ns;
    bool is_stop;
    bool was_preempted; /* it stopped in favour of others */
    bool is_in_call;    /* in which it was asleep: it has run for moments only since it was woken */
};

struct perf_timer {
    struct perf_event_mmap_page *control; /* NULL: there is none */
    int descriptor;                       /* of one that takes a sample when it is asked to; else -1 */
    bool is_asked;                        /* and has not yet taken it */
    bool is_free;                         /* it takes one each period, from its first one on */
    size_t ring_size;
    uint32_t stack_size;
    uint64_t head;                   /* of the newest record that was read */
    uint64_t sample_end;             /* where the sample that was given out last ends */
    bool has_seen_switch;            /* since it runs freely; before, switches are missing */
    struct perf_timer_switch newest; /* that was read; {0}: none */
    uint32_t sleeps;                 /* how often it gave its processor up voluntarily, by what was read last */
    uint64_t preempted_ns;           /* for which it had to wait for a processor after it was stopped so, in all */
    struct perf_timer_rate {
        double stops, ns; /* averages of what was read at once */
    } rate;
    enum perf_timer_sight sight;
};

/* A sample each PERIOD_NS of TID's CPU time, with up to STACK_SIZE bytes of stack (a power of two), in RING_SIZE bytes
 * (the next power of two), in which later samples are written over earlier ones; no descriptor stays open. With a
 * period of 0 one whenever it is asked for. One that sees stops takes one each PERIOD_NS stops. The last three keep a
 * descriptor, and need a table of our own for it (process_own_descriptors). 0, or the errno with which the kernel
 * denies it. */
int perf_timer_open(struct perf_timer *timer, pid_t tid, enum perf_timer_sight sight, uint64_t period_ns,
                    uint32_t stack_size, uint32_t ring_size);
/* How many samples its memory holds. */
uint32_t perf_timer_room(const struct perf_timer *timer);
/* How long the timer has been active, if it keeps a descriptor: its thread's CPU time without the context switches. */
bool perf_timer_active_ns(const struct perf_timer *timer, uint64_t *ret_ns);

/* From now on a sample each PERIOD_NS of the thread's CPU time (stops), without being asked. Again to change that. */
void perf_timer_run_freely(struct perf_timer *timer, uint64_t period_ns);

void perf_timer_close(struct perf_timer *timer); /* accepts {0} */

/* Has it take a sample when its thread has run for 10 µs more; nothing, if it has yet to take one. */
void perf_timer_ask(struct perf_timer *timer);

enum { PERF_TIMER_NEWS_MAX = 31 };

struct perf_timer_news {
    uint32_t count;                          /* new samples; the newest are still there, at most PERF_TIMER_NEWS_MAX */
    uint32_t kept_count;                     /* of these */
    uint64_t positions[PERF_TIMER_NEWS_MAX]; /* newest first */
};

struct perf_timer_sample {
    const struct perf_timer *timer; /* that took it */
    uint64_t time_ns;               /* CLOCK_MONOTONIC */
    struct unwind_registers registers;
    const uint64_t *stack; /* from SP on; in memory that the kernel writes to */
    size_t stack_bytes;
};

/* Reads what is new: how long the thread was preempted, and where its samples are. How many of them there are. */
uint32_t perf_timer_read(struct perf_timer *timer, struct perf_timer_news *ret_news);

/* Sample NUMBER (oldest first) of NEWS. It is good until the next call. False if it was written over. */
bool perf_timer_sample(struct perf_timer *timer, const struct perf_timer_news *news, uint32_t number,
                       struct perf_timer_sample *ret_sample);

/* Of a timer that sees stops: what it took where a wait for a processor began that has ended since. */
struct perf_timer_stops {
    uint32_t count;    /* all samples, also where the thread went to sleep */
    uint64_t wait_ns;  /* of the waits that begin at one of them */
    uint64_t position; /* of one of these, by chance: the longer its wait, the likelier */
    uint64_t its_wait_ns;
};
void perf_timer_read_stops(struct perf_timer *timer, uint64_t *random_state, struct perf_timer_stops *ret_stops);

/* The sample that was chosen. False if there is none, or it was written over. */
bool perf_timer_stop(struct perf_timer *timer, const struct perf_timer_stops *stops,
                     struct perf_timer_sample *ret_sample);

/* Stops of the thread in PERIOD_NS, by what a timer of its CPU time has read; 0 if nothing is known yet. */
double perf_timer_stops_in(const struct perf_timer *timer, uint64_t period_ns);

/* False if the kernel has written over the sample that was given out last. */
bool perf_timer_holds(const struct perf_timer *timer);

#endif
