/* The threads of this process and what the sampler knows of each. Belongs to the sampler thread.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_THREADS_H
#define OFFBEAT_SAMPLER_THREADS_H

#include "sampler/recording_writer.h"
#include "sampler/signal_handler.h"

#include <sys/types.h>
#include <time.h>

enum { THREADS_MAX = 65536, THREAD_NAME_SIZE = 16 };

struct watched_thread {
    pid_t tid;
    uint32_t number; /* in the recording */
    bool is_listed;  /* while the list is compared */
    bool ran;        /* since its name was read */
    char name[THREAD_NAME_SIZE];

    /* Wall clock: when CPU_NS is what it was at the last stack, the thread is where it was. */
    uint64_t cpu_ns_at_stack;
    bool has_stack;

    /* A request to the thread, or one that had to be put off. */
    struct slot *slot;
    uint64_t cpu_ns_at_request;
    uint32_t waiting_ticks;     /* ticks that are told of by the next answer */
    bool ran_while_waiting;     /* it blocks the signal, or the answer comes from a later time */
    int signal_number;          /* one that it does not block, if there is */
    uint32_t signal_until_tick; /* until then that is taken as true */

    timer_t cpu_timer; /* CPU mode */
    bool has_cpu_timer;
    uint64_t cpu_ns_recorded, cpu_ns_seen;

    struct recording_stack *last; /* of the recording */
};

struct threads {
    struct watched_thread **items; /* sorted by tid */
    size_t count, capacity;
    size_t listed_count; /* threads in the process, the sampler's own included */
    int directory;       /* of /proc/self/task; -1: opened each time */
    bool keeps_descriptor;
    pid_t sampler_tid;
    uint32_t next_number;
    uint64_t missed; /* over THREADS_MAX, or without memory */
};

/* CPU time of a thread of this process; false if there is no such thread. */
bool thread_cpu_ns(pid_t tid, uint64_t *ret_ns);

/* Whether a thread of this process blocks NUMBER; true also where that cannot be found out. */
bool thread_blocks_signal(pid_t tid, int number);

/* True if the number of threads differs from that of the last listing. One system call. */
bool threads_changed(const struct threads *threads);

/* Called for a thread that ended, before it is forgotten. */
typedef void (*thread_gone_callback)(void *context, struct watched_thread *thread);

/* Lists the threads anew and writes RECORDING_THREAD and RECORDING_THREAD_GONE records. */
void threads_refresh(struct threads *threads, struct recording_writer *writer, thread_gone_callback gone,
                     void *context);

/* Reads the names of threads that ran since, and writes those that changed. */
void threads_refresh_names(struct threads *threads, struct recording_writer *writer);

void threads_fini(struct threads *threads, thread_gone_callback gone, void *context);

#endif
