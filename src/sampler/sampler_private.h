/* What the files of the sampler thread share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLER_PRIVATE_H
#define OFFBEAT_SAMPLER_SAMPLER_PRIVATE_H

#include "sampler/modules.h"
#include "sampler/sampler_lifecycle.h"
#include "sampler/sampler.h"
#include "sampler/sample_requests.h"
#include "sampler/thread_events.h"
#include "sampler/threads.h"

enum { SHORT_LIVED_BEGUN_MAX = 1024 };

/* By start routine: what threads spent that ended before a tick met them, and what is known of the waits of others. The
 * last one is for all other routines. */
enum { SHORT_LIVED_ROUTINES = 64 };
struct short_lived_threads {
    struct short_lived_sums {
        uint64_t routine;
        uint32_t ends; /* threads that no record has reported yet */
        uint64_t cpu_ns, preempted_ns, woken_ns, blocked_ns, start_wait_ns;
        uint64_t off_ns;                      /* they waited for a processor, or were blocked: nobody knows which */
        uint64_t off_sleeps, off_preemptions; /* so often */
        uint64_t seen_off_ns, seen_delay_ns;  /* of threads that ticks met, and their waits for a processor in it */
        uint64_t timed_wait_ns, timed_preempted_ns; /* their waits that a timer saw, and those after preemptions */
        double woken_waits, other_waits;            /* as the kernel counts switches */
        uint64_t late_ticks, late_ticks_asleep;     /* how often late ticks met one of them */
    } routines[SHORT_LIVED_ROUTINES];
    size_t routine_count;
    size_t begun_count;
    struct thread_event begun[SHORT_LIVED_BEGUN_MAX]; /* that were not listed yet when they said so */
};

struct tick_schedule {
    uint64_t period_start_ns, length_ns; /* the next tick falls somewhere in this period */
    uint64_t left_out, spared;           /* periods before it that have no tick, of those not counted yet, */
    uint64_t uncounted_ns;               /* which begin here */
    uint64_t tick_cost_ns;               /* CPU time of a tick, the average of some */
};

enum { SAMPLER_URGENT_HZ_MAX = 1000 };

struct sampler {
    struct sampler_options options;
    uint64_t period_ns;
    uint64_t start_ns, recording_start_ns;
    uint64_t age_ns;                         /* of a forked process, when the sampler was started in it */
    pid_t starter;                           /* the thread that started the sampler */
    uint64_t system_cpu_ns_before;           /* of the process, then */
    uint64_t starter_cpu_ns, process_cpu_ns; /* its clock, and that of the process, then */
    uint64_t starter_sleeps;                 /* how often it had gone to sleep; UINT64_MAX: not known */
    int64_t wall_offset_ns;                  /* the same in all recordings, whatever is done to the clock meanwhile */
    uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE];
    uint32_t ticks_a_second;
    long page_size;
    uint32_t tick;               /* number of the tick that is open */
    uint32_t ticks_in_recording; /* with that one */
    uint32_t requests_in_tick, requests_in_tick_max;
    uint32_t pages_in_tick, timers_in_tick, switches_in_tick;
    uint64_t tick_span_ns; /* since the tick before the open one */
    uint64_t random_state;
    struct modules_budget for_tables; /* how long the open tick may work on tables that a walk waits for */
    size_t recheck_count;             /* see tick.c */
    bool has_news;                    /* a sample was written since the last flush */
    bool has_unread_names;            /* of threads that ran */
    uint32_t name_refreshes;          /* ticks at which names are read */
    uint32_t first_scans_in_tick;
    uint32_t periods_in_tick; /* that the tick stands for: its limits are multiplied by this */
    bool may_ask_usage;       /* FILTER_USAGE, before the sampler was started */
    bool is_ending;
    struct tick_schedule schedule;
    uint64_t before_ns, deadline_ns, end_ns; /* of ticks: the last one, the next one, the last of all */
    bool tick_is_late;                       /* for the open tick: it came late, or some before it were missed */
    bool sampler_starved;                    /* by several periods: this thread hardly gets a processor */
    bool is_steady;                          /* in the open tick every thread continues with what it did */
    uint64_t steady_periods;                 /* for so long */
    uint64_t timers_full;                    /* how many timers there were when one more was denied; 0: none was */
    uint64_t kernel_tick_ns;                 /* of timers on CPU clocks; 0: there are none */
    uint64_t timer_signal_ns;                /* that one of their signals stands for: a tick, or some */
    uint64_t periods_with_room;              /* whose samples each timer's memory holds, in the open tick */
    uint64_t second_due_ns, names_due_ns;    /* what is done once a second, and when names are read */
    uint64_t flushed_ns;                     /* when the recording was last written out */
    uint64_t followed_ns;                    /* when the program's rights were last read */
    enum recording_end end_reason, end_reason_if_away;
    bool has_finished;
    bool is_resumed, begins_again; /* this thread continues where another one stepped aside; in a new recording */
    uint64_t aside_since_ns;
    struct handed_file handed;
    uint64_t tick_ns; /* when the last tick was opened */
    struct short_lived_threads short_lived_threads;
    uint64_t cpu_ns_of_ended; /* of threads that ended */
    uint64_t unseen_cpu_ns;   /* of threads that ended, after they were last looked at; as of UNSEEN_TICK */
    uint32_t unseen_tick;
    uint64_t own_cpu_ns;      /* a second ago */
    uint64_t measured_cpu_ns; /* of this thread, when the last tick's was measured */
    uint32_t timer_factor;    /* the periods of timers are so much longer, because ticks are left out */
    uint64_t counters[RECORDING_COUNTER_COUNT];
    struct threads threads;
    struct modules modules;
    struct recording_writer *writer;
};

/* --- tick_schedule.c: when ticks come
 * -------------------------------------------------------------------------------------- */

void schedule_first_tick(struct sampler *sampler);

/* A tick begins at NOW_NS, for which the sampler may have waited since it was to begin. */
void schedule_note_delay(struct sampler *sampler, uint64_t now_ns);

/* After a tick, which took COST_NS of CPU time. Periods that are over already have no tick: the next one stands for
 * their time. */
void schedule_next_tick(struct sampler *sampler, uint64_t cost_ns);

/* Periods without a tick that have passed by NOW_NS: of those that were planned, the end of a recording may see few. */
void schedule_count_periods(struct sampler *sampler, uint64_t now_ns);

/* --- tick.c: the work for each thread at a tick ------------------------------------------------------------------- */

/* False if some thread has ended. */
bool tick_all_threads(struct sampler *sampler);

/* Those that were not there yet when all were looked at in this tick. */
void tick_new_threads(struct sampler *sampler);

/* Fetches the replies to the requests of the open tick, which ends thereby. */
void tick_fetch_replies(struct sampler *sampler);

/* The last tick: says what time passed, and looks for no stacks. */
void tick_last(struct sampler *sampler);

/* CPU time of the process that no thread accounts for: threads that ended spent it after they were last looked at. */
uint64_t tick_unseen_cpu_ns(const struct sampler *sampler);

/* Before THREAD is forgotten. */
void tick_thread_ended(struct sampler *sampler, struct target_thread *thread);

/* --- idle_threads.c: threads that sleep, at no cost
 * ---------------------------------------------------------------------- */

/* The count of THREAD's page, to be read before its CPU clock; 0 without a page. */
uint32_t idle_thread_count(const struct target_thread *thread);

/* True if LISTED has not run since it was last known to be asleep; without a page nothing is known. */
bool idle_thread_continues(const struct listed_thread *listed);

/* The thread's CPU clock has stopped, and COUNT was read before it; or the thread has run. */
void idle_thread_note_asleep(struct sampler *sampler, struct listed_thread *listed, uint32_t count);
void idle_thread_note_awake(struct sampler *sampler, struct listed_thread *listed);
void idle_thread_forget(struct sampler *sampler, struct target_thread *thread);

/* --- short_lived_threads.c: threads that live between two ticks
 * ---------------------------------------------------------- */

/* Places are given out in their order; the last one has all routines that come too late. */
struct short_lived_sums *short_lived_routine(struct sampler *sampler, uint64_t routine);

/* Reads what threads have said. The list of threads must be newer than that. */
void short_lived_threads_read(struct sampler *sampler);

/* THREAD is looked at for the first time. */
void short_lived_threads_first_seen(struct sampler *sampler, struct target_thread *thread);

/* THREAD, which a tick met, has ended, and all of it is written. If its life was short, its stacks stand for threads of
 * the same routine that no tick met: ticks fall at random, so they meet each place as often as its share of the time.
 */
void short_lived_threads_credit(struct sampler *sampler, const struct target_thread *thread);

/* A thread that was listed, but never looked at. */
void short_lived_threads_add(struct sampler *sampler, const struct thread_event *end);

/* The recording ends: for what remains there is no stack. */
void short_lived_threads_write_rest(struct sampler *sampler);

/* Likewise for CPU time of threads that said nothing. */
void short_lived_threads_write_unseen(struct sampler *sampler, uint64_t cpu_ns);

/* --- context_switches.c: waits for a processor, without a timer
 * ----------------------------------------------------------- */

struct ended_waits {
    double woken, others;
};

/* THREAD's waits since this was last read. False if that is not known. */
bool context_switches_count_waits(struct target_thread *thread, struct ended_waits *ret);
/* The same of one that has said how often it switched, because it ended. */
bool context_switches_count_last_waits(const struct target_thread *thread, struct ended_waits *ret);

/* --- timer.c: threads that run for long, sampled by the kernel ---------------------------------------------------- */

void timer_note_busy(struct sampler *sampler, struct target_thread *thread);
/* True if the open tick has time for one more. */
bool timer_may_open(const struct sampler *sampler);
/* True if THREAD has no timer, and the kernel grants it none, or its stacks are too large for one. */
bool timer_is_denied(const struct sampler *sampler, const struct target_thread *thread);
void timer_forget(struct sampler *sampler, struct target_thread *thread);
void timer_forget_sleepers(struct sampler *sampler); /* once a second: those that have not run for a while */

/* True if THREAD runs, or waits for a processor, by the last report of its timer. */
bool timer_is_running(const struct target_thread *thread);

/* True if it has done nothing else since the timer was read before. */
bool timer_has_run_on(const struct target_thread *thread);

/* Periods whose samples its memory holds. */
uint64_t timer_room(const struct target_thread *thread);

/* True if THREAD has a timer, which is blind to system calls. */
bool timer_sees_user_code(const struct target_thread *thread);

/* For such a timer. True if there are periods at whose end the thread was inside the kernel, and it is time to ask
 * THREAD, which has run for CPU_NS, where it spent them. */
bool timer_wants_reply(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* True if it spends little time there: it is asked seldom, and not by its CPU clock meanwhile. */
bool timer_is_seldom_in_call(const struct target_thread *thread);

/* For such a timer. CPU time that context switches took, not written yet: nearly all switches of a thread that blocks
 * begin and end where it does. */
uint64_t timer_switching_ns(const struct target_thread *thread);
void timer_note_switching(struct target_thread *thread, uint64_t written_ns);

/* The CPU time, at most CPU_NS, that the periods which are counted stand for, and switches. */
uint64_t timer_accounted_cpu_ns(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* THREAD is about to be asked for a stack for these periods, as many as there are now: an reply is fetched when
 * further periods have passed, whose stacks have not been read. */
void timer_note_request(const struct sampler *sampler, struct target_thread *thread);

/* THREAD's CPU clock asks it from now on. */
void timer_note_cpu_clock_start(const struct sampler *sampler, struct target_thread *thread);

/* Whether the reply, one of SIGNALS, is written. WAS_IN_CALL: it came from inside a system call. OPEN_CALL_NS: as for
 * sample_credit_accept(). */
bool timer_accepts_reply(struct target_thread *thread, struct timer_signals signals, bool was_in_call,
                         uint64_t open_call_ns);

/* Of which kind the next one should be. */
enum signal_origin timer_preferred_origin(const struct target_thread *thread);

/* There is no reply: the periods are counted all the same. */
void timer_give_up_request(struct target_thread *thread);

/* What is new of THREAD's timer, if it has one. How many samples there are. */
uint32_t timer_fetch(struct sampler *sampler, struct target_thread *thread, struct perf_timer_news *ret_news);

/* True if the oldest of NEWS is the sample that THREAD's timer was asked for when it was opened. */
bool timer_was_asked(const struct target_thread *thread, const struct perf_timer_news *news);

/* That sample says nothing of THREAD's CPU time: the next ones come sooner than usual, if that is more than 1 ms. */
void timer_sample_soon(struct sampler *sampler, struct target_thread *thread);

/* Walks the stack of SAMPLE; UNWIND_PENDING: build a table, and again. What is not in its copy is read from the
 * thread's memory. False if the kernel has overwritten the copy. */
bool timer_walk(struct sampler *sampler, struct target_thread *thread, const struct perf_timer_sample *sample,
                uint64_t addresses[RECORDING_FRAMES_MAX], size_t *ret_count, enum unwind_outcome *ret_outcome);

/* --- run_queue_waits.c: where threads wait for a processor
 * ------------------------------------------------------------------ */

enum { LONG_WAIT_NS = 8000000 }; /* during which the kernel takes no other stack */

/* True if THREAD has the right to a timer that sees where its waits begin. */
bool run_queue_waits_may_have_timer(const struct target_thread *thread);

/* THREAD has waited for WAIT_NS of which nothing is written yet. If that is much, its waits are seen from now on. */
void run_queue_waits_note(struct sampler *sampler, struct target_thread *thread, uint64_t wait_ns);

/* True if so: then other stacks do not stand for them. */
bool run_queue_waits_are_seen(const struct sampler *sampler, const struct target_thread *thread);

/* True if all that were looked at began where it spends its CPU time. */
bool run_queue_waits_are_where_it_runs(const struct target_thread *thread);

/* Where one of the waits began that have ended, chosen by chance: the longer it was, the likelier. */
bool run_queue_waits_fetch_stop(struct sampler *sampler, struct target_thread *thread,
                                struct perf_timer_sample *ret_sample);

/* Without the right to such a timer: THREAD is to be asked where it waits when it is met waiting. */
bool run_queue_waits_are_asked(const struct target_thread *thread);
void run_queue_waits_note_request(const struct sampler *sampler, struct target_thread *thread, bool is_sent);
void run_queue_waits_note_reply(struct target_thread *thread, bool was_in_call);

void run_queue_waits_forget(struct target_thread *thread);

/* --- cpu_clock_timer.c: the same, where the kernel denies that
 * -------------------------------------------------------- */

/* Once, on the thread that starts the sampler. */
void cpu_clock_timer_prepare(struct sampler *sampler);

/* True if THREAD, which has run for CPU_NS, can have no other timer, or one that is blind to system calls in which it
 * spent time, and has none. */
bool cpu_clock_timer_is_wanted(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* From now on THREAD, which has run for CPU_NS, hands its stack over at the kernel's ticks. Nothing, if it cannot be
 * sent a signal. */
void cpu_clock_timer_arm(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* At each scan of a thread that has run: whether it can still be sent signals. */
void cpu_clock_timer_check(struct sampler *sampler, struct target_thread *thread);

/* Where threads are armed: periods for which there is room for an reply each. */
uint64_t cpu_clock_timer_room(const struct sampler *sampler);

/* True if the timer of THREAD, which is armed, sees all that there is to see: no sleep, which CPU mode does not ask
 * for. */
bool cpu_clock_timer_has_run_on(const struct sampler *sampler, struct target_thread *thread);

/* True if the kernel's ticks do not meet THREAD, which has UNWRITTEN_NS of CPU time without a stack. */
bool cpu_clock_timer_is_late(const struct sampler *sampler, const struct target_thread *thread, uint64_t unwritten_ns);

/* SIGNALS of THREAD, which were just read, and those that ticks in a long call would have been. For one whose timer
 * sees user code, as the next one. */
struct timer_signals cpu_clock_timer_all_signals(const struct sampler *sampler, struct target_thread *thread,
                                                 struct timer_signals signals);

/* How long THREAD had been in a call that continued when its signals were last read; 0 in no call, or a short one. */
uint64_t cpu_clock_timer_open_call_ns(const struct sampler *sampler, const struct target_thread *thread);

/* True if THREAD, whose reply comes from a call, has been in that since before the last scan. */
bool cpu_clock_timer_meets_long_call(const struct sampler *sampler, const struct target_thread *thread);

/* What SIGNALS of THREAD, which were just read, stand for. */
struct timer_signals_time {
    uint64_t cpu_ns;        /* all that is not written of its CPU time up to there; */
    uint64_t long_calls_ns; /* of this, long calls */
};
struct timer_signals_time cpu_clock_timer_time_of(const struct sampler *sampler, struct target_thread *thread,
                                                  struct timer_signals signals);

void cpu_clock_timer_forget(struct target_thread *thread);
void cpu_clock_timer_forget_all(struct sampler *sampler);

/* Those that are armed walk with the current snapshot of the modules from now on. True if nothing uses an older one. */
bool cpu_clock_timer_renew_all(struct sampler *sampler);

#endif
