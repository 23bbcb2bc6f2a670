/* The waits of threads in a recording of off-CPU time: their samples, and the time of waits without one.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_RECORDING_RECORDED_WAITS_H
#define OFFBEAT_FORMAT_RECORDING_RECORDED_WAITS_H

#include "format/recording/recording_layout.h"
#include "profile/profile.h"

/* Keys of labels. */
#define WAIT_LABEL "wait"
#define WAKER_LABEL "waker"

enum wait_column { WAITS, OFF_CPU, OFF_CPU_RUNNABLE, OFF_CPU_BLOCKED, WAIT_COLUMNS };

/* Description of the next sample of a thread. */
struct recorded_wait {
    bool is_set;
    uint64_t reason;   /* enum recording_wait */
    uint64_t count;    /* number of waits that the sample stands for */
    uint64_t start_ns; /* UTC since 1970 */
    struct string_id waker;
};

/* Waits of a thread without a sample. */
struct recorded_other_waits {
    struct thread_id thread;
    uint64_t short_count, short_ns, left_out_count, left_out_ns;
};

/* Adds the columns to PROFILE. */
void recorded_waits_declare(struct profile *profile);

/* Adds WAIT of TIME as SAMPLE, whose labels are that of the thread's name or none, in pieces of a second, of which
 * *SPLITS_LEFT more may be made. */
void recorded_waits_add(struct profile *profile, struct sample sample, const struct recorded_wait *wait,
                        struct recording_time time, uint64_t *splits_left);

/* Adds the waits without a sample at TIME_NS: those below the threshold at the stack SHORT_STACK; and those that were
 * left out to the samples that stand for them, or at NO_STACK if there are none. */
void recorded_waits_add_others(struct profile *profile, const struct recorded_other_waits *others, size_t count,
                               uint64_t time_ns, struct stack_id short_stack, struct stack_id no_stack);

#endif
