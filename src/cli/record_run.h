/* Runs a program under the sampler, invisible to both it and the program that started us.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_RECORD_RUN_H
#define OFFBEAT_CLI_RECORD_RUN_H

#include "cli/descendants.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct run_options {
    const char *directory;           /* folder of recordings; absolute */
    const char *cache_directory;     /* folder of frame tables; NULL: none */
    const char *library;             /* liboffbeat.so; absolute; NULL: the program is recorded from outside */
    uint64_t (*work)(void *context); /* samples from outside; returns the ns until the next call; may be NULL */
    uint64_t frequency_hz;
    bool shows_interpreter; /* true if stacks keep the native frames of an interpreter */
    uint64_t cpu_max_ppm;   /* part of a processor for each process; 0: the usual part */
    bool is_cpu_mode;
    uint64_t duration_ns; /* 0: as long as it runs */
    bool no_children;
    bool stdout_is_taken; /* standard output is for a profile: the program's output is sent to standard error */
    void (*forked)(void *context,
                   pid_t pid); /* function to call before process PID executes the program; may be NULL */
    void (*started)(void *context,
                    pid_t pid); /* function to call when the program runs, with signals blocked; may be NULL */
    /* Function that writes a profile while the program runs: what was sampled so far, or, if HAS_ENDED, everything,
     * because DURATION_NS are over. Called with signals blocked; NULL: none, and SIGUSR1 is passed on. */
    void (*write)(void *context, bool has_ended);
    void *context;
};

/* The place of PROGRAM as a shell would find it; if IS_PRELOADED, checked that liboffbeat.so can be preloaded into it.
 * NULL after one line on standard error. The caller frees. */
char *run_find_program(const char *program, bool is_preloaded);

/* Takes SIGNALS, which are blocked, at the end of a recording, and those that follow soon if WAS_SIGNALLED: a signal
 * meant for both this process and the program must not end this process before the files are written. timeout(1), for
 * one, signals its child first and then its process group: a signal this soon is not a second request. */
void run_take_signals(const sigset_t *signals, bool was_signalled);

struct run_result {
    int status;          /* status from waitpid */
    uint64_t started_ns; /* CLOCK_MONOTONIC */
    uint64_t wall_ns;
    uint64_t cpu_ns; /* CPU time of the program and of the descendants that were waited for */
};

/* Runs PATH with ARGUMENTS (NULL-terminated, [0] its name) and our standard streams, passes on the signals that come,
 * and waits. Meanwhile DESCENDANTS (may be NULL) notes the processes that the program starts. False, after one line on
 * standard error, if the program could not be started. */
bool run_program(const char *path, char *const *arguments, const struct run_options *options,
                 struct descendants *descendants, struct run_result *ret_result);

/* Makes Ctrl-C and other requests to end this process print WORDS on standard error first, until
 * run_end_without_words. */
void run_end_with_words(const char *words);
void run_end_without_words(void);

/* Ends this process as STATUS says that the program ended: by exit, or by the same signal. */
_Noreturn void run_end_alike(int status);

#endif
