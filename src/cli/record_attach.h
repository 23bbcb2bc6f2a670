/* Records processes that run already, from outside (recorder/).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_RECORD_ATTACH_H
#define OFFBEAT_CLI_RECORD_ATTACH_H

#include "cli/options.h"
#include "cli/process_choice.h"
#include "recorder/recorder.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { ATTACH_PIDS_MAX = 4096 };

struct attach_options {
    struct option_texts pids; /* process numbers, several of them separated by commas */
    struct process_choice choice;
    const char *engine;          /* name of an engine; NULL: the best one that this user may use */
    const char *directory;       /* folder for the recordings */
    const char *image_directory; /* folder where names are looked for by build id */
    const char *cache_directory; /* folder of frame tables; NULL: none */
    uint64_t frequency_hz;
    uint64_t cpu_max_ppm; /* most that this process may use of a processor, millionths; 0: any */
    uint64_t duration_ns; /* 0: until the processes or the user end it */
    bool is_cpu_mode, no_children;
    bool records_waits;   /* true in off-CPU mode */
    uint64_t wait_ns_min; /* duration from which on a wait has a stack */
    bool names_wakers, takes_kernel_stacks;
    bool shows_interpreter; /* true if stacks keep the native frames of an interpreter */
    /* Function that writes a profile of what was recorded so far, at SIGUSR1. */
    void (*write)(void *context);
    void (*started)(void *context); /* called with signals blocked when recording begins; NULL: nobody */
    void *context;
};

struct attachment;

/* Returns true if OPTIONS name processes. */
bool attach_is_wanted(const struct attach_options *options);

/* Finds the processes. Returns NULL after one line on standard error. *RET_NAME is a name for the profile. */
struct attachment *attach_find(struct attach_options *options, char ret_name[PATH_MAX]);

/* Records the processes until they end, the time is over, or Ctrl-C. Returns false after one line on standard error. */
bool attach_run(struct attachment *attachment, struct attach_options *options, uint64_t *ret_wall_ns);

/* Opens the engine for a program that will be started. Returns NULL after one line on standard error. */
struct attachment *attach_open(struct attach_options *options);

/* Begins to record process PID. A line on standard error says why it cannot be recorded. */
void attach_add(struct attachment *attachment, pid_t pid);

/* Samples if it is time. Returns the nanoseconds until the next call; UINT64_MAX if no process is left. */
uint64_t attach_work(struct attachment *attachment);

/* Writes all that was recorded so far to the recordings. */
void attach_flush(struct attachment *attachment);

/* Ends the recordings. */
void attach_end(struct attachment *attachment);

/* Opens a recorder with the best engine that this user may use, or the one called ENGINE. Returns NULL after one line
 * on standard error. */
struct recorder *attach_open_recorder(const struct recorder_options *options, const char *engine);

/* Waits for one of SIGNALS, which are blocked, until UNTIL_NS (CLOCK_MONOTONIC). Returns its number, or 0. */
int attach_await_signal(const sigset_t *signals, uint64_t until_ns);

/* Frees ATTACHMENT, which may be NULL, when the profile is written. */
void attach_free(struct attachment *attachment);

#endif
