/* Finds out where threads wait for a processor. Mostly they wait where they run, so that the stacks of their CPU time
 * can stand for their waits, too. There are two exceptions: the ends of system calls, at which the kernel often stops a
 * thread, and long waits, during which the kernel takes no other stack. So a thread that waits much gets a timer that
 * sees its stops (stop_source.c); without the right to one it is sent a signal when a tick sees it waiting, which
 * arrives where it was stopped. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RUN_QUEUE_WAITS_H
#define OFFBEAT_SAMPLER_RUN_QUEUE_WAITS_H

#include <stdbool.h>
#include <stdint.h>

struct source_tick;
struct source_thread;

enum { LONG_WAIT_NS = 8000000 }; /* a wait that is long enough to deserve its own stack, ns */

struct run_queue_waits {
    bool are_where_it_runs; /* true if all observed waits began where the thread spends its CPU time */
    bool have_timer;        /* true if a stop timer observes them */
    uint32_t seen;          /* observed waits since the last decision */
    uint32_t elsewhere;     /* the part of SEEN that was in calls, or long */
    uint32_t until_tick;    /* tick until which waits are not observed, because they are where the thread runs */
    uint32_t seconds_alone; /* length of that pause, s */
    bool is_asked;          /* true if the thread gets a signal when it is seen waiting, for lack of a stop timer */
    bool has_replied;       /* true if such a signal had a reply */
    uint32_t unsent;        /* such signals in a row that could not be sent */
};

/* Returns true if THREAD's waits are observed, so that other stacks do not stand for them. IS_STARVED: the sampler
 * thread hardly gets a processor, and does not see threads at random moments. */
bool run_queue_waits_are_seen(const struct source_thread *thread, bool is_starved);

/* Notes where a wait began that was observed. */
void run_queue_waits_note_place(struct run_queue_waits *waits, bool is_elsewhere);

/* Returns true if THREAD has no right to a stop timer, and is to be asked by a signal when it is seen waiting. */
bool run_queue_waits_are_asked(const struct source_thread *thread);
void run_queue_waits_note_request(const struct source_tick *tick, struct source_thread *thread, bool is_sent);
void run_queue_waits_note_reply(struct source_thread *thread, bool was_in_call);

/* Observes no waits of THREAD for a while, each time for twice as long: a program may change its behaviour. */
void run_queue_waits_leave_alone(const struct source_tick *tick, struct source_thread *thread);

#endif
