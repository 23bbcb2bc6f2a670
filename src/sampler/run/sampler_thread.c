/* The sampler thread: a tick every period, at which every thread is scanned (tick.c).
 * SPDX-License-Identifier: MIT */
#include "sampler/run/short_lived_threads.h"
#include "sampler/run/thread_time.h"
#include "sampler/run/tick.h"
#include "sampler/run/tick_schedule.h"
#include "sampler/run/ended_threads.h"
#include "sampler/run/thread_sources.h"

#include "base/futex.h"
#include "base/kernel.h"
#include "base/pages.h"
#include "base/plain_text.h"
#include "base/seccomp_filter.h"
#include "base/unsigned.h"
#include "sampler/run/interpreted_threads.h"
#include "sampler/ledger/recording_sink.h"
#include "sampler/record/finished_recordings.h"
#include "sampler/record/recording_session.h"
#include "sampler/run/sampler_lifecycle.h"
#include "sampler/run/privileges.h"
#include "sampler/kernel/cpu_clock.h"
#include "sampler/kernel/own_descriptors.h"
#include "sampler/kernel/priority.h"
#include "sampler/kernel/process_info.h"
#include "sampler/source/signal_choice.h"
#include "sampler/source/sample_requests.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum {
    UNSEEN_NS_MIN = 100000, /* largest difference between the clocks, ns */
    FOLLOW_EVERY_NS = 100000000,
    FLUSH_EVERY_NS = 100000000,
    FLUSH_NEWS_EVERY_NS = 5000000,
    NAMES_EVERY_NS = 100000000,     /* pause between readings of names in the first second, ns */
    TABLES_A_TICK_NS_MIN = 1000000, /* least time for tables that walks wait for, at high rates, ns */
    TABLES_SHARE = 8,               /* divisor: share of the time for tables that walks can do without */
    REPLIES_WAIT_NS = 20000000,     /* wait for the last replies at the end, ns */
    URGENT_PARTS = 4,               /* divisor: share of a processor that an urgent thread may use */
    NAME_REFRESHES = 2,             /* readings after a thread was named: a tick has to see it running first */
};

static struct sampler sampler;
static struct recording_session session;
static struct ledger_sink sink;
static char cache_directory[1024];
static atomic_bool has_new_name;

/* --- Records ------------------------------------------------------------------------------------------------------ */

static bool read_usage(int whose, struct rusage *ret_usage)
{
    return filter_allows(FILTER_USAGE) && kernel_call3(SYS_getrusage, whose, kernel_address(ret_usage), 0) == 0;
}

/* Returns the CPU time of the process inside the kernel, as the kernel counts it, ns. */
static uint64_t system_cpu_ns(void)
{
    struct rusage usage = {0};
    if (!read_usage(RUSAGE_SELF, &usage)) return 0;
    return (uint64_t)usage.ru_stime.tv_sec * SECOND_NS + (uint64_t)usage.ru_stime.tv_usec * 1000;
}

/* Notes the state of the process on the thread that starts the sampler: milliseconds may pass until the sampler thread
 * has a processor. */
static void note_start(void)
{
    struct rusage usage = {0};
    bool is_forked = sampler.options.forked_ns != 0; /* its age includes its waits */
    if (sampler.start.may_ask_usage && sampler.tick.mode == RECORDING_WALL && !is_forked)
        (void)thread_read_own_delay(&sampler.counters[RECORDING_WAIT_BEFORE_NS]);
    uint64_t now_ns = monotonic_ns();
    sampler.start.ns = is_forked ? sampler.options.forked_ns : now_ns;
    sampler.start.age_ns = now_ns - sampler.start.ns;
    sampler.start.thread = kernel_thread_id();
    sampler.start.thread_sleeps = read_usage(RUSAGE_THREAD, &usage) ? (uint64_t)usage.ru_nvcsw : UINT64_MAX;
    sampler.start.thread_cpu_ns = thread_own_cpu_ns();
    (void)kernel_clock_ns(CLOCK_PROCESS_CPUTIME_ID, &sampler.start.process_cpu_ns);
    sampler.start.system_cpu_ns = system_cpu_ns();
}

/* Opens the ledgers of the first threads, except those that were created since note_start. */
static void note_first_threads(void)
{
    for (size_t i = 0; i < sampler.threads.count; i++) {
        struct target_thread *thread = sampler.threads.items[i].thread;
        bool is_starter = thread->files.tid == sampler.start.thread;
        if (thread->ledger.life.created_ns >= sampler.start.ns) continue;
        uint64_t cpu_ns = sampler.start.thread_cpu_ns;
        if (!is_starter && !thread_cpu_ns(thread->files.tid, &cpu_ns)) continue;
        ledger_open_existing(&thread->ledger, cpu_ns);
        if (is_starter) {
            thread->source.last_sleep = (struct seen_sleep){sampler.start.thread_sleeps, cpu_ns};
        }
        if (is_starter && sampler.options.forked_ns)
            ledger_open_forked(&sampler.tick, &thread->ledger, sampler.start.process_cpu_ns, sampler.start.age_ns);
    }
}

static void write_counters(void)
{
    uint64_t system_ns = system_cpu_ns();
    sampler.counters[RECORDING_SYSTEM_CPU_NS] = system_ns - sampler.start.system_cpu_ns;
    uint64_t *perf_denial = &sampler.counters[RECORDING_PERF_ERRNO];
    if (*perf_denial == 0 && !filter_allows(FILTER_PERF))
        *perf_denial = EPERM; /* no thread has slept long enough to need a page */
    sampler.counters[RECORDING_BYTES_LOST] = session.writer.bytes_lost;
    sampler.counters[RECORDING_PRIORITY] = thread_is_urgent();
    sampler.counters[RECORDING_FILE_ERRNO] = (uint64_t)process_file_errno();
    sampler.counters[RECORDING_MODULES_WITHOUT_TABLE] = sampler.modules.tables.missing;
    sampler.counters[RECORDING_TABLE_BYTES] = sampler.modules.tables.bytes;
    sampler.counters[RECORDING_TABLE_NS] = sampler.modules.tables.spent_ns;
    sampler.counters[RECORDING_THREADS_MISSED] = sampler.threads.missed;
    (void)thread_cpu_ns(sampler.threads.sampler_tid, &sampler.counters[RECORDING_SAMPLER_CPU_NS]);
    recording_counters(&session.writer, sampler.counters);
}

static void write_usage_of(uint64_t cpu_ns)
{
    char text[128];
    uint64_t pages = 0;
    /* "SIZE RESIDENT …" in pages: proc(5). */
    if (read_small_file("/proc/self/statm", text, sizeof(text)) > 0) {
        const char *resident = strchr(text, ' ');
        if (resident) resident++;
        pages = resident ? plain_parse(&resident, 10) : 0;
    }
    recording_usage(&session.writer, cpu_ns, pages * pages_size());
}

static void write_usage(void)
{
    uint64_t cpu_ns = 0;
    (void)kernel_clock_ns(CLOCK_PROCESS_CPUTIME_ID, &cpu_ns);
    write_usage_of(cpu_ns);
}

/* --- One recording after the other -------------------------------------------------------------------------------- */

static void begin_recording(uint64_t start_ns)
{
    recording_session_begin(&session, start_ns, process_has_own_descriptors());
    sampler.tick.recording_start_ns = start_ns;
    if (start_ns == sampler.start.ns)
        write_usage_of(sampler.start.process_cpu_ns);
    else
        write_usage();
    interpreted_threads_begin_recording(&sampler);
}

static void end_recording(void)
{
    short_lived_threads_write_rest(&sampler);
    bool may_open = sampler.counters[RECORDING_END_REASON] == RECORDING_END_NONE; /* not under a filter that may kill */
    if (may_open) modules_keep_deleted(&sampler.modules);
    recording_writer_flush(&session.writer);
    write_usage();
    write_counters();
    recording_session_end(&session);
}

static void write_rest(void)
{
    for (size_t i = 0; i < sampler.threads.count; i++)
        thread_time_write_rest(&sampler, sampler.threads.items[i].thread);
}

/* Begins a new recording if it is time, between two ticks: all records of the last one, at BEFORE_NS, are written.
 * Returns when the next tick's time begins. */
static uint64_t change_recording(uint64_t now_ns, uint64_t before_ns)
{
    uint64_t start_ns;
    if (sampler.tick.number == 0 || !recording_session_is_over(&session, now_ns, before_ns, &start_ns))
        return before_ns;
    write_rest();
    end_recording();
    begin_recording(start_ns);
    modules_write_again(&sampler.modules, &session.writer);
    threads_write_again(&sampler.threads, &session.writer);
    return start_ns;
}

void sampler_cut(void)
{
    atomic_store(&session.is_cut_wanted, true);
}

void sampler_note_thread_begin(uint64_t routine, uint64_t created_ns)
{
    /* The event takes system calls, for which a filter may kill the program. */
    if (sampler.start.may_ask_usage) thread_events_begin(routine, created_ns);
}

void sampler_note_thread_end(void)
{
    if (sampler_is_present()) thread_events_end();
}

void sampler_note_name(void)
{
    atomic_store(&has_new_name, true);
}

pid_t sampler_leave_out(void)
{
    pid_t thread = kernel_thread_id();
    thread_events_stay_silent();
    threads_leave_out(thread);
    return thread;
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

static void thread_gone(void *context, struct target_thread *thread)
{
    ended_thread_close(context, thread);
}

static void refresh_threads(void)
{
    sampler.threads.is_brief = sampler.tick.is_starved;
    threads_refresh(&sampler.threads, &session.writer, thread_gone, &sampler);
    short_lived_threads_read(&sampler);
}

/* Returns true if EVERY_NS have passed since it last did. */
static bool is_due(uint64_t *next_ns, uint64_t now_ns, uint64_t every_ns)
{
    if (now_ns < *next_ns) return false;
    *next_ns = now_ns + every_ns;
    return true;
}

static void open_tick(uint64_t now_ns, uint64_t before_ns)
{
    enum { PERIODS_MAX = 32 };
    schedule_count_periods(&sampler, now_ns);
    sampler.tick.number++;
    session.tick_count++;
    sampler.counters[RECORDING_TICKS]++;
    sampler.tick.start_ns = now_ns;
    sampler.tick.span_ns = now_ns - before_ns;
    sampler.schedule.periods_in_tick =
        (uint32_t)greatest(1, least(sampler.tick.span_ns / sampler.tick.period_ns, PERIODS_MAX));
    if (sampler.tick.stopped_ns > sampler.tick.span_ns) sampler.tick.stopped_ns = 0; /* it was before this recording */
    recording_tick(&session.writer, now_ns - before_ns);
}

static void once_a_second(void)
{
    write_counters();
    /* A thread that is more urgent than the program must not take its time away. */
    uint64_t cpu_ns = sampler.counters[RECORDING_SAMPLER_CPU_NS];
    if (cpu_ns > sampler.cpu.own_ns + SECOND_NS / URGENT_PARTS) thread_end_urgency();
    sampler.cpu.own_ns = cpu_ns;
    (void)thread_read_own_delay(&sampler.cpu.own_delay_ns);
    write_usage();
    sources_forget_sleepers(&sampler);
}

/* Flushes the recording from time to time: a tick without a change is a few bytes, and ten of them are one write. */
static void flush_sometimes(uint64_t now_ns)
{
    uint64_t every_ns = sampler.chores.has_news ? FLUSH_NEWS_EVERY_NS : FLUSH_EVERY_NS;
    if (now_ns < sampler.chores.flushed_ns + every_ns) return;
    recording_writer_flush(&session.writer);
    sampler.chores.flushed_ns = now_ns;
    sampler.chores.has_news = false;
}

static void run_tick(uint64_t now_ns, uint64_t before_ns)
{
    uint64_t limit_ns = sampler.tick.period_ns / 4 * 3;
    if (limit_ns < TABLES_A_TICK_NS_MIN) limit_ns = TABLES_A_TICK_NS_MIN;
    sampler.spent.table_budget = modules_budget_of(limit_ns, now_ns - before_ns);
    sources_fetch_replies(&sampler);
    before_ns = change_recording(now_ns, before_ns);
    if (modules_have_retired(&sampler.modules) && sources_renew(&sampler)) modules_release_retired(&sampler.modules);
    bool is_new_second = is_due(&sampler.chores.second_due_ns, now_ns, SECOND_NS);
    modules_refresh(&sampler.modules, is_new_second, &session.writer);
    bool has_new_threads = threads_changed(&sampler.threads) || thread_events_are_pending();
    if (has_new_threads) refresh_threads();
    interpreted_threads_refresh(&sampler);
    if (atomic_exchange(&has_new_name, false)) sampler.chores.name_refreshes = NAME_REFRESHES;
    /* Threads give themselves names seldom, and mostly at their start. */
    uint64_t names_every_ns = now_ns < sampler.start.ns + SECOND_NS ? NAMES_EVERY_NS : SECOND_NS;
    bool is_time_for_names = is_due(&sampler.chores.names_due_ns, now_ns, names_every_ns);
    if (is_time_for_names || sampler.chores.has_unread_names || sampler.chores.name_refreshes > 0)
        sampler.chores.has_unread_names = !threads_refresh_names(&sampler.threads, &session.writer);
    if (sampler.chores.name_refreshes > 0) sampler.chores.name_refreshes--;
    open_tick(now_ns, before_ns);
    if (!tick_all_threads(&sampler)) {
        refresh_threads();
        tick_new_threads(&sampler);
    }
    if (has_new_threads) sampler.schedule.steady_periods = 0; /* more of them may live between two ticks */
    if (is_new_second) once_a_second();
    flush_sometimes(now_ns);
}

/* --- Whether it may continue -------------------------------------------------------------------------------------- */

static enum recording_end find_end(void)
{
    enum { LEADER_AND_SAMPLER = 2 };
    sampler.chores.followed_ns = monotonic_ns();
    /* Only a directory that was opened inside of the new root may stay open. */
    if (process_root_has_changed()) threads_release_directory(&sampler.threads);
    enum recording_end reason = privileges_follow();
    if (reason != RECORDING_END_NONE) return reason;
    /* The kernel keeps a process whose first thread has ended as long as another thread lives, which may be ours. */
    uint64_t count = privileges_thread_count();
    if (privileges_leader_has_ended() && count == LEADER_AND_SAMPLER) return RECORDING_END_LAST_THREAD;
    bool is_blind = sampler.threads.is_blind && count != sampler.threads.listed_count;
    return is_blind ? RECORDING_END_NO_PROC : RECORDING_END_NONE;
}

static enum recording_end check_program(void)
{
    enum recording_end reason = find_end();
    bool is_unread = reason == RECORDING_END_NO_PROC || reason == RECORDING_END_UNKNOWN_RIGHTS;
    bool lacks_descriptors = process_file_errno() == EMFILE || process_file_errno() == ENFILE;
    return is_unread && lacks_descriptors ? RECORDING_END_DESCRIPTORS : reason;
}

/* Checks cheap signs at each tick, and everything ten times a second. Returns false if the sampler must end. */
static bool may_continue(uint64_t now_ns)
{
    if (now_ns < sampler.chores.followed_ns + FOLLOW_EVERY_NS && !privileges_have_changed()) return true;
    sampler.ending.reason = check_program();
    return sampler.ending.reason == RECORDING_END_NONE;
}

/* Follows the program's rights for a thread that waits for it. Returns false if the sampler must end. */
static bool follow_at_once(void)
{
    uint32_t wanted = atomic_load(&lifecycle.follow_wanted);
    atomic_fetch_and(&lifecycle.commands, ~(uint32_t)COMMAND_FOLLOW);
    sampler.ending.reason = check_program();
    if (sampler.ending.reason != RECORDING_END_NONE) return false;
    atomic_store(&lifecycle.followed, wanted);
    futex_wake(&lifecycle.followed);
    return true;
}

/* Writes all time for a thread of the program that is about to exec. The recording continues if that fails. No stack is
 * taken: the calling thread waits for this. */
static void write_all_at_once(void)
{
    uint64_t now_ns = monotonic_ns();
    sources_fetch_replies(&sampler);
    open_tick(now_ns, sampler.tick.before_ns);
    short_lived_threads_read(&sampler);
    tick_last(&sampler);
    write_rest();
    short_lived_threads_write_rest(&sampler);
    write_usage();
    write_counters();
    recording_writer_flush(&session.writer);
    sampler.tick.before_ns = now_ns;
}

static bool flush_at_once(void)
{
    uint32_t wanted = atomic_load(&lifecycle.flush_wanted);
    atomic_fetch_and(&lifecycle.commands, ~(uint32_t)COMMAND_FLUSH);
    if (!may_continue(monotonic_ns())) return false;
    atomic_store(&sampler.modules.is_changing, true);
    write_all_at_once();
    atomic_store(&sampler.modules.is_changing, false);
    atomic_store(&lifecycle.flushed, wanted);
    futex_wake(&lifecycle.flushed);
    return true;
}

/* Obeys commands until DEADLINE_NS. Returns false if the sampler must end. */
static bool sleep_until(uint64_t deadline_ns)
{
    for (;;) {
        uint32_t commands = atomic_load(&lifecycle.commands);
        if (commands & (COMMAND_STOP | COMMAND_STEP_ASIDE)) return false;
        if (commands & COMMAND_FOLLOW) {
            if (!follow_at_once()) return false;
        } else if (commands & COMMAND_FLUSH) {
            if (!flush_at_once()) return false;
        } else if (monotonic_ns() >= deadline_ns) {
            return true;
        } else {
            futex_wait(&lifecycle.commands, commands, deadline_ns);
        }
    }
}

/* Works on tables that walks can do without. A table of 40 000 functions takes 20 ms, and a compiler that runs for 15
 * ms would begin it each time in vain. */
static void work_on_tables(uint64_t now_ns)
{
    enum { YOUNG_NS = 100000000, YOUNG_BYTES_MAX = 512 << 10 };
    bool is_young = now_ns - sampler.start.ns < YOUNG_NS;
    modules_work(&sampler.modules, is_young ? YOUNG_BYTES_MAX : SIZE_MAX,
                 modules_budget_of(sampler.tick.period_ns / TABLES_SHARE, 0));
}

/* Runs a tick and returns its CPU time, ns. A share that was requested holds for all work of the thread; the usual one
 * leaves out tables, which are built once. */
static uint64_t run_tick_and_measure(uint64_t now_ns)
{
    uint64_t begin_ns = thread_own_cpu_ns();
    atomic_store(&sampler.modules.is_changing, true);
    run_tick(now_ns, sampler.tick.before_ns);
    uint64_t tick_end_ns = thread_own_cpu_ns();
    if (!sampler.tick.is_starved) work_on_tables(now_ns);
    atomic_store(&sampler.modules.is_changing, false);
    if (!sampler.options.cpu_max_ppm) return tick_end_ns - begin_ns;
    uint64_t before_ns = sampler.cpu.measured_ns;
    sampler.cpu.measured_ns = thread_own_cpu_ns();
    return sampler.cpu.measured_ns - before_ns;
}

static void run_ticks(void)
{
    sampler.cpu.measured_ns = thread_own_cpu_ns();
    while (sampler.tick.before_ns < sampler.schedule.end_ns && sleep_until(sampler.schedule.deadline_ns)) {
        uint64_t now_ns = monotonic_ns();
        if (!may_continue(now_ns)) return;
        schedule_note_delay(&sampler, now_ns);
        uint64_t cost_ns = run_tick_and_measure(now_ns);
        sampler.tick.before_ns = now_ns;
        schedule_next_tick(&sampler, cost_ns);
    }
}

static void wait_for_last_replies(void)
{
    uint64_t deadline_ns = monotonic_ns() + REPLIES_WAIT_NS;
    for (size_t i = 0; i < sampler.threads.count; i++) {
        const struct sample_request *request = sampler.threads.items[i].thread->source.asked;
        while (request && sample_request_phase(request) != REQUEST_DONE && monotonic_ns() < deadline_ns) {
            struct timespec moment = {.tv_nsec = 200000};
            (void)kernel_call3(SYS_nanosleep, kernel_address(&moment), 0, 0);
        }
    }
}

/* Returns the end of the recording: once the program has asked for it, it only waits for us, which is not its time. */
static uint64_t end_of_recording_ns(void)
{
    uint64_t now_ns = monotonic_ns(), stop_ns = atomic_load(&lifecycle.stop_ns);
    if (stop_ns == 0 || stop_ns > now_ns) return now_ns;
    return stop_ns > sampler.tick.before_ns ? stop_ns : sampler.tick.before_ns;
}

static void finish_sampling(void)
{
    sampler.ending.is_ending = sampler.ending.has_finished = true;
    if (sampler.ending.reason == RECORDING_END_NONE && atomic_load(&lifecycle.is_too_late))
        sampler.ending.reason = RECORDING_END_UNKNOWN_RIGHTS;
    sampler.counters[RECORDING_END_REASON] = (uint64_t)sampler.ending.reason;
    wait_for_last_replies();
    sources_fetch_replies(&sampler);
    open_tick(end_of_recording_ns(), sampler.tick.before_ns);
    short_lived_threads_read(&sampler);
    tick_last(&sampler);
    uint64_t unseen_ns = threads_were_left_out() ? 0 : ended_threads_unseen_cpu_ns(&sampler);
    threads_fini(&sampler.threads, thread_gone, &sampler);
    if (unseen_ns > UNSEEN_NS_MIN) short_lived_threads_write_unseen(&sampler, unseen_ns);
    end_recording();
    privileges_close();
    process_close_descriptors();
}

static void begin_thread(int kept_descriptor)
{
    (void)kernel_call3(SYS_prctl, PR_SET_NAME, kernel_address("offbeat"), 0);
    sampler.threads.sampler_tid = kernel_thread_id();
    thread_wake_promptly();
    process_own_descriptors(kept_descriptor);
    sampler.threads.directory = -1;
    sampler.ending.reason = RECORDING_END_NONE;
    sampler.cpu.own_delay_ns = 0;
    futex_set(&lifecycle.ready);
    (void)process_root_has_changed();
    privileges_open();
    signal_choice_start();
}

/* Notes CPU time from before the recording, of threads that had ended at note_start, or that exec has ended. */
static void note_unseen_before(void)
{
    uint64_t before_ns = difference(sampler.start.process_cpu_ns, sampler.start.thread_cpu_ns);
    for (size_t i = 0; i < sampler.threads.count; i++) {
        const struct target_thread *thread = sampler.threads.items[i].thread;
        if (thread->ledger.beginning.was_there && thread->files.tid != sampler.start.thread)
            before_ns = difference(before_ns, thread->ledger.cpu_written_ns);
    }
    sampler.cpu.ended_ns += before_ns;
}

static void begin_sampling(void)
{
    begin_thread(-1);
    recording_session_choose_clock(&session, sampler.options.profiler_id);
    begin_recording(sampler.start.ns);
    atomic_store(&sampler.modules.is_changing, true);
    modules_write_again(&sampler.modules, &session.writer);
    modules_refresh(&sampler.modules, true, &session.writer);
    atomic_store(&sampler.modules.is_changing, false);
    /* Creates the file while there is a descriptor for it: each thread takes some. */
    recording_writer_flush(&session.writer);
    refresh_threads();
    note_first_threads();
    note_unseen_before();
    sampler.tick.before_ns = sampler.start.ns;
    sampler.chores.second_due_ns = sampler.start.ns + SECOND_NS;
    sampler.random_state = process_random_number();
    schedule_first_tick(&sampler);
}

/* --- Stepping aside ----------------------------------------------------------------------------------------------- */

/* Writes everything to the file, as if this were the end: the thread may never come back. A recording that is to be
 * handed over is handed over at once if a filter may forbid it later. */
static void step_aside(void)
{
    sampler.ending.aside_since_ns = monotonic_ns();
    sampler.counters[RECORDING_TIMES_ASIDE]++;
    sampler.counters[RECORDING_END_REASON] = (uint64_t)sampler.ending.reason_if_away;
    wait_for_last_replies();
    sources_fetch_replies(&sampler);
    sampler.cpu.ended_ns += thread_own_cpu_ns();
    for (size_t i = 0; i < sampler.threads.count; i++)
        sources_forget(&sampler, sampler.threads.items[i].thread, SOURCE_END_ASIDE);
    threads_release_files(&sampler.threads);
    sampler.ending.begins_again =
        sampler.options.recording_ns > 0 && sampler.ending.reason_if_away == RECORDING_END_SECCOMP;
    if (sampler.ending.begins_again) {
        write_rest();
        end_recording();
    } else {
        write_usage();
        write_counters();
        recording_writer_release(&session.writer);
    }
    privileges_close();
    process_close_descriptors();
}

static bool is_handed_file(struct handed_file file)
{
    struct stat status = {0};
    return file.descriptor >= 0 && kernel_call3(SYS_fstat, file.descriptor, kernel_address(&status), 0) == 0 &&
           status.st_dev == file.device && status.st_ino == file.inode;
}

static void resume_sampling(void)
{
    begin_thread(sampler.ending.handed.descriptor);
    bool is_handed = process_has_own_descriptors() && is_handed_file(sampler.ending.handed);
    if (process_has_own_descriptors() && !is_handed && sampler.ending.handed.descriptor >= 0)
        kernel_close(sampler.ending.handed.descriptor);
    sampler.counters[RECORDING_ASIDE_NS] += monotonic_ns() - sampler.ending.aside_since_ns;
    sampler.counters[RECORDING_END_REASON] = RECORDING_END_NONE;
    if (sampler.ending.begins_again) {
        sampler.tick.before_ns = monotonic_ns();
        begin_recording(sampler.tick.before_ns);
        modules_write_again(&sampler.modules, &session.writer);
        threads_write_again(&sampler.threads, &session.writer);
    } else {
        recording_writer_resume(&session.writer, is_handed ? sampler.ending.handed.descriptor : -1,
                                process_has_own_descriptors());
    }
    refresh_threads();
}

int sampler_run(void *unused)
{
    if (sampler.ending.is_resumed)
        resume_sampling();
    else
        begin_sampling();
    run_ticks();
    bool is_aside = (atomic_load(&lifecycle.commands) & (COMMAND_STOP | COMMAND_STEP_ASIDE)) == COMMAND_STEP_ASIDE;
    if (is_aside && sampler.ending.reason == RECORDING_END_NONE)
        step_aside();
    else
        finish_sampling();
    futex_set(&lifecycle.gone);
    return 0;
}

/* --- Functions for sampler_lifecycle.c ---------------------------------------------------------------------------- */

bool sampler_has_finished(void)
{
    return sampler.ending.has_finished;
}

bool sampler_is_worth_a_flush(void)
{
    enum { PERIODS_OF_START = 2 };
    return monotonic_ns() >= sampler.start.ns + PERIODS_OF_START * sampler.tick.period_ns;
}

bool sampler_ended_by_filter(void)
{
    return sampler.ending.has_finished && sampler.ending.reason == RECORDING_END_SECCOMP;
}

void sampler_expect_end(enum recording_end reason)
{
    sampler.ending.reason_if_away = reason;
}

void sampler_prepare_resume(struct handed_file file)
{
    sampler.ending.handed = file;
    sampler.ending.is_resumed = true;
}

const char *sampler_recording_path(void)
{
    return session.writer.path;
}

void sampler_finish_in_its_place(int descriptor)
{
    recording_writer_resume(&session.writer, descriptor, true);
    sampler.ending.is_ending = sampler.ending.has_finished = true;
    sampler.counters[RECORDING_END_REASON] = (uint64_t)sampler.ending.reason_if_away;
    threads_fini(&sampler.threads, thread_gone, &sampler);
    end_recording();
}

const struct sampler_options *sampler_present_options(void)
{
    return &sampler.options;
}

uint64_t sampler_end_ns(void)
{
    return sampler.schedule.end_ns;
}

void sampler_forget_finished(void)
{
    finished_recordings_forget();
    thread_events_forget();
    modules_after_fork(&sampler.modules);
}

/* Leaves the program seven eighths of the address space that its limit still allows. */
static void limit_memory(void)
{
    enum { PARTS = 8 };
    char text[128];
    struct rlimit limit = {0};
    const char *pages = text;
    bool is_limited = kernel_call4(SYS_prlimit64, 0, RLIMIT_AS, 0, kernel_address(&limit)) == 0 &&
                      limit.rlim_cur != RLIM_INFINITY && read_small_file("/proc/self/statm", text, sizeof(text)) > 0;
    pages_set_limit(is_limited ? difference(limit.rlim_cur, plain_parse(&pages, 10) * pages_size()) / PARTS : SIZE_MAX);
}

static void prepare_session(const struct sampler_options *options)
{
    session.mode = options->mode;
    session.period_ns = SECOND_NS / options->frequency_hz;
    session.length_ns = options->recording_ns;
    atomic_store(&session.is_cut_wanted, false);
    if (!options->script) session.script[0] = '\0';
    if (options->script && options->script != session.script)
        (void)plain_text(session.script, session.script + sizeof(session.script), options->script);
    if (options->directory == session.directory) return;
    (void)plain_text(session.directory, session.directory + sizeof(session.directory), options->directory);
}

bool sampler_prepare(const struct sampler_options *options)
{
    /* The tables of the last start are as good as new ones. */
    struct modules modules = sampler.modules;
    memset(&sampler, 0, sizeof(sampler));
    sampler.modules = modules;
    sampler.modules.tables = (struct tables_total){0};
    interpreted_threads_reset();
    sampler.options = *options;
    sampler.writer = &session.writer;
    sink = recording_sink_of(&session.writer);
    prepare_session(options);
    sampler.options.directory = session.directory;
    sampler.options.script = session.script[0] ? session.script : NULL;
    if (options->cache_directory && strlen(options->cache_directory) < sizeof(cache_directory)) {
        if (options->cache_directory != cache_directory) {
            (void)plain_text(cache_directory, cache_directory + sizeof(cache_directory), options->cache_directory);
        }
        sampler.options.cache_directory = sampler.modules.cache_directory = cache_directory;
    }
    sampler.modules.image_directory = options->recording_ns == 0 ? session.directory : NULL;
    sampler.tick.mode = options->mode;
    sampler.tick.period_ns = SECOND_NS / options->frequency_hz;
    sampler.tick.sink = &sink;
    sampler.tick.routines = &sampler.short_lived_threads.routines;
    sampler.schedule.ticks_a_second = options->frequency_hz;
    sampler.counters[RECORDING_CPU_MAX_PPM] = options->cpu_max_ppm;
    sampler.timers.factor = 1;
    sampler.start.may_ask_usage = filter_allows(FILTER_USAGE);
    sampler.timers.requests_in_tick_max = 4 * process_processor_count();
    clock_prepare();
    sources_prepare(&sampler);
    note_start();
    thread_allow_urgency(options->frequency_hz <= SAMPLER_URGENT_HZ_MAX);
    limit_memory();
    sampler.schedule.end_ns = options->duration_ns ? sampler.start.ns + options->duration_ns : UINT64_MAX;
    sample_requests_prepare();
    return sample_requests_install_handler();
}
