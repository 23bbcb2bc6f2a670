/* SPDX-License-Identifier: MIT */
#include "format/recording/recorder_metadata.h"

#include "base/clocks.h"
#include "base/percent.h"
#include "base/unsigned.h"

#include <stdio.h>
#include <string.h>

static const char *const outcome_keys[RECORDER_OUTCOMES] = {"stacks_root",      "stacks_too_deep",
                                                            "stacks_no_table",  "stacks_bad_memory",
                                                            "stacks_bad_frame", "stacks_unknown_register"};
static const char *const loss_keys[RECORDING_LOSSES] = {
    "lost_late", "lost_unanswered", "lost_in_kernel", "lost_no_table", "lost_unreadable", "lost_running", "lost_waits"};
static const char *const counter_keys[RECORDING_COUNTER_COUNT] = {
    [RECORDING_TICKS] = "ticks",
    [RECORDING_TICKS_MISSED] = "ticks_missed",
    [RECORDING_SIGNALS] = "signals_sent",
    [RECORDING_ANSWERS] = "signals_answered",
    [RECORDING_BLOCKED_READ] = "blocked_without_signal",
    [RECORDING_BLOCKED_DENIED] = "blocked_denied",
    [RECORDING_BYTES_LOST] = "bytes_lost",
    [RECORDING_MODULES_WITHOUT_TABLE] = "modules_without_table",
    [RECORDING_TABLE_BYTES] = "table_bytes",
    [RECORDING_TABLE_NS] = "table_build_ns",
    [RECORDING_THREADS_MISSED] = "threads_missed",
    [RECORDING_PERF_PAGES] = "perf_pages",
    [RECORDING_PERF_ERRNO] = NULL, /* an entry in words */
    [RECORDING_TIMERS] = "perf_timers",
    [RECORDING_TIMER_STACKS] = "timer_stacks",
    [RECORDING_TIMER_ERRNO] = NULL, /* an entry in words */
    [RECORDING_SAMPLER_CPU_NS] = "sampler_cpu_ns",
    [RECORDING_TIMES_ASIDE] = "times_aside",
    [RECORDING_ASIDE_NS] = "aside_ns",
    [RECORDING_END_REASON] = NULL, /* an entry in words */
    [RECORDING_TICKS_SPARED] = "ticks_spared",
    [RECORDING_TICKS_LEFT_OUT] = "ticks_left_out",
    [RECORDING_CPU_MAX_PPM] = NULL, /* an entry in percent */
    [RECORDING_ANSWERS_IN_CALL] = "answers_in_call",
    [RECORDING_SYSTEM_CPU_NS] = "system_cpu_ns",
    [RECORDING_WAIT_BEFORE_NS] = "wait_before_ns",
    [RECORDING_CLOCK_TICK_NS] = NULL, /* an entry in words */
    [RECORDING_UNSEEN_WAITS_NS] = "unseen_waits_ns",
    [RECORDING_LATE_NS] = "late_ns",
    [RECORDING_STOPPED_NS] = "stopped_ns",
    [RECORDING_PRIORITY] = "sampler_priority",
    [RECORDING_FILE_ERRNO] = NULL, /* an entry in words */
    [RECORDING_ENGINE] = NULL,     /* an entry in words */
};

/* Adds how sleeping threads are detected. */
static void add_idle_metadata(struct profile *profile, const struct recorder_counts *counts)
{
    char text[160];
    int denial = counts->counters[RECORDING_PERF_ERRNO] < 4096 ? (int)counts->counters[RECORDING_PERF_ERRNO] : 0;
    if (denial == 0) {
        (void)snprintf(text, sizeof(text), "perf event pages, CPU clocks before a thread has one");
    } else {
        (void)snprintf(text, sizeof(text), "CPU clocks%s, because of perf_event_open: %s",
                       counts->counters[RECORDING_PERF_PAGES] ? " for threads without a perf event page" : "",
                       strerror(denial));
    }
    profile_add_metadata_text(profile, "idle_detection", text);
}

/* Adds how running threads are sampled. */
static void add_running_metadata(struct profile *profile, const struct recorder_counts *counts)
{
    char text[200];
    uint64_t clock_tick_ns = counts->counters[RECORDING_CLOCK_TICK_NS];
    int denial = counts->counters[RECORDING_TIMER_ERRNO] < 4096 ? (int)counts->counters[RECORDING_TIMER_ERRNO] : 0;
    if (denial == 0) {
        bool sees_user_code = counts->counters[RECORDING_TIMERS_SEE_USER_CODE] != 0;
        (void)snprintf(text, sizeof(text), "perf timers%s before a thread has one",
                       sees_user_code ? " for user code, signals for system calls and" : ", signals");
    } else if (clock_tick_ns > 0) {
        (void)snprintf(text, sizeof(text),
                       "CPU clocks%s, up to %u stacks per second of CPU time, because of perf_event_open: %s",
                       counts->counters[RECORDING_TIMERS] ? " for threads without a perf timer" : "",
                       (unsigned)(SECOND_NS / clock_tick_ns), strerror(denial));
    } else {
        (void)snprintf(text, sizeof(text), "signals%s, because of perf_event_open: %s",
                       counts->counters[RECORDING_TIMERS] ? " for threads without a perf timer" : "", strerror(denial));
    }
    profile_add_metadata_text(profile, "running_threads", text);
}

/* Adds how the process was seen. */
static void add_engine(struct profile *profile, uint64_t engine, enum recording_mode mode)
{
    static const char *const from_outside[RECORDING_ENGINES] = {
        [RECORDING_ENGINE_BPF] = "from outside: running threads by programs in the kernel (BPF)",
        [RECORDING_ENGINE_PERF] = "from outside: running threads by perf events with copies of the stack",
        [RECORDING_ENGINE_PERF_USER] = "from outside: running threads by perf events that see user code only, with "
                                       "copies of the stack; time in system calls by CPU clocks, without stacks",
        [RECORDING_ENGINE_PROC] = "from outside: files of /proc, which show no stacks of running threads",
    };
    const char *of_waits = "from outside: every switch of a thread, by programs in the kernel (BPF)";
    const char *inside = mode == RECORDING_CPU
                             ? "timers, or signals to threads that run at a tick, weighted by their CPU clocks, frame "
                               "tables"
                             : "running threads by timer or signal, blocked ones read from outside, weighted by the "
                               "kernel's clocks, frame tables";
    bool is_outside = engine > RECORDING_ENGINE_INSIDE && engine < RECORDING_ENGINES;
    const char *outside = is_outside && mode != RECORDING_OFF_CPU ? from_outside[engine] : of_waits;
    profile_add_metadata_text(profile, "engine", is_outside ? outside : inside);
}

/* Adds why the sampler ended before the program. */
static void add_end_metadata(struct profile *profile, const struct recorder_counts *counts)
{
    static const char *const reasons[] = {
        [RECORDING_END_SECCOMP] = "the program installed a seccomp filter",
        [RECORDING_END_RIGHTS] = "the program gave up rights, and the sampler could not follow",
        [RECORDING_END_UNKNOWN_RIGHTS] = "the rights of the program could not be read",
        [RECORDING_END_NAMESPACE] = "the process can have no new thread, because its children get a new pid namespace",
        [RECORDING_END_NO_PROC] = "threads came or went where there is no /proc to list them",
        [RECORDING_END_LAST_THREAD] = "the last thread of the program had ended",
        [RECORDING_END_DESCRIPTORS] =
            "the limit of open files leaves it none to read the threads; raise it (ulimit -n)",
        [RECORDING_END_NO_THREAD] = "the limit of threads leaves none for it; raise it (ulimit -u)",
    };
    uint64_t reason = counts->counters[RECORDING_END_REASON];
    if (reason == RECORDING_END_NONE || reason >= sizeof(reasons) / sizeof(*reasons)) return;
    profile_add_metadata_text(profile, "sampler_ended", reasons[reason]);
}

/* Adds the interpreter in the process, and how many of its stacks could be read. */
static void add_interpreter_metadata(struct profile *profile, const struct recorder_counts *counts)
{
    static const struct {
        enum recording_counter counter;
        const char *key;
    } entries[] = {{RECORDING_INTERPRETED, "interpreter_stacks"},
                   {RECORDING_INTERPRETED_TORN, "interpreter_stacks_torn"},
                   {RECORDING_INTERPRETED_GONE, "interpreter_functions_gone"}};
    if (counts->interpreter.index == 0) return;
    const char *name = profile_c_string(profile, counts->interpreter);
    uint64_t engine = counts->counters[RECORDING_ENGINE];
    bool sees_sleepers_only = engine == RECORDING_ENGINE_PERF || engine == RECORDING_ENGINE_PERF_USER;
    profile_add_metadata_text(profile, counts->is_unknown_interpreter ? "interpreter_unknown" : "interpreter", name);
    if (sees_sleepers_only) profile_add_metadata_text(profile, "interpreter_seen_in", "threads that sleep");
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]) && !counts->is_unknown_interpreter; i++)
        profile_add_metadata_number(profile, entries[i].key, (int64_t)counts->counters[entries[i].counter]);
}

void recorder_metadata_add(struct profile *profile, const struct recorder_counts *counts, enum recording_mode mode,
                           uint64_t period_ns)
{
    char cpu_max[48];
    uint64_t engine = counts->counters[RECORDING_ENGINE];
    add_engine(profile, engine, mode);
    uint64_t cpu_max_ppm = counts->counters[RECORDING_CPU_MAX_PPM];
    (void)snprintf(cpu_max, sizeof(cpu_max), "%g %% of a processor", (double)cpu_max_ppm / PERCENT_PPM);
    if (cpu_max_ppm != 0) profile_add_metadata_text(profile, "cpu_max", cpu_max);
    for (unsigned i = 0; i < RECORDING_COUNTER_COUNT; i++) {
        if (counter_keys[i]) profile_add_metadata_number(profile, counter_keys[i], (int64_t)counts->counters[i]);
    }
    uint64_t file_errno = counts->counters[RECORDING_FILE_ERRNO];
    if (file_errno > 0 && file_errno < 4096)
        profile_add_metadata_text(profile, "files_denied", strerror((int)file_errno));
    uint64_t code_unseen = counts->counters[RECORDING_CODE_UNSEEN];
    if (code_unseen > 0) profile_add_metadata_number(profile, "code_unseen", (int64_t)code_unseen);
    if (mode != RECORDING_CPU && engine == RECORDING_ENGINE_INSIDE) add_idle_metadata(profile, counts);
    if (engine == RECORDING_ENGINE_INSIDE) add_running_metadata(profile, counts);
    add_end_metadata(profile, counts);
    add_interpreter_metadata(profile, counts);
    profile_add_metadata_number(profile, "samples_taken", (int64_t)counts->taken);
    profile_add_metadata_number(profile, "samples_repeated", (int64_t)counts->repeated);
    profile_add_metadata_number(profile, "lost_before_first_stack", (int64_t)counts->unseen);
    for (unsigned i = 0; i < RECORDING_LOSSES; i++) {
        uint64_t periods = (counts->lost_ns[i] + period_ns / 2) / period_ns;
        profile_add_metadata_number(profile, loss_keys[i], (int64_t)periods);
    }
    if (mode == RECORDING_OFF_CPU) {
        profile_add_metadata_number(profile, "short_waits", (int64_t)counts->short_waits);
        profile_add_metadata_number(profile, "waits_left_out", (int64_t)counts->waits_left_out);
    }
    profile_add_metadata_number(profile, "short_threads", (int64_t)counts->short_threads);
    profile_add_metadata_number(profile, "too_short_ns", (int64_t)counts->too_short_ns);
    profile_add_metadata_number(profile, "borrowed_ns", (int64_t)counts->borrowed_ns);
    profile_add_metadata_number(profile, "woken_waits_ns", (int64_t)counts->woken_waits_ns);
    for (unsigned i = 0; i < RECORDER_OUTCOMES; i++) {
        profile_add_metadata_number(profile, outcome_keys[i], (int64_t)counts->outcomes[i]);
    }
    uint64_t process_cpu_ns = counts->usage_cpu_ns - counts->first_usage_cpu_ns;
    profile_add_metadata_number(profile, "process_cpu_ns", process_cpu_ns <= INT64_MAX ? (int64_t)process_cpu_ns : 0);
    uint64_t before_ns = difference(counts->first_usage_cpu_ns, counts->started_cpu_ns);
    profile_add_metadata_number(profile, "process_cpu_before_ns", before_ns <= INT64_MAX ? (int64_t)before_ns : 0);
    profile_add_metadata_number(profile, "processes", 1);
    profile_add_metadata_number(profile, "processes_cut_off",
                                !counts->is_stopped && counts->counters[RECORDING_END_REASON] == RECORDING_END_NONE);
}
