/* The threads of this process, and what the sampler knows about each. Belongs to the sampler thread.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_THREADS_H
#define OFFBEAT_SAMPLER_THREADS_H

#include "sampler/kernel/cpu_clock.h"
#include "sampler/kernel/proc_files.h"
#include "sampler/ledger/ledger.h"
#include "sampler/record/recording_writer.h"
#include "sampler/source/source.h"

#include <sys/types.h>

enum { THREADS_MAX = 65536, THREAD_NAME_SIZE = 16, THREADS_LEFT_OUT_MAX = 8 };

/* Waits for a processor that had not ended at the last count of context switches: 1, 0, or one half. */
struct open_wait {
    double woken, preempted;
};

/* The kernel's counts of a thread's context switches, as last read. */
struct context_switches {
    bool is_known;
    uint64_t sleeps, preemptions;
    struct open_wait open;
};

/* The page that the kernel shares for a thread that sleeps (idle_threads.c). */
struct idle_page {
    struct perf_event_mmap_page *page; /* NULL: there is none */
    uint32_t awake_tick;               /* last tick that saw the thread awake */
    uint32_t wakes;                    /* measure of how often it wakes up, which falls with each tick asleep */
    uint32_t no_page_until_tick;       /* end of the time without a page, after it woke up too often */
    uint8_t asleep_ticks;              /* ticks asleep in a row, up to the number that makes a page worth its cost */
};

/* State of a thread between two scans (tick.c). */
struct thread_scan {
    bool is_known;           /* true if it was scanned before */
    bool ran_long;           /* true if it ran for long before the last scan */
    bool may_wait;           /* true if it may wait for a processor: the recheck finds out */
    bool is_missing;         /* true if it had ended at the open tick */
    bool is_accounted;       /* true if it has ended, and CPU_NS of its ledger is all its CPU time */
    uint64_t checked_cpu_ns; /* CPU time at the last check whether it still runs, ns */
    uint32_t checked_tick;   /* last such check at which it had run */
    uint64_t waited_ns;      /* time that scans have seen it waiting for a processor, ns */
};

/* Name of a thread, and whether the present listing has it. */
struct thread_listing {
    char name[THREAD_NAME_SIZE];
    bool is_listed;         /* false if the present listing has not found the thread */
    bool may_have_new_name; /* true if it ran since its name was read */
};

/* The first cache line has what a scan of a sleeping thread reads (idle_threads.c). */
struct target_thread {
    struct thread_files files;
    bool is_asked; /* true if it was asked for a stack and has not replied */
    struct idle_page idle;
    struct ledger ledger; /* account of its time; a scan reads the first members */
    struct thread_scan scan;
    struct thread_listing listing;
    struct context_switches switches;
    struct recording_stack *last; /* last stack in the recording */
    struct source_thread source;
    void *source_states[SOURCES_MAX]; /* private state of each source, in the order of the sources */
};

/* The data of a sleeping thread that a tick reads. The thread has not run while the count of its perf page is
 * COUNT_ASLEEP. */
struct listed_thread {
    struct target_thread *thread;
    const struct perf_event_mmap_page *page_asleep; /* perf page of the thread; NULL: it is not known to be asleep */
    uint32_t count_asleep;                          /* count of the page when it was last known to be asleep */
};

struct threads {
    struct listed_thread *items; /* sorted by tid */
    size_t count, capacity;
    size_t listed_count;         /* threads in the process, the sampler thread included */
    uint32_t listed_names_count; /* new threads in the present listing */
    int directory;               /* descriptor of /proc/self/task; -1: opened for each listing */
    bool is_blind;               /* true if the last listing failed */
    bool is_brief;               /* true if little is read of new threads and of names */
    pid_t sampler_tid;
    uint32_t next_number;
    uint64_t missed; /* threads over THREADS_MAX, or without memory */
};

/* Returns the thread TID, or NULL if it is not listed. */
struct target_thread *threads_find(const struct threads *threads, pid_t tid);

/* Returns true if the number of threads differs from that of the last listing, or one more is left out. One system
 * call. */
bool threads_changed(const struct threads *threads);

/* Leaves TID out of the listings that follow, until sampler_take_in. From any thread. At most THREADS_LEFT_OUT_MAX. */
void threads_leave_out(pid_t tid);
bool threads_were_left_out(void); /* true if there ever was such a thread in this process */

/* Called for each thread that ended (it is not IS_LISTED), before any of them is forgotten. */
typedef void (*thread_gone_callback)(void *context, struct target_thread *thread);

/* Lists the threads again and writes RECORDING_THREAD and RECORDING_THREAD_GONE records. */
void threads_refresh(struct threads *threads, struct recording_writer *writer, thread_gone_callback gone,
                     void *context);

/* Reads the names of some threads that ran, and writes those that changed. Returns false if the next tick has to read
 * more. */
bool threads_refresh_names(struct threads *threads, struct recording_writer *writer);

/* Writes the threads to the start of a recording that continues another one. Their numbers are new, and their stacks
 * are read again. */
void threads_write_again(struct threads *threads, struct recording_writer *writer);

/* Closes all files that are kept open, before the sampler thread ends and another one continues. */
void threads_release_files(struct threads *threads);

/* Closes the directory: outside of the program's new root it would be a way out. */
void threads_release_directory(struct threads *threads);

void threads_fini(struct threads *threads, thread_gone_callback gone, void *context);

#endif
