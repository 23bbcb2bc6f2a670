/* What threads of the program ask of the sampler thread, and how they wait for it.
 *
 * The sampler thread looks at the commands before each tick; a command wakes it. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLER_LIFECYCLE_H
#define OFFBEAT_SAMPLER_SAMPLER_LIFECYCLE_H

#include "sampler/sampler.h"

#include <stdatomic.h>

enum lifecycle_command {
    COMMAND_STOP = 1,       /* end the recording and the thread */
    COMMAND_STEP_ASIDE = 2, /* end the thread; another one continues with the recording */
    COMMAND_FOLLOW = 4,     /* take over the rights of the program's first thread */
    COMMAND_FLUSH = 8,      /* write all that is known */
};

/* Futexes. */
struct lifecycle {
    _Atomic uint32_t commands;
    _Atomic uint32_t gone;  /* 1: all is written, and the thread is about to end */
    _Atomic uint32_t ready; /* 1: the thread has its own descriptor table */
    _Atomic uint32_t follow_wanted, followed;
    _Atomic uint32_t flush_wanted, flushed;
    _Atomic uint32_t is_too_late;     /* it did not follow in time */
    _Atomic uint32_t sampler_starved; /* it hardly gets a processor */
    _Atomic uint64_t stop_ns;         /* when it was to stop; 0: it was not */
};

extern struct lifecycle lifecycle;

void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t deadline_ns);
void futex_wake(_Atomic uint32_t *word);
void futex_set(_Atomic uint32_t *word); /* to 1, and wakes */

/* --- sampler.c: what the thread does ------------------------------------------------------------------------------ */

/* A descriptor of the recording that the next thread takes over, if it is still this file. */
struct handed_file {
    int descriptor; /* -1: none */
    uint64_t device, inode;
};

bool sampler_prepare(const struct sampler_options *options);
const struct sampler_options *sampler_present_options(void);
void sampler_forget_finished(void);
void sampler_prepare_resume(struct handed_file file);
void sampler_expect_end(enum recording_end reason); /* what the recording says if the thread never comes back */
const char *sampler_recording_path(void);
int sampler_run(void *unused);
bool sampler_has_finished(void); /* by its own decision */
bool sampler_ended_by_filter(void);
bool sampler_is_worth_a_flush(void);              /* it has run for longer than the ticks at a start take */
void sampler_finish_in_its_place(int descriptor); /* on a thread of the program, while there is no sampler thread */

#endif
