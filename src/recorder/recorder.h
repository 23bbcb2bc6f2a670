/* Records processes from outside. At each tick it takes the stacks that its engine has gathered, observes all threads,
 * divides their time (thread_times.h) and writes one recording for each process.
 *
 * The caller has the loop: it waits until recorder_next_ns and calls recorder_tick, until no process is left or the
 * time is over. One thread uses a recorder. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_RECORDER_H
#define OFFBEAT_RECORDER_RECORDER_H

#include "recorder/engine.h"
#include "recorder/process_place.h"

enum { RECORDER_PROCESSES_MAX = 1 << 14 };

struct recorder_options {
    const struct engine_ops *engine;
    uint64_t frequency_hz;
    uint64_t cpu_max_ppm; /* most that this process and its children use of a processor, millionths; 0: any */
    uint64_t memory_max;  /* most bytes that this process has, with those in the kernel; 0: any */
    bool is_cpu_mode;
    bool records_waits;   /* true in off-CPU mode */
    uint64_t wait_ns_min; /* duration from which on a wait has a stack */
    bool names_wakers;
    bool takes_kernel_stacks;
    bool shows_interpreter;      /* true if stacks keep the native frames of an interpreter */
    const char *kernel_build_id; /* build id of the running kernel in hex, for its names; "": not known */
    bool follows_children;
    bool chooses_programs; /* true if WANTS decides on children, too, and again on other programs and new recordings */
    bool watches_all;      /* true if WANTS takes nearly all processes of the machine */
    /* Says whether a new process PID, which is called NAME, is to be recorded. NULL: none but children. */
    bool (*wants)(void *context, pid_t pid, const char *name);
    /* Returns N if each N-th stack of running threads of PID, which is called NAME, is enough. NULL: all are wanted. */
    uint64_t (*thinning)(void *context, pid_t pid, const char *name);
    /* Writes the name of process PID: its script, if PROGRAM is an interpreter, else PROGRAM. */
    void (*name_process)(pid_t pid, const char *program, char ret_name[PROCESS_PLACE_NAME_SIZE]);
    /* Writes the name of the service that process PID of PROGRAM is, for the recording. NULL: it is left out. */
    void (*name_service)(void *context, pid_t pid, const char *program, const struct process_place *place,
                         char ret_name[PROCESS_PLACE_NAME_SIZE]);
    /* Called for each recording that has ended, with the number of its stacks, and of bytes that could not be written.
     * NULL: nobody. */
    void (*finished)(void *context, const char *path, uint64_t stack_count, uint64_t bytes_lost);
    void *context;
    uint64_t search_ns;          /* least time between two searches for processes; 0: what suits children */
    uint64_t recording_ns;       /* longest time of a recording, which the next one follows; 0: any */
    const char *directory;       /* folder for the recordings */
    const char *image_directory; /* folder for links to files that their paths do not lead to; NULL: none */
    const char *cache_directory; /* folder of stored frame tables; NULL: none */
};

struct recorder;

/* Returns NULL with *RET_DENIAL. */
struct recorder *recorder_new(const struct recorder_options *options, struct engine_denial *ret_denial);

/* Ends all recordings, with a last tick. The files of the code that was recorded stay open. */
void recorder_end(struct recorder *recorder);
/* Frees RECORDER, which may be NULL. Its recordings have ended. */
void recorder_free(struct recorder *recorder);

/* Begins to record process PID. Returns false with *RET_DENIAL: it is not there, or may not be seen. *RET_DENIAL may
 * have a reason also after success: blocked threads cannot be seen. Does nothing if PID is recorded already. */
bool recorder_add(struct recorder *recorder, pid_t pid, struct engine_denial *ret_denial);

/* Adds the processes that the options want, and the children of recorded ones. */
void recorder_find(struct recorder *recorder);

/* Asks again which processes are wanted: ends the recordings of the others, and begins new ones. */
void recorder_choose_again(struct recorder *recorder);

/* Returns the number of processes that are recorded at the moment. */
size_t recorder_process_count(const struct recorder *recorder);

/* Returns the time of the next tick, CLOCK_MONOTONIC. */
uint64_t recorder_next_ns(const struct recorder *recorder);
void recorder_tick(struct recorder *recorder);

/* Works on frame tables until the time UNTIL_NS. */
void recorder_work(struct recorder *recorder, uint64_t until_ns);

/* Writes all that was recorded so far to the files. */
void recorder_flush(struct recorder *recorder);

/* Returns how many times rarer than asked the samples are, to keep to the share of a processor; 1: as asked. */
double recorder_slowness(const struct recorder *recorder);

/* The state of the recorder's memory. */
struct recorder_memory {
    uint64_t bytes;        /* memory of this process and in the kernel, at the last check */
    size_t files;          /* files with code that are open */
    uint64_t evicted;      /* files that were closed to make room */
    size_t left_out_count; /* processes that are not recorded for want of memory, by the last search */
};
void recorder_memory(const struct recorder *recorder, struct recorder_memory *ret_memory);

/* Adds up the losses of the engine. */
void recorder_losses(const struct recorder *recorder, struct engine_losses *ret_losses);

#endif
