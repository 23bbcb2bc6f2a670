/* The choice of running processes: by name, user or control group.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PROCESS_CHOICE_H
#define OFFBEAT_CLI_PROCESS_CHOICE_H

#include "base/regexp.h"

#include <stdbool.h>
#include <sys/types.h>

/* Conditions of which a process must meet all. NULL: not given. */
struct process_choice {
    bool takes_all; /* true if all processes are wanted */
    const char *name, *user, *cgroup;
    struct regexp pattern; /* NAME, compiled */
    uid_t user_id;
};

bool process_choice_is_given(const struct process_choice *choice);

/* Prepares CHOICE. Returns false after one line on standard error. process_choice_fini follows in both cases. */
bool process_choice_begin(struct process_choice *choice);
void process_choice_fini(struct process_choice *choice);

/* Returns true if process PID, which is called NAME, is wanted. Never true for a kernel thread and for this process. */
bool process_choice_takes(struct process_choice *choice, pid_t pid, const char *name);

#endif
