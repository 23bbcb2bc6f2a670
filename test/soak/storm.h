/* Shared by the storms. A storm is a program's life at its worst, for some seconds: it does things that a sampler in
 * its process could upset, and checks all the while that they come out right.  SPDX-License-Identifier: MIT */
#ifndef TEST_SOAK_STORM_H
#define TEST_SOAK_STORM_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* A check that does not hold ends the program with status 1 and a line that says where. */
#define CHECK(condition) ((condition) ? (void)0 : storm_fail(__FILE__, __LINE__, #condition))
void storm_fail(const char *file, int line, const char *what) __attribute__((noreturn, cold));

/* Says something of interest that is no failure; the runner shows it. */
void storm_note(const char *name, long long number);

bool storm_continues(void);
int storm_seconds_left(void);
uint64_t now_ns(void);
void sleep_ns(uint64_t duration_ns);

/* Some 20 µs of work down a recursion, and whether it came out right. */
void storm_work(unsigned seed);

/* Threads that work until the storm is over, beside what it does; some sleep now and then. */
enum { CROWD_MAX = 16 };
void storm_crowd(unsigned count);
void storm_crowd_join(void);

/* Waits for CHILD, which must call exit (or be killed: the next function). */
void storm_expect_exit(pid_t child, int status);
void storm_expect_signal(pid_t child, int number);

pthread_t storm_thread(void *(*run)(void *), void *argument);
void storm_join(pthread_t thread);

/* This program, to be started again; and where the plugins are. */
extern const char *storm_program, *storm_folder;

struct storm {
    const char *name;
    void (*run)(void);
};
/* One table a file, ending with {0}. */
extern const struct storm storms_of_limits[], storms_of_modules[], storms_of_processes[], storms_of_signals[],
    storms_of_threads[], storms_of_seccomp[];

/* storms_of_processes: what a program does that the storms start, by its first argument. */
int process_main(int argc, char **argv);

#endif
