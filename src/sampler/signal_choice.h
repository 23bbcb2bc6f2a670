/* Which signal a thread can be asked by, at this moment.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_CHOICE_H
#define OFFBEAT_SAMPLER_SIGNAL_CHOICE_H

#include "sampler/sample_requests.h"
#include "sampler/threads.h"

struct signal_choice {
    bool is_asleep; /* the signal would break its system call off */
    int number;     /* 0: no signal may be sent to it */
    enum stack_reading reading;
    uint64_t sleep_count; /* how often it has gone to sleep */
};

/* Notes which seccomp filters the process inherited. On the sampler thread, when it starts. */
void signal_choice_start(void);

/* Reads what the kernel says of THREAD; nothing is installed or sent. */
struct signal_choice signal_choose(struct target_thread *thread);

#endif
