/* Chooses the signal by which a thread can be asked at this moment.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_CHOICE_H
#define OFFBEAT_SAMPLER_SIGNAL_CHOICE_H

#include "sampler/kernel/proc_files.h"
#include "sampler/source/sample_requests.h"

struct signal_choice {
    bool is_asleep; /* true if a signal would interrupt its system call */
    int number;     /* number of the signal; 0: none may be sent */
    enum stack_reading reading;
    uint64_t sleep_count; /* voluntary context switches */
};

/* Notes which seccomp filters the process inherited. Called on the sampler thread, when it starts. */
void signal_choice_start(void);

/* Reads the kernel's description of the thread of FILES; installs and sends nothing. */
struct signal_choice signal_choose(struct thread_files *files);

#endif
