/* Samples the threads of the process it runs in, and writes a recording of it.
 *
 * One sampler a process. Start and stop from any thread, not from signal handlers; start again only after stop.
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
    SAMPLER_CPU_PPM_MIN = 1000,
    SAMPLER_PATH_SIZE = 3200,
    SAMPLER_FINISHED_MAX = 16,
};

struct sampler_options {
    uint32_t frequency_hz; /* 1 to SAMPLER_FREQUENCY_MAX */
    enum recording_mode mode;
    uint32_t cpu_max_ppm;  /* of a processor: what the sampler may use, in millionths; 0: SAMPLER_CPU_MAX_PPM, and at
                            * rates over 1000 Hz what it needs */
    uint64_t duration_ns;  /* stops automatically after so long; 0: never */
    uint64_t recording_ns; /* begins a new recording after so long; 0: all is written to one */
    uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE]; /* zeros: a random one */
    bool ignores_children;                           /* forked children are left alone */
    uint64_t forked_ns;                              /* not 0: the process began then, and so does its recording */
    const char *cache_directory; /* where frame tables are kept; must exist; NULL: nowhere; copied */
    const char *directory;       /* where recordings go, as PID-START-RANDOM.recording; copied */
};

/* False if no thread could be made or there is no memory, or the thread of the last time has not ended yet; the program
 * continues unprofiled. */
bool sampler_start(const struct sampler_options *options);

/* Writes all samples to the recording. Waits for the sampler thread, for at most half a second, or two seconds if it
 * hardly gets a processor. */
void sampler_stop(void);

/* --- Calls of the program that concern the sampler thread: interpose/ makes them visible ---------------------------
 */

/* True if there is a sampler thread, or was and will be, in this very process: not in a child of vfork, which has the
 * memory of its parent. */
bool sampler_is_present(void);

struct sampler_absence {
    int descriptor; /* of the recording; -1: none */
    uint64_t device, inode;
};

/* The calling thread has begun, or is about to end. ROUTINE: where its code begins. Signal-safe. */
void sampler_note_thread_begin(uint64_t routine, uint64_t created_ns);
void sampler_note_thread_end(void);
uint64_t sampler_clock_ns(void); /* CLOCK_MONOTONIC */

/* The program has unloaded a library, or given a thread a name. Any thread, signal-safe. */
void sampler_note_unload(void);
void sampler_note_name(void);

/* The calling thread is about to change to the alternate stack, or has tried to: a thread whose alternate stack has no
 * room for a signal is sent none. Signal-safe. */
void sampler_expect_alternate_stack(void);
void sampler_note_alternate_stack(void);

/* The program is about to change what it does at signal NUMBER. True if the sampler uses that: it sends none from now
 * on, until sampler_note_handler. Signal-safe; false in a child of vfork. */
bool sampler_expect_handler(int number);
void sampler_note_handler(void);

/* The calling thread is about to exec: no thread has a timer of ours for the next 0.1 s. Signal-safe. */
void sampler_expect_exec(void);

/* A coroutine's stack has BYTES. If that is too small for a signal, no thread is sent one, for any may run on it. */
void sampler_note_coroutine_stack(size_t bytes);

/* Ends the sampler thread, so that the process is as if it had never had one. REASON is what the recording says if it
 * never comes back. If true, exactly one of the next two functions must follow. Keeps errno, as they all do. */
bool sampler_step_aside(enum recording_end reason, struct sampler_absence *ret_absence);

/* Starts it again, as a clone of the calling thread. The recording continues; the time is counted. */
void sampler_come_back(const struct sampler_absence *absence);

/* After the program has installed a seccomp filter: makes no system call. */
void sampler_stay_away(void);

/* The program has changed its rights or its root: when this returns, the sampler thread has done the same, or has been
 * asked to end because it did not do so within 100 ms. */
void sampler_follow(void);

/* The calling thread is about to exec, which ends all others. What the sampler knows is in the recording when this
 * returns, or 100 ms have passed. Does nothing in a process that has just begun, and in a child of vfork.
 * Async-signal-safe. */
void sampler_flush(void);

/* --- With recording_ns: the recordings, one after the other ------------------------------------------------------- */

/* Ends the recording at the next tick, or once it has six, and continues in a new one. */
void sampler_cut(void);

/* The oldest finished recording that was not taken yet, which is the caller's to read and delete. False if there is
 * none. If there are more than SAMPLER_FINISHED_MAX, the newest are deleted and counted as lost, as are recordings
 * whose file could not be created. By one thread. */
bool sampler_take_finished(char ret_path[SAMPLER_PATH_SIZE]);

/* Counts up with each finished recording and each sampler_wake. */
uint32_t sampler_news(void);
/* Waits until sampler_news is another number than NEWS, but no longer than until DEADLINE_NS of CLOCK_MONOTONIC. */
void sampler_wait(uint32_t news, uint64_t deadline_ns);
void sampler_wake(void);
uint64_t sampler_lost_recordings(void);

/* The calling thread, whose number it gives, is not sampled: it works for the profiler. At most THREADS_LEFT_OUT_MAX a
 * process, until they are taken in or all forgotten, when they have ended: their numbers may become other threads'. */
pid_t sampler_leave_out(void);
void sampler_take_in(pid_t thread);
void sampler_forget_left_out(void);

/* For pthread_atfork: the child begins its own recording, with its own id; the parent's continues. */
void sampler_before_fork(void);
void sampler_after_fork_in_child(void);

#endif
