/* The BPF programs and their maps in the kernel, with the frame tables that they walk by.
 *
 * Nothing is pinned: all of it ends with the descriptors, however this process ends. One thread at a time.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_BPF_PROGRAMS_H
#define OFFBEAT_RECORDER_BPF_BPF_PROGRAMS_H

#include "recorder/bpf/bpf_layout.h"
#include "unwind/frame_table.h"

#include <stdbool.h>
#include <stddef.h>

enum { BPF_TABLE_NONE = UINT32_MAX, BPF_PROBLEM_SIZE = 256 };

/* Environment variable with names of programs that are denied as by a kernel without what they need: a switch for
 * tests.
 */
#define BPF_PROGRAMS_DENIED "OFFBEAT_DENIED_PROGRAMS"

struct bpf_programs;

/* Loads a program that does nothing. Returns false, with the reason in RET_PROBLEM and errno, if the kernel denies it.
 */
bool bpf_programs_may_load(char *ret_problem);

struct bpf_program_options {
    uint64_t period_ns;    /* time between two samples of a processor, or between two ticks */
    bool follows_children; /* true if new processes of those that are recorded are recorded, too */
    bool takes_kernel_stacks;
    bool samples_caller;  /* true if bpf_programs_sample_caller is used */
    bool records_waits;   /* true if waits are sent, and no stacks of running threads */
    uint64_t wait_ns_min; /* duration from which on a wait is sent */
};

/* Loads the programs. Returns NULL, with the reason in RET_PROBLEM (BPF_PROBLEM_SIZE bytes) and errno. */
struct bpf_programs *bpf_programs_load(const struct bpf_program_options *options, char *ret_problem);
void bpf_programs_unload(struct bpf_programs *programs); /* accepts NULL */

/* Begins to report changes of processes, and waits or, by a timer on each processor, stacks of running threads. Returns
 * false with the reason and errno. */
bool bpf_programs_start(struct bpf_programs *programs, char *ret_problem);

/* Changes the period of the timers. */
void bpf_programs_set_period(struct bpf_programs *programs, uint64_t period_ns);

/* Receiver of what is in the ring. Pointers are valid during the call. */
struct bpf_receiver {
    void *context;
    /* WORDS follow SAMPLE in the ring. */
    void (*sample)(void *context, const struct bpf_sample *sample, const uint64_t *words);
    void (*wait)(void *context, const struct bpf_wait *wait);
    void (*change)(void *context, const struct bpf_change *change);
    /* FUNCTIONS, SIZE bytes, belong to the next sample of their thread. NULL: they are not wanted. */
    void (*functions)(void *context, const struct bpf_functions *functions, size_t size);
};

/* Delivers the records since the last call, in the order of their times. */
void bpf_programs_read(struct bpf_programs *programs, const struct bpf_receiver *receiver);

/* Opens an iterator over the threads of process PID; 0: of all processes. Returns a descriptor, or -1 with errno. */
int bpf_programs_open_iterator(const struct bpf_programs *programs, uint32_t pid);

typedef void (*bpf_thread_function)(void *context, const struct bpf_thread *thread);

/* Calls RECEIVE for the threads of ITERATOR that have run since the last call. Returns false if it cannot be read. */
bool bpf_programs_iterate(int iterator, bpf_thread_function receive, void *context);

/* Samples the calling thread REPEAT times, and sends the last sample. Returns false if the program was not executed. */
bool bpf_programs_sample_caller(struct bpf_programs *programs, uint32_t repeat, uint64_t *ret_walk_ns);

struct bpf_losses {
    uint64_t samples_lost; /* samples for which the ring had no room */
    uint64_t runs_missed;  /* runs of the timer that the kernel left out */
};
void bpf_programs_losses(const struct bpf_programs *programs, struct bpf_losses *ret_losses);

/* --- Tables ------------------------------------------------------------------------------------------------------- */

/* Copies TABLE into the kernel as number NUMBER, below BPF_TABLES_MAX. Returns false without memory for it. */
bool bpf_programs_load_table(struct bpf_programs *programs, uint32_t number, const struct frame_table *table);
/* Frees the table NUMBER, to which no entry of a module leads. The number may be used again. */
void bpf_programs_unload_table(struct bpf_programs *programs, uint32_t number);
/* Returns the memory of all maps. */
uint64_t bpf_programs_kernel_bytes(const struct bpf_programs *programs);

/* --- Processes ---------------------------------------------------------------------------------------------------- */

/* Writes COUNT modules to the places from FIRST on. No process entry may refer to them. */
void bpf_programs_write_modules(struct bpf_programs *programs, uint32_t first, const struct bpf_module_entry *entries,
                                uint32_t count);
bool bpf_programs_set_process(struct bpf_programs *programs, uint32_t pid, const struct bpf_process_entry *entry);
/* Returns how often process PID has mapped memory in the place of listed code. */
uint32_t bpf_programs_mapping_count(const struct bpf_programs *programs, uint32_t pid);
/* Lets the programs copy the functions of thread TID; THREAD NULL: ends that. */
bool bpf_programs_set_interpreted(struct bpf_programs *programs, uint32_t tid,
                                  const struct bpf_interpreted_thread *thread);
void bpf_programs_remove_process(struct bpf_programs *programs, uint32_t pid);

#endif
