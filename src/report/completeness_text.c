/* SPDX-License-Identifier: MIT */
#include "report/completeness_text.h"

#include "report/text.h"

#include <string.h>

enum { CAUSES_NAMED = 3 };

static void append_percent(struct buffer *out, double share)
{
    double percent = 100 * share;
    buffer_append_format(out, percent < 9.95 ? "%.1f %%" : "%.0f %%", percent);
}

/* --- Stacks ------------------------------------------------------------------------------------------------------- */

static const char *const explanations[INCOMPLETE_CAUSES] = {
    [INCOMPLETE_CAUSE_NO_TABLE] = "which has no unwind table there — rebuild it with -fasynchronous-unwind-tables or "
                                  "install its debug package (Go's compiler writes no table)",
    [INCOMPLETE_CAUSE_UNKNOWN_REGISTER] =
        "whose frames are found by a register that a blocked thread does not show — rebuild it with "
        "-fomit-frame-pointer",
    [INCOMPLETE_CAUSE_TOO_DEEP] = "on stacks deeper than 1024 frames — their callers near main are missing",
    [INCOMPLETE_CAUSE_BAD_MEMORY] = "where the stack could not be read — the program changed it meanwhile, or its "
                                    "unwind table is wrong",
    [INCOMPLETE_CAUSE_BAD_FRAME] = "whose unwind table leads to an impossible frame — rebuild it with "
                                   "-fasynchronous-unwind-tables",
    [INCOMPLETE_CAUSE_OTHER] = "for another cause",
};
static const char generated[] = "code of no file, which has no unwind table (generated at run time?) — let its "
                                "generator keep frame pointers";
static const char unseen[] =
    "code whose files could not be read, because the processes had ended before — offbeat record "
    "-- COMMAND, without --engine, records short processes from inside";

static void append_cause(const struct profile *profile, const struct completeness *completeness,
                         enum incomplete_cause cause, struct buffer *out)
{
    const struct incomplete_stacks *stacks = &completeness->by_cause[cause];
    const char *path = profile_c_string(profile, profile_mapping(profile, stacks->mapping)->file_name);
    append_percent(out, stacks->in_mapping / completeness->samples);
    buffer_append_text(out, " end in ");
    if (stacks->mapping.index == 0 && cause == INCOMPLETE_CAUSE_NO_TABLE) {
        int64_t without = profile_metadata_number(profile, "stacks_no_table");
        bool is_unseen = 2 * profile_metadata_number(profile, "code_unseen") > without;
        buffer_append_text(out, is_unseen ? unseen : generated);
        return;
    }
    append_printable(out, stacks->mapping.index ? base_name(path) : "code of no file");
    buffer_append_text(out, ", ");
    buffer_append_text(out, explanations[cause]);
}

static enum incomplete_cause next_cause(const struct completeness *completeness, unsigned named)
{
    unsigned best = INCOMPLETE_CAUSES;
    for (unsigned cause = 0; cause < INCOMPLETE_CAUSES; cause++) {
        double samples = completeness->by_cause[cause].in_mapping;
        if (named & 1u << cause || samples <= 0) continue;
        if (best == INCOMPLETE_CAUSES || samples > completeness->by_cause[best].in_mapping) best = cause;
    }
    return (enum incomplete_cause)best;
}

bool completeness_append_stacks(const struct profile *profile, const struct completeness *completeness,
                                struct buffer *out)
{
    double share = completeness_incomplete_share(completeness);
    if (!completeness_is_incomplete(completeness)) return false;
    append_percent(out, share);
    buffer_append_text(out, " of the stacks are incomplete: ");
    unsigned named = 0;
    for (unsigned i = 0; i < CAUSES_NAMED; i++) {
        enum incomplete_cause cause = next_cause(completeness, named);
        if (cause == INCOMPLETE_CAUSES) break;
        /* The first cause always; others where they matter. */
        if (i > 0 && completeness->by_cause[cause].in_mapping < 0.01 * completeness->samples) break;
        if (i > 0) buffer_append_text(out, "; ");
        append_cause(profile, completeness, cause, out);
        named |= 1u << cause;
    }
    return true;
}

/* --- Losses ------------------------------------------------------------------------------------------------------- */

/* Returns what helps where there were no perf timers, which do not depend on an answer of the thread; or NULL. */
static const char *perf_remedy(const struct profile *profile)
{
    const char *running = profile_metadata_text(profile, "running_threads");
    if (strstr(running, "Permission denied"))
        return "perf timers avoid this, but the system does not permit them: set kernel.perf_event_paranoid to 1 "
               "(sysctl), or record with CAP_PERFMON, as root has it outside of containers";
    if (strstr(running, "not permitted"))
        return "perf timers avoid this, but a seccomp filter or a container forbids them: allow perf_event_open";
    if (strstr(running, "Too many open files"))
        return "perf timers avoid this: raise the limit of open files (ulimit -n)";
    return NULL;
}

#define OVERLOADED "the machine is overloaded: let fewer programs run beside it, or lower --frequency"

#define WITH_PERF ", or set kernel.perf_event_paranoid to 1 (sysctl)"
#define DESCRIPTORS "raise the limit of open files (ulimit -n)"

/* Returns what helps where stacks of blocked threads could not be read. */
static const char *unreadable_remedy(const struct profile *profile)
{
    const char *denied = profile_metadata_text(profile, "files_denied");
    if (strstr(denied, "open files")) return "no descriptor is left to read them: " DESCRIPTORS;
    return "the program is not dumpable: see prctl(2), PR_SET_DUMPABLE";
}

/* Returns true if the process was recorded from outside. */
static bool is_from_outside(const struct profile *profile)
{
    static const char start[] = "from outside";
    return strncmp(profile_metadata_text(profile, "engine"), start, sizeof(start) - 1) == 0;
}

struct explained_loss {
    const char *cause, *remedy;
};

static struct explained_loss explain(const struct profile *profile, const char *key)
{
    const char *perf = perf_remedy(profile);
    if (strcmp(key, "lost_late") == 0)
        return (struct explained_loss){"because threads did not answer the sampler in time", perf ? perf : OVERLOADED};
    if (strcmp(key, "lost_unanswered") == 0)
        return (struct explained_loss){"because threads block the sampler's signal, or have stacks too small for it",
                                       perf ? perf : "let them not block SIGURG, and have stacks of 16 KB"};
    if (strcmp(key, "lost_before_first_stack") == 0)
        return (struct explained_loss){"of threads that had no stack yet",
                                       "they live only for a moment: raise --frequency"};
    if (strcmp(key, "lost_no_table") == 0)
        return (struct explained_loss){"while unwind tables of large libraries were read", OVERLOADED};
    if (strcmp(key, "lost_in_kernel") == 0 && is_from_outside(profile))
        return (struct explained_loss){"inside the kernel, where this user's perf events see no stacks",
                                       "set kernel.perf_event_paranoid to 1 (sysctl), or record as root"};
    if (strcmp(key, "lost_in_kernel") == 0)
        return (struct explained_loss){"inside the kernel, in threads that block the sampler's signal or have stacks "
                                       "too small for it",
                                       perf ? perf : "let them not block SIGURG, and have stacks of 16 KB" WITH_PERF};
    if (strcmp(key, "lost_unreadable") == 0)
        return (struct explained_loss){"of blocked threads whose stacks the kernel does not show",
                                       unreadable_remedy(profile)};
    if (strcmp(key, "lost_running") == 0)
        return (struct explained_loss){"of running threads, whose stacks /proc does not show",
                                       "record as root, or with --engine perf"};
    return (struct explained_loss){key, "offbeat-info(1) explains it"};
}

static double metadata_number(const struct profile *profile, const char *key)
{
    return (double)profile_metadata_number(profile, key);
}

bool completeness_append_calls(const struct profile *profile, struct buffer *out)
{
    const double answers_min = 50, excess_max = 0.1;
    double answers = metadata_number(profile, "signals_answered"), cpu_ns = metadata_number(profile, "process_cpu_ns");
    if (answers < answers_min || cpu_ns <= 0) return false;
    bool has_timers = metadata_number(profile, "timer_stacks") >= answers; /* timers know the part of system calls */
    double in_calls = metadata_number(profile, "answers_in_call") / answers;
    double in_kernel = metadata_number(profile, "system_cpu_ns") / cpu_ns;
    if (has_timers || in_calls <= in_kernel + excess_max) return false;
    const char *remedy = perf_remedy(profile);
    buffer_append_text(out, "short stretches of user code are attributed to the following system calls: calls have ");
    append_percent(out, in_calls);
    buffer_append_text(out, " of the stacks, and the kernel ");
    append_percent(out, in_kernel);
    buffer_append_text(out, " of the CPU time");
    if (remedy) buffer_append_text(out, " — ");
    if (remedy) buffer_append_text(out, remedy);
    return true;
}

/* Returns the time of all samples; their count is the time in periods. */
static double all_time_ns(const struct profile *profile, const struct completeness *completeness)
{
    return completeness->samples * (double)profile->period;
}

bool completeness_append_waits(const struct profile *profile, const struct completeness *completeness,
                               struct buffer *out)
{
    const double samples_min = 100, share_min = 0.03;
    double all_ns = all_time_ns(profile, completeness), unseen_ns = metadata_number(profile, "unseen_waits_ns");
    if (completeness->samples < samples_min || all_ns <= 0 || unseen_ns < share_min * all_ns) return false;
    const char *remedy = perf_remedy(profile);
    append_percent(out, unseen_ns / all_ns);
    buffer_append_text(out,
                       " of the time are waits for a processor that are shown where the threads ran; some can be in "
                       "the system calls at whose ends the kernel stopped them — ");
    bool sees_user_code = strstr(profile_metadata_text(profile, "running_threads"), "for user code");
    buffer_append_text(out, remedy           ? remedy
                            : sees_user_code ? "to see where, set kernel.perf_event_paranoid to 1 (sysctl), or record "
                                               "with CAP_PERFMON, as root has it outside of containers"
                                             : OVERLOADED);
    return true;
}

/* Returns how the sampler gets a processor sooner, by whether it had priority in all processes. */
static const char *priority_remedy(const struct profile *profile)
{
    double processes = metadata_number(profile, "processes");
    bool has_priority = processes > 0 && metadata_number(profile, "sampler_priority") >= processes;
    return has_priority ? "let fewer programs run beside it; real-time threads and a container's limit of CPU time "
                          "precede its priority"
                        : "let fewer programs run beside it, or record with CAP_SYS_NICE, which gives it priority, as "
                          "root has it outside of containers";
}

bool completeness_append_woken(const struct profile *profile, const struct completeness *completeness,
                               struct buffer *out)
{
    /* A tick does not see in which call a thread slept that waits for a processor now. The next stack gets that time:
     * shares of calls are off by up to this share, and by a little more where all wait. */
    const double samples_min = 100, share_min = 0.02;
    double all_ns = all_time_ns(profile, completeness), woken_ns = metadata_number(profile, "woken_waits_ns");
    if (completeness->samples < samples_min || all_ns <= 0 || woken_ns < share_min * all_ns) return false;
    append_percent(out, woken_ns / all_ns);
    buffer_append_text(
        out, " of the time are waits for a processor after a wake-up: the shares of calls in which threads "
             "sleep are less exact by as much — more threads want to run than there are processors: let fewer "
             "threads or programs run");
    return true;
}

bool completeness_append_late(const struct profile *profile, struct buffer *out)
{
    const double ticks_min = 100, share_min = 0.1;
    double ticks = metadata_number(profile, "ticks") + metadata_number(profile, "ticks_missed") +
                   metadata_number(profile, "ticks_spared");
    double all_ns = ticks * (double)profile->period, late_ns = metadata_number(profile, "late_ns");
    if (ticks < ticks_min || all_ns <= 0 || late_ns < share_min * all_ns) return false;
    buffer_append_text(out, "for ");
    append_percent(out, late_ns / all_ns);
    buffer_append_text(out, " of the time the sampler waited for a processor, a tenth of a second or more at once: few "
                            "stacks stand for it, and shares are less exact — the machine is overloaded: ");
    buffer_append_text(out, priority_remedy(profile));
    return true;
}

bool completeness_append_unfollowed(const struct completeness *completeness, struct buffer *out)
{
    if (completeness->threads_missed <= 0) return false;
    buffer_append_format(out, "%.0f threads were not sampled: a process had more threads than the sampler follows",
                         completeness->threads_missed);
    return true;
}

bool completeness_append_too_short(const struct profile *profile, const struct completeness *completeness,
                                   struct buffer *out)
{
    const double samples_min = 100, share_min = 0.1;
    double all_ns = all_time_ns(profile, completeness);
    double too_short_ns = metadata_number(profile, "too_short_ns"),
           borrowed_ns = metadata_number(profile, "borrowed_ns");
    if (completeness->samples < samples_min || all_ns <= 0 || too_short_ns + borrowed_ns < share_min * all_ns)
        return false;
    bool is_starved = metadata_number(profile, "ticks_missed") > metadata_number(profile, "ticks");
    append_percent(out, (borrowed_ns > 0 ? borrowed_ns : too_short_ns) / all_ns);
    buffer_append_text(out, borrowed_ns > 0 ? " of the time has stacks of other threads with the same start routine"
                                            : " of the time has no stack ([too short to sample])");
    if (borrowed_ns > 0 && too_short_ns >= share_min * all_ns) {
        buffer_append_text(out, ", and ");
        append_percent(out, too_short_ns / all_ns);
        buffer_append_text(out, " has no stack ([too short to sample])");
    }
    buffer_append_text(out, ": ");
    if (is_starved) buffer_append_text(out, "beside many runnable threads, the sampler rarely got a processor — ");
    buffer_append_text(out, is_starved ? priority_remedy(profile)
                                       : "threads or processes ended before a tick met them — raise --frequency");
    return true;
}

bool completeness_append_losses(const struct profile *profile, const struct completeness *completeness,
                                struct buffer *out)
{
    double all = completeness->samples + completeness->lost;
    if (!completeness_is_lossy(completeness)) return false;
    append_percent(out, completeness_lost_share(completeness));
    buffer_append_text(out, " of the samples are lost: ");
    /* The first loss is named, and others where they matter. */
    size_t count = 1;
    while (count < completeness->loss_count && count < CAUSES_NAMED &&
           completeness->losses[count].samples / all >= COMPLETENESS_LOST_MAX / 4)
        count++;
    for (size_t i = 0; i < count; i++) {
        const struct lost_samples *loss = &completeness->losses[i];
        struct explained_loss explained = explain(profile, loss->cause);
        append_percent(out, loss->samples / all);
        buffer_append_text(out, " ");
        append_printable(out, explained.cause);
        bool has_next_same =
            i + 1 < count && strcmp(explain(profile, completeness->losses[i + 1].cause).remedy, explained.remedy) == 0;
        buffer_append_format(out, "%s%s%s", has_next_same ? "" : " — ", has_next_same ? "" : explained.remedy,
                             i + 1 < count ? "; " : "");
    }
    return true;
}

bool completeness_append_short(const struct completeness *completeness, struct buffer *out)
{
    double incomplete = completeness_incomplete_share(completeness), lost = completeness_lost_share(completeness);
    bool has_incomplete = completeness_is_incomplete(completeness), has_lost = completeness_is_lossy(completeness);
    if (has_incomplete) {
        append_percent(out, incomplete);
        buffer_append_text(out, " of the stacks are incomplete");
    }
    if (has_incomplete && has_lost) buffer_append_text(out, ", ");
    if (has_lost) {
        append_percent(out, lost);
        buffer_append_text(out, " of the samples are lost");
    }
    return has_incomplete || has_lost;
}
