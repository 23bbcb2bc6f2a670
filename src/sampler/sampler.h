/* Samples the threads of the process it runs in, and writes a recording of it.
 *
 * A process has one sampler. Start and stop from any thread, not from signal handlers; start again only after stop.
 * The sampler runs on its own thread, which blocks all signals, holds no lock that the program can take and keeps
 * its descriptors to itself.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLER_H
#define OFFBEAT_SAMPLER_SAMPLER_H

#include "format/recording/recording_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SAMPLER_FREQUENCY_DEFAULT = 101,
    SAMPLER_FREQUENCY_MAX = 10000,
    SAMPLER_CPU_MAX_PPM = 200000,
};

struct sampler_options {
    uint32_t frequency_hz; /* 1 to SAMPLER_FREQUENCY_MAX */
    enum recording_mode mode;
    uint32_t cpu_max_ppm;  /* share of a processor that the sampler may use, in millionths; 0: SAMPLER_CPU_MAX_PPM,
                            * and at rates over 1000 Hz what it needs */
    uint64_t duration_ns;  /* time after which the sampler stops, ns; 0: it does not */
    uint64_t recording_ns; /* length of a recording, ns; 0: there is only one */
    uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE]; /* zeros: a random one */
    bool ignores_children;                           /* true: forked children are not sampled */
    bool shows_interpreter;                          /* true: stacks keep the native frames of an interpreter */
    uint64_t forked_ns;          /* start of a forked process and its recording, CLOCK_MONOTONIC; 0: not forked */
    const char *script;          /* name of the script that an interpreter runs, copied; NULL: there is none */
    const char *cache_directory; /* existing folder for frame tables, copied; NULL: tables are not stored */
    const char *directory;       /* folder for recordings, named PID-START-RANDOM.recording; copied */
};

/* Starts the sampler. Returns false if no thread can be created, there is no memory, or the thread of the last start
 * has not ended; the program continues unprofiled. */
bool sampler_start(const struct sampler_options *options);

/* Writes all samples to the recording. Waits for the sampler thread, for at most half a second, or two seconds if it
 * hardly gets a processor. */
void sampler_stop(void);

/* --- Calls of the program that concern the sampler thread: interpose/ makes them visible -------------------------- */

/* Returns true if this process has a sampler thread, or one that has stepped aside. A child of vfork, which has the
 * memory of its parent, has none. */
bool sampler_is_present(void);

struct sampler_absence {
    int descriptor; /* descriptor of the recording; -1: none */
    uint64_t device, inode;
};

/* Note that the calling thread has begun in ROUTINE, or is about to end. Signal-safe. */
void sampler_note_thread_begin(uint64_t routine, uint64_t created_ns);
void sampler_note_thread_end(void);

/* Notes that the program has given a thread a name. From any thread, signal-safe. */
void sampler_note_name(void);

/* Note that the calling thread is about to change its alternate stack, or has tried to: a thread whose alternate stack
 * has no room for a signal is sent none. Signal-safe. */
void sampler_expect_alternate_stack(void);
void sampler_note_alternate_stack(void);

/* Notes that the program is about to change what it does at signal NUMBER. Returns true if the sampler uses that
 * signal: it sends none until sampler_note_handler. Signal-safe; false in a child of vfork. */
bool sampler_expect_handler(int number);
void sampler_note_handler(void);

/* Ends all timers of ours for the next 0.1 s, because the calling thread is about to exec. Signal-safe. */
void sampler_expect_exec(void);

/* Notes that a coroutine's stack has BYTES. If that is too small for a signal, no thread is sent one, because any may
 * run on it. */
void sampler_note_coroutine_stack(size_t bytes);

/* Tells that the function at FROM only jumps to that at TO. Called once, before the sampler starts. */
void sampler_note_jump(uint64_t from, uint64_t to);

/* Ends the sampler thread, so that the process is as if it had never had one. The recording states REASON if the thread
 * never comes back. If this returns true, exactly one of the next two functions must follow. All keep errno. */
bool sampler_step_aside(enum recording_end reason, struct sampler_absence *ret_absence);

/* Starts the thread again, as a clone of the calling thread. The recording continues, and counts the absence. */
void sampler_come_back(const struct sampler_absence *absence);

/* Leaves the thread ended, after the program has installed a seccomp filter. Makes no system call. */
void sampler_stay_away(void);

/* Has the sampler thread follow a change of the program's rights or root. When this returns, it has done so, or has
 * been asked to end because it did not do so within 100 ms. */
void sampler_follow(void);

/* Has the sampler write all it knows to the recording, because the calling thread is about to exec, which ends all
 * other threads. Waits for at most 100 ms. Does nothing in a process that has just begun, and in a child of vfork.
 * Async-signal-safe. */
void sampler_flush(void);

/* --- With recording_ns: the recordings, one after the other ------------------------------------------------------- */

/* Ends the recording at the next tick, or once it has six, and continues in a new one. */
void sampler_cut(void);

/* The finished recordings are in record/finished_recordings.h. */

/* Leaves the calling thread, which works for the profiler, out of the profile, and returns its number. At most
 * THREADS_LEFT_OUT_MAX in a process, until they are taken in, or forgotten together, when they have ended: other
 * threads may get their numbers. */
pid_t sampler_leave_out(void);
void sampler_take_in(pid_t thread);
void sampler_forget_left_out(void);

/* Functions for pthread_atfork: the child begins its own recording, with its own id; the parent's continues. */
void sampler_before_fork(void);
void sampler_after_fork_in_child(void);

#endif
