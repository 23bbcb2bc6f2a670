/* Commands by which threads of the program control the sampler thread, and how they wait for it.
 *
 * The sampler thread looks at the commands before each tick; a command wakes it. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLER_LIFECYCLE_H
#define OFFBEAT_SAMPLER_SAMPLER_LIFECYCLE_H

#include "sampler/kernel/vdso_clock.h"
#include "sampler/sampler.h"

#include <stdatomic.h>

enum lifecycle_command {
    COMMAND_STOP = 1,       /* end the recording and the thread */
    COMMAND_STEP_ASIDE = 2, /* end the thread; another one continues with the recording */
    COMMAND_FOLLOW = 4,     /* take over the rights of the program's first thread */
    COMMAND_FLUSH = 8,      /* write all that is known */
};

/* State that both sides share. The words of 32 bits are futexes. */
struct lifecycle {
    _Atomic uint32_t commands;                /* enum lifecycle_command */
    _Atomic uint32_t gone;                    /* 1: all is written, and the thread is about to end */
    _Atomic uint32_t ready;                   /* 1: the thread has its own descriptor table */
    _Atomic uint32_t follow_wanted, followed; /* numbers of COMMAND_FOLLOW: last requested, last done */
    _Atomic uint32_t flush_wanted, flushed;   /* numbers of COMMAND_FLUSH: last requested, last done */
    _Atomic uint32_t is_too_late;             /* 1: the thread did not follow in time */
    _Atomic uint32_t sampler_starved;         /* 1: the thread hardly gets a processor */
    _Atomic uint64_t stop_ns;                 /* time of COMMAND_STOP, CLOCK_MONOTONIC; 0: it was not given */
};

extern struct lifecycle lifecycle;

void futex_set(_Atomic uint32_t *word); /* sets WORD to 1 and wakes all waiting threads */

/* --- sampler_thread.c: what the thread does ----------------------------------------------------------------------- */

/* Descriptor of the recording for the next thread, which checks that it still is this file. */
struct handed_file {
    int descriptor; /* -1: none */
    uint64_t device, inode;
};

bool sampler_prepare(const struct sampler_options *options);
const struct sampler_options *sampler_present_options(void);
uint64_t sampler_end_ns(void); /* end of all ticks, CLOCK_MONOTONIC; UINT64_MAX: not limited */
void sampler_forget_finished(void);
void sampler_prepare_resume(struct handed_file file);
void sampler_expect_end(enum recording_end reason); /* sets the reason of the end if the thread never comes back */
const char *sampler_recording_path(void);
int sampler_run(void *unused);
bool sampler_has_finished(void); /* true if the thread ended by its own decision */
bool sampler_ended_by_filter(void);
bool sampler_is_worth_a_flush(void); /* true if it has run for longer than the ticks at a start take */
/* Finishes the recording on a thread of the program, while there is no sampler thread. */
void sampler_finish_in_its_place(int descriptor);

#endif
