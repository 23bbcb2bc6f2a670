/* The threads of this process and what the sampler knows of each. Belongs to the sampler thread.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_THREADS_H
#define OFFBEAT_SAMPLER_THREADS_H

#include "sampler/perf_page.h"
#include "sampler/perf_timer.h"
#include "sampler/sample_credit.h"
#include "sampler/recording_writer.h"
#include "sampler/signal_handler.h"
#include "sampler/thread_events.h"

#include <sys/types.h>
#include <time.h>

enum { THREADS_MAX = 65536, THREAD_NAME_SIZE = 16, THREADS_LEFT_OUT_MAX = 8 };

/* Where a thread is blocked: its stack pointer and its program counter. */
struct blocked_place {
    uint64_t sp, pc; /* 0: nowhere */
};

/* For a timer that sees all code: the thread's CPU time and its wait for a processor when the period was last set. */
struct period_setting {
    uint64_t cpu_ns, wait_ns;
};

/* When the signals of a thread's CPU clock were read, and the CPU time before that without a signal: of a call,
 * perhaps. */
struct timer_signals_reading {
    uint64_t cpu_ns, wait_ns, tick_ns, uncovered_ns;
};

/* Of a thread's time, see ledger.h. */
struct thread_ledger {
    uint64_t pending_ns;          /* of the wall clock: not written yet */
    uint64_t prewritten_ns;       /* of the time to come: it is written, or the thread began after the open tick */
    uint64_t start_credit_ns;     /* of the tick that found it first, during which it may have started */
    uint64_t ran_in_ns;           /* the time between two scans in which it ran last, */
    uint64_t has_waited_ns;       /* and how long ago that was */
    uint64_t since_asleep_ns;     /* since it was last met asleep */
    uint64_t cpu_written_ns;      /* of the thread's CPU clock */
    uint64_t delay_ns;            /* for which it waited for a processor, by the kernel's last count */
    uint64_t delay_read_ns;       /* when: a tick can last for long after it was opened */
    uint64_t runnable_written_ns; /* of DELAY_NS */
    bool has_blocked;             /* there is a place for waits after a wake-up */
    bool has_run;                 /* there is a stack of CPU time */
    bool has_written_start;       /* how long it waited for its first processor */
    bool has_written_routine;
    uint64_t since_ns;        /* from when on the thread's time is written, or to be written */
    bool was_there;           /* when the sampler was started */
    bool has_beginning;       /* the thread has said when it was created, and SINCE_NS is that */
    bool is_new;              /* it began under our eyes, and was not looked at yet */
    bool is_first_scan;       /* the last one was */
    bool has_delay;           /* it is known where the kernel's count began */
    uint64_t preempted_ns;    /* by the timer's count, when last read */
    int64_t woken_ns;         /* waits after wake-ups that are not written yet; less than 0: the timer is ahead */
    uint64_t unknown_wait_ns; /* waits that may have followed a wake-up or a preemption */
    bool has_seen_switch;     /* the timer's, then */
};

/* How often a thread has switched, when that was last read. */
struct open_wait {
    double woken, preempted; /* waits that had not ended: one, or none */
};

struct context_switches {
    bool is_known;
    uint64_t sleeps, preemptions;
    struct open_wait owes;
};

/* What is known of where a thread waits for a processor (run_queue_waits.c). */
struct run_queue_waits {
    bool are_where_it_runs; /* all that were seen */
    uint64_t period;        /* stops between two samples of its timer */
    uint32_t samples;       /* since that was drawn */
    uint32_t seen;          /* waits, since this was last decided, */
    uint32_t elsewhere;     /* and how many of them were in calls, or long */
    uint32_t until_tick;    /* waits are not looked at until then, because they were where the thread runs, */
    uint32_t seconds_alone; /* for so long */
    bool is_asked;          /* without such a timer: it gets a signal when it is met waiting, */
    bool has_replied;       /* at least once, */
    uint32_t unsent;        /* and so many in a row could not be sent */
};

enum thread_state {
    THREAD_UNKNOWN,
    THREAD_BLOCKED,  /* and its stack is in the recording */
    THREAD_RUNNABLE, /* it runs, or waits for a processor */
};

struct target_thread {
    /* Asleep: */
    const struct perf_page *page; /* NULL: none (yet) */
    uint8_t asleep_ticks;         /* in a row, up to where a page is worth it */
    uint32_t awake_tick;          /* when it was last met awake */
    uint32_t wakes;               /* a measure of how often it wakes up: falls at each tick asleep since then */
    uint32_t no_page_until_tick;  /* it woke up too often */

    /* Running: */
    struct perf_timer timer;
    struct perf_timer stop_timer; /* for its waits for a processor */
    struct run_queue_waits waits;
    uint32_t timer_stack_size; /* that it needs; 0: not known yet; more than there can be: it gets no timer */
    uint32_t stacks_seen;      /* whole ones, */
    uint64_t largest_stack;    /* and the bytes of the largest of the last few */
    uint32_t cut_stacks;       /* which no larger copy would have made whole */
    bool has_large_stack;      /* a copy was too small once */
    uint32_t timer_samples;
    bool ran_with_other_timer; /* when the timer was opened in place of one with another size of copies */
    struct sample_credit credit;
    struct period_setting period_set_at;
    uint64_t timer_cpu_ns; /* CPU time when it was last asked whether it still runs, */
    uint32_t timer_tick;   /* and the tick at which that last had changed */

    pid_t tid;
    uint32_t number; /* in the recording */
    bool is_listed;  /* while the list is compared */
    bool ran;        /* since its name was read */
    bool is_known;   /* it has been looked at before */
    bool is_missing; /* it was not there any more in the open tick */
    char name[THREAD_NAME_SIZE];

    struct thread_ledger ledger;
    struct context_switches switches;
    enum thread_state state; /* at the last scan; as long as it has not run since, it is in it */
    uint64_t waited_ns;      /* for a processor, as far as scans show */
    uint32_t written_tick;   /* the last one of which a sample was written */
    int syscall_file;        /* /proc/self/task/TID/syscall, kept open where that is possible; else -1 */
    int delay_file;          /* and schedstat */
    int status_file;         /* and status, of those that were asked for a signal */

    /* A request to the thread. */
    struct sample_request *request;
    int asked_number; /* of the signal */
    uint64_t cpu_ns_at_request;
    bool is_asked_for_wait;          /* its timer measures its CPU time */
    bool may_wait;                   /* for a processor: whether it does is checked again */
    bool waits_at_request;           /* on an overloaded machine: it was on no processor when it was asked */
    uint64_t sleep_count;            /* how often it had gone to sleep when a signal was last considered */
    uint64_t cpu_ns_at_sleep;        /* at the first consideration with that count */
    uint32_t ticks_asked;            /* since then, at which it had run */
    uint32_t ticks_without_table;    /* at which a walk met a module for the first time, since the last stack */
    uint64_t no_signal_until_cpu_ns; /* it was seen in sigwait */

    /* A timer on the thread's CPU clock (cpu_clock_timer.c). */
    struct sample_request *cpu_clock_timer; /* NULL: there is none */
    int cpu_clock_signal;                   /* of the signal */
    enum stack_reading cpu_clock_reading;
    uint64_t cpu_clock_checked_ns;
    uint64_t cpu_clock_start_cpu_ns; /* CPU time when it was armed, or some µs less */
    struct timer_signals_reading timer_signals_read_at;
    int64_t asleep_ns; /* least value of asleep_ns() in cpu_clock_timer.c since the thread was last seen to sleep */

    uint64_t cpu_ns_seen; /* at the last scan */
    bool ran_long;        /* before the last scan */
    bool is_accounted;    /* it ended, and CPU_NS_SEEN is all that it spent */

    struct thread_event life; /* as it said itself; ROUTINE and CREATED_NS are 0 until then */

    struct recording_stack *last; /* of the recording */
};

/* All that a tick touches of a thread that sleeps: as long as its page's count is what it was when the thread was last
 * known to be asleep, it is where it was. */
struct listed_thread {
    struct target_thread *thread;
    const struct perf_page *page_asleep; /* NULL: it is not known to be asleep */
    uint32_t count_asleep;
};

struct threads {
    struct listed_thread *items; /* sorted by tid */
    size_t count, capacity;
    size_t listed_count;         /* threads in the process, the sampler's own included */
    uint32_t listed_names_count; /* in the present listing: new threads */
    int directory;               /* of /proc/self/task; -1: opened each time */
    bool keeps_descriptor;
    bool is_blind; /* they could not be listed the last time */
    bool is_brief; /* little is read of new threads, and of names */
    pid_t sampler_tid;
    uint32_t next_number;
    uint64_t missed; /* over THREADS_MAX, or without memory */
};

clockid_t thread_cpu_clock(pid_t tid);
/* CPU time of a thread of this process; false if there is no such thread. */
bool thread_cpu_ns(pid_t tid, uint64_t *ret_ns);

/* THREAD's /proc/self/task/TID/syscall, or a negative errno. thread_release_syscall_file must follow. It is kept, as
 * long as there are descriptors enough: opening costs three times as much as reading, and a process that gives up its
 * rights can often not open it again. */
int thread_syscall_file(struct target_thread *thread);
void thread_release_syscall_file(struct target_thread *thread, int file);

/* For how long THREAD has waited for a processor since it began, by the kernel's count, which grows when a wait ends
 * (/proc/self/task/TID/schedstat). */
bool thread_read_delay(struct target_thread *thread, uint64_t *ret_ns);
bool threads_read_own_delay(uint64_t *ret_ns); /* of the calling thread, any one; takes a descriptor for a moment */

/* THREAD's /proc/self/task/TID/status, NUL-terminated; the file is kept open in the same way. */
bool thread_read_status(struct target_thread *thread, char *text, size_t size);

/* NULL: it is not listed. */
struct target_thread *threads_find(const struct threads *threads, pid_t tid);

/* True if the number of threads differs from that of the last listing, or one more is to be left out. One system call.
 */
bool threads_changed(const struct threads *threads);

/* TID is not listed from the next listing on, until it is taken in. From any thread. At most THREADS_LEFT_OUT_MAX. */
void threads_leave_out(pid_t tid);
void threads_take_in(pid_t tid);
void threads_forget_left_out(void);
bool threads_were_left_out(void); /* ever, in this process */

/* Called for each thread that ended (it is not IS_LISTED), before any of them is forgotten. */
typedef void (*thread_gone_callback)(void *context, struct target_thread *thread);

/* Lists the threads again and writes RECORDING_THREAD and RECORDING_THREAD_GONE records. */
void threads_refresh(struct threads *threads, struct recording_writer *writer, thread_gone_callback gone,
                     void *context);

/* Reads the names of threads that ran since, and writes those that changed, some at once; false if there are more to be
 * read at the next tick. */
bool threads_refresh_names(struct threads *threads, struct recording_writer *writer);

/* Writes the threads to the start of a recording that continues where another one ended. Their numbers are new, and
 * their stacks are read again. */
void threads_write_again(struct threads *threads, struct recording_writer *writer);

/* The sampler thread is about to end and another one will continue: closes all files that are kept open. */
void threads_release_files(struct threads *threads);

/* Closes the directory, which may be outside of the program's new root: it would be a way out. */
void threads_release_directory(struct threads *threads);

void threads_fini(struct threads *threads, thread_gone_callback gone, void *context);

#endif
