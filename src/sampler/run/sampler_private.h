/* Shared by the files of the sampler thread.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLER_PRIVATE_H
#define OFFBEAT_SAMPLER_SAMPLER_PRIVATE_H

#include "sampler/ledger/ledger.h"
#include "sampler/modules/modules.h"
#include "sampler/source/sample_requests.h"
#include "sampler/sampler.h"
#include "sampler/run/sampler_lifecycle.h"
#include "sampler/observe/thread_events.h"
#include "sampler/run/threads.h"

enum { SHORT_LIVED_BEGUN_MAX = 1024, SAMPLER_URGENT_HZ_MAX = 1000 };

/* Threads that live between two ticks. */
struct short_lived_threads {
    struct routine_table routines;
    size_t begun_count;
    struct thread_event begun[SHORT_LIVED_BEGUN_MAX]; /* begin events of threads that were not listed yet */
};

/* When ticks come, and the place of the open tick in that. */
struct tick_schedule {
    uint32_t ticks_a_second;
    uint64_t period_start_ns, length_ns; /* period in which the next tick falls: CLOCK_MONOTONIC and length, ns */
    uint64_t left_out;                   /* uncounted periods without a tick, because ticks cost too much */
    uint64_t spared;                     /* uncounted periods without a tick, because there is nothing to see */
    uint64_t uncounted_ns;               /* start of the first uncounted period, CLOCK_MONOTONIC */
    uint64_t tick_cost_ns;               /* moving average of the CPU time of a tick, ns */
    uint64_t deadline_ns;                /* start of the next tick, CLOCK_MONOTONIC */
    uint64_t end_ns;                     /* end of all ticks, CLOCK_MONOTONIC */
    uint32_t periods_in_tick;            /* periods that the tick stands for; a factor for all limits of a tick */
    bool is_late;                        /* true if the tick comes late, or periods without a tick precede it */
    bool is_steady;                      /* true if each thread continues what it did at the previous tick */
    uint64_t steady_periods;             /* periods in a row with IS_STEADY */
    uint64_t periods_with_room;          /* periods whose samples fit into the memory of every timer */
};

/* State of the process when the sampler was started. */
struct sampler_start {
    uint64_t ns;            /* CLOCK_MONOTONIC */
    uint64_t age_ns;        /* age of a forked process, ns; else 0 */
    pid_t thread;           /* thread that called sampler_start */
    uint64_t thread_cpu_ns; /* CPU time of THREAD, ns */
    uint64_t thread_sleeps; /* voluntary context switches of THREAD; UINT64_MAX: unknown */
    uint64_t process_cpu_ns;
    uint64_t system_cpu_ns; /* CPU time of the process inside the kernel, ns */
    bool may_ask_usage;     /* true if the seccomp filters allow FILTER_USAGE */
};

/* Work of the open tick that is limited. */
struct tick_spent {
    uint32_t requests;
    uint32_t pages;                     /* perf pages opened */
    uint32_t timers;                    /* perf timers opened */
    uint32_t switch_counts;             /* counts of context switches read */
    uint32_t first_scans;               /* threads whose first stack was read */
    struct modules_budget table_budget; /* time for tables that a walk waits for */
};

/* Limits and lengths of timers and requests. */
struct timer_limits {
    uint64_t full_at;        /* number of perf timers when the kernel refused one more; 0: it has not */
    uint32_t factor;         /* multiple of the period that perf timers use, because ticks are left out */
    uint64_t kernel_tick_ns; /* kernel tick of timers on CPU clocks, ns; 0: there are no such timers */
    uint64_t signal_ns;      /* CPU time that one of their signals stands for, ns */
    uint32_t requests_in_tick_max;
};

/* Work that is done from time to time. */
struct sampler_chores {
    bool has_news;           /* true if a sample was written since the last flush */
    bool has_unread_names;   /* true if names of threads that ran remain to be read */
    uint32_t name_refreshes; /* ticks that still have to read names */
    uint64_t second_due_ns;  /* next work of each second, CLOCK_MONOTONIC */
    uint64_t names_due_ns;   /* next reading of names, CLOCK_MONOTONIC */
    uint64_t flushed_ns;     /* last flush, CLOCK_MONOTONIC */
    uint64_t followed_ns;    /* last reading of the program's rights, CLOCK_MONOTONIC */
};

/* The end, and stepping aside. */
struct sampler_ending {
    enum recording_end reason, reason_if_away;
    bool is_ending, has_finished;
    bool is_resumed;         /* true if this thread continues the work of one that stepped aside */
    bool begins_again;       /* true if it does so in a new recording */
    uint64_t aside_since_ns; /* CLOCK_MONOTONIC */
    struct handed_file handed;
};

/* CPU time that is not in the ledger of a listed thread. */
struct unlisted_cpu {
    uint64_t ended_ns;  /* CPU time of threads that ended, ns */
    uint64_t unseen_ns; /* CPU time of ended threads after their last scan, as of UNSEEN_TICK, ns */
    uint32_t unseen_tick;
    uint64_t own_ns;       /* CPU time of the sampler thread a second ago, ns */
    uint64_t own_delay_ns; /* time that the sampler thread had waited for a processor, last read, ns */
    uint64_t measured_ns;  /* CPU time of the sampler thread at the end of the last tick, ns */
};

struct sampler {
    struct sampler_options options;
    uint64_t random_state;
    uint64_t counters[RECORDING_COUNTER_COUNT];
    struct threads threads;
    struct modules modules;
    struct recording_writer *writer;
    struct sampler_start start;
    struct tick_schedule schedule;
    struct ledger_tick tick;
    struct tick_spent spent;
    struct timer_limits timers;
    struct sampler_chores chores;
    struct sampler_ending ending;
    struct short_lived_threads short_lived_threads;
    struct unlisted_cpu cpu;
};

static inline bool sampler_is_cpu_mode(const struct sampler *sampler)
{
    return sampler->tick.mode == RECORDING_CPU;
}

/* --- tick_schedule.c: when ticks come ----------------------------------------------------------------------------- */

void schedule_first_tick(struct sampler *sampler);

/* Notes that a tick begins at NOW_NS, possibly later than it was due. */
void schedule_note_delay(struct sampler *sampler, uint64_t now_ns);

/* Places the tick that follows one of COST_NS of CPU time. It also stands for the periods that are over. */
void schedule_next_tick(struct sampler *sampler, uint64_t cost_ns);

/* Counts the periods without a tick that have passed by NOW_NS; a recording can end before all of them. */
void schedule_count_periods(struct sampler *sampler, uint64_t now_ns);

/* --- tick.c: the work for each thread at a tick ------------------------------------------------------------------- */

/* Scans all threads. Returns false if one has ended. */
bool tick_all_threads(struct sampler *sampler);

/* Scans the threads that tick_all_threads did not see in this tick. */
void tick_new_threads(struct sampler *sampler);

/* Performs the last tick of a recording, which writes times but takes no stacks. */
void tick_last(struct sampler *sampler);

/* --- thread_time.c: what the ledger of a thread is told ----------------------------------------------------------- */

/* Reads how long THREAD, which has run since the last scan, waited for a processor. Does nothing in CPU mode. */
void thread_time_read_delay(struct sampler *sampler, struct target_thread *thread);

/* Write STACK for time that is not written yet: CPU time up to CPU_NS of THREAD's clock, waits for a processor, or
 * blocked time. IS_AWAKE: THREAD has been woken since. */
void thread_time_credit_running(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                                const struct found_stack *stack);
void thread_time_credit_wait(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack);
void thread_time_credit_blocked(struct sampler *sampler, struct target_thread *thread, bool is_awake,
                                const struct found_stack *stack);

/* Write the rest of THREAD: because the recording ends, or because THREAD has ended and ran for UNSEEN_CPU_NS after the
 * last scan, and perhaps has reported when it ended. */
void thread_time_write_rest(struct sampler *sampler, struct target_thread *thread);
void thread_time_close(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns);
void thread_time_close_as_reported(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns);

/* --- idle_threads.c: threads that sleep, at no cost --------------------------------------------------------------- */

/* Returns the count of THREAD's perf page, to be read before its CPU clock; 0 without a page. */
uint32_t idle_thread_count(const struct target_thread *thread);

/* Returns true if LISTED has a page and has not run since it was last known to be asleep. */
bool idle_thread_continues(const struct listed_thread *listed);

/* Notes that LISTED is asleep: its CPU clock has stopped, and COUNT was read before the clock. */
void idle_thread_note_asleep(struct sampler *sampler, struct listed_thread *listed, uint32_t count);
void idle_thread_note_awake(struct sampler *sampler, struct listed_thread *listed);
void idle_thread_forget(struct sampler *sampler, struct target_thread *thread);

/* --- short_lived_threads.c: threads that live between two ticks --------------------------------------------------- */

/* Reads the events that threads have written. The list of threads must be newer than the events. */
void short_lived_threads_read(struct sampler *sampler);

/* Gives THREAD its begin event, when a tick sees it for the first time. */
void short_lived_threads_first_seen(struct sampler *sampler, struct target_thread *thread);

/* Credits unseen threads to the stacks of THREAD, which has ended and is written completely. If its life was short, its
 * stacks stand for the threads of its routine that no tick saw: ticks fall at random, so they meet each place as often
 * as its share of the time. */
void short_lived_threads_credit(struct sampler *sampler, const struct target_thread *thread);

/* Adds a thread that was listed, but never scanned. */
void short_lived_threads_add(struct sampler *sampler, const struct thread_event *end);

/* Writes the remaining sums without a stack, at the end of a recording. */
void short_lived_threads_write_rest(struct sampler *sampler);

/* Writes CPU_NS of threads that wrote no event, without a stack. */
void short_lived_threads_write_unseen(struct sampler *sampler, uint64_t cpu_ns);

/* --- context_switches.c: waits for a processor, without a timer --------------------------------------------------- */

/* Counts THREAD's waits since the last call. Returns false if they are unknown, or there are none. */
bool context_switches_count_waits(struct target_thread *thread, struct ended_waits *ret);
/* Counts the last waits of THREAD, which has ended and reported its switches. */
bool context_switches_count_last_waits(const struct target_thread *thread, struct ended_waits *ret);

/* --- timer.c: threads that run for long, sampled by the kernel ---------------------------------------------------- */

/* Opens a perf timer for THREAD, which runs, unless it has one or may have none. */
void timer_note_busy(struct sampler *sampler, struct target_thread *thread);
/* Returns true if the open tick has time to open one more timer. */
bool timer_may_open(const struct sampler *sampler);
/* Returns true if THREAD has no timer, and the kernel grants none or its stacks are too large for one. */
bool timer_is_denied(const struct sampler *sampler, const struct target_thread *thread);
void timer_forget(struct sampler *sampler, struct target_thread *thread);
/* Closes the timers of threads that have not run for a while. Called once a second. */
void timer_forget_sleepers(struct sampler *sampler);

/* Returns true if THREAD runs, or waits for a processor, by the last record of its timer. */
bool timer_is_running(const struct target_thread *thread);

/* Returns true if THREAD has done nothing else since the previous reading of its timer. */
bool timer_has_run_on(const struct target_thread *thread);

/* Returns the number of periods whose samples the memory of THREAD's timer holds. */
uint64_t timer_room(const struct target_thread *thread);

/* Returns true if THREAD has a timer that sees only user code, and is blind to system calls. */
bool timer_sees_user_code(const struct target_thread *thread);

/* The next five functions are for such a timer (sample_credit.h).
 *
 * Returns true if THREAD was inside the kernel at the end of some periods and is to be asked where: a request is due by
 * CPU_NS of its clock. */
bool timer_wants_reply(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Returns the CPU time of context switches that is not written yet, ns. Nearly all switches of a thread that blocks
 * begin and end where it blocks. */
uint64_t timer_switching_ns(const struct target_thread *thread);

/* Returns the CPU time up to CPU_NS that counted periods and switches stand for. */
uint64_t timer_accounted_cpu_ns(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Notes for which periods THREAD is about to be asked for a stack: the reply is fetched after further periods, whose
 * stacks have not been read. */
void timer_note_request(const struct sampler *sampler, struct target_thread *thread);

/* Notes that THREAD's CPU clock asks it from now on. */
void timer_note_cpu_clock_start(const struct sampler *sampler, struct target_thread *thread);

/* Returns the origin that the next reply of THREAD should have. */
enum signal_origin timer_preferred_origin(const struct target_thread *thread);

/* Reads the new records of THREAD's timer, if it has one. Returns the number of samples that are still in memory. */
uint32_t timer_fetch(struct sampler *sampler, struct target_thread *thread, struct perf_timer_news *ret_news);

/* Returns true if the oldest of NEWS is the sample that was requested when THREAD's timer was opened. */
bool timer_was_asked(const struct target_thread *thread, const struct perf_timer_news *news);

/* Shortens the timer's period, because a sample said nothing about THREAD's CPU time, unless it would be under 1 ms. */
void timer_sample_soon(struct sampler *sampler, struct target_thread *thread);

/* Walks the stack of SAMPLE, and reads from the thread's memory what is not in the copy. After UNWIND_PENDING the
 * caller builds a table and calls again. Returns false if the kernel has overwritten the copy. */
bool timer_walk(struct sampler *sampler, struct target_thread *thread, const struct perf_timer_sample *sample,
                uint64_t addresses[RECORDING_FRAMES_MAX], size_t *ret_count, enum unwind_outcome *ret_outcome);

/* --- run_queue_waits.c: where threads wait for a processor -------------------------------------------------------- */

enum { LONG_WAIT_NS = 8000000 }; /* a wait that is long enough to deserve its own stack, ns */

/* Returns true if THREAD may have a timer that sees where its waits begin. */
bool run_queue_waits_may_have_timer(const struct target_thread *thread);

/* Notes that THREAD has WAIT_NS of unwritten waits. If that is much, its waits are observed from now on. */
void run_queue_waits_note(struct sampler *sampler, struct target_thread *thread, uint64_t wait_ns);

/* Returns true if THREAD's waits are observed, so that other stacks do not stand for them. */
bool run_queue_waits_are_seen(const struct sampler *sampler, const struct target_thread *thread);

/* Chooses one of the waits that have ended, at random in proportion to their lengths. Returns false if there is none;
 * else *RET_SAMPLE is where it began. */
bool run_queue_waits_fetch_stop(struct sampler *sampler, struct target_thread *thread,
                                struct perf_timer_sample *ret_sample);

/* Returns true if THREAD has no right to such a timer, and is to be asked by a signal when it is seen waiting. */
bool run_queue_waits_are_asked(const struct target_thread *thread);
void run_queue_waits_note_request(const struct sampler *sampler, struct target_thread *thread, bool is_sent);
void run_queue_waits_note_reply(struct target_thread *thread, bool was_in_call);

/* --- cpu_clock_timer.c: threads that run, where the kernel grants no perf timer ----------------------------------- */

/* Finds out whether such timers are possible. Called once, on the thread that starts the sampler. */
void cpu_clock_timer_prepare(struct sampler *sampler);

/* Returns true if THREAD, which has run for CPU_NS, should have such a timer: it can have no other one, or one that is
 * blind to system calls in which it spent time. */
bool cpu_clock_timer_is_wanted(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Starts the timer of THREAD, which has run for CPU_NS: it hands over its stack at the kernel's ticks. Does nothing if
 * the thread cannot be sent a signal. */
void cpu_clock_timer_arm(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Ends the timer of THREAD if it can be sent no signal. Called at each scan of a thread that has run. */
void cpu_clock_timer_check(struct sampler *sampler, struct target_thread *thread);

/* Returns the number of periods for which a thread with such a timer has room for replies. */
uint64_t cpu_clock_timer_room(const struct sampler *sampler);

/* Returns true if the timer of THREAD has seen everything: in wall-clock mode, the thread has not slept. */
bool cpu_clock_timer_has_run_on(const struct sampler *sampler, struct target_thread *thread);

/* Returns true if the kernel's ticks do not meet THREAD, which has UNWRITTEN_NS of CPU time without a stack. */
bool cpu_clock_timer_is_late(const struct sampler *sampler, const struct target_thread *thread, uint64_t unwritten_ns);

/* Returns SIGNALS of THREAD, which were just read, and those that ticks in a long call would have been. This and the
 * next function are for a thread with a perf timer that sees user code. */
struct timer_signals cpu_clock_timer_all_signals(const struct sampler *sampler, struct target_thread *thread,
                                                 struct timer_signals signals);

/* Returns how long THREAD had been in the call that was open when its signals were last read, ns; 0: in none, or a
 * short one. */
uint64_t cpu_clock_timer_open_call_ns(const struct sampler *sampler, const struct target_thread *thread);

/* Returns true if the call from which THREAD's reply comes began before the last scan. */
bool cpu_clock_timer_meets_long_call(const struct sampler *sampler, const struct target_thread *thread);

/* Times that timer signals stand for. */
struct timer_signals_time {
    uint64_t cpu_ns;        /* the thread's CPU clock up to which they stand for unwritten time, ns */
    uint64_t long_calls_ns; /* the part of that time in long calls, ns */
};

/* Returns what SIGNALS of THREAD, which were just read, stand for. */
struct timer_signals_time cpu_clock_timer_time_of(const struct sampler *sampler, struct target_thread *thread,
                                                  struct timer_signals signals);

void cpu_clock_timer_forget(struct target_thread *thread);
void cpu_clock_timer_forget_all(struct sampler *sampler);

/* Has all such timers walk with the current snapshot of the modules. Returns true if nothing uses an older one. */
bool cpu_clock_timer_renew_all(struct sampler *sampler);

#endif
