/* Filters by the thread, the process and the time of a sample.  SPDX-License-Identifier: MIT */
#include "analyze/filter.h"
#include "analyze/name_match.h"
#include "analyze/time_cut.h"
#include "profile/processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* An expression for a part of a name, or a whole number. */
struct who {
    struct name_match name;
    struct regexp id;
    bool has_matched;
    bool has_pair; /* the pattern may be PID/TID */
};

struct sample_filter {
    struct profile *profile;
    struct who thread, process;
    struct processes processes;
    uint64_t from_ns, end_ns; /* the samples from FROM_NS on, before END_NS */
    bool has_times, has_matched_times;
};

static enum status who_init(struct who *who, const struct profile *profile, const char *option, const char *pattern,
                            struct error *error)
{
    enum status status = name_match_init(&who->name, profile, option, pattern, error);
    if (status != STATUS_OK || !who->name.is_set) return status;
    who->has_pair = strchr(pattern, '/') != NULL;
    return compile_option(&who->id, option, slice_of_text(pattern), error);
}

static void who_fini(struct who *who)
{
    name_match_fini(&who->name);
    regexp_fini(&who->id);
}

static bool is_who(struct who *who, struct string_id name, struct slice id)
{
    bool is_match =
        (name.index != 0 && name_matches(&who->name, name)) || (id.size > 0 && regexp_matches_whole(&who->id, id));
    who->has_matched |= is_match;
    return is_match;
}

/* PID/TID chooses between threads of several processes that have the same number. */
static bool is_thread_of_process(struct who *who, const struct profile *profile, const struct thread *thread)
{
    char process[PROCESS_LABEL_SIZE], text[PROCESS_LABEL_SIZE + 64];
    if (!who->has_pair || !process_label(profile, thread->process, process)) return false;
    int size = snprintf(text, sizeof(text), "%s/%s", process, profile_c_string(profile, thread->id));
    if (size <= 0 || (size_t)size >= sizeof(text)) return false;
    return is_who(who, (struct string_id){0}, slice_of_text(text));
}

static bool is_in_thread(struct sample_filter *filter, size_t sample)
{
    const struct profile *profile = filter->profile;
    if (!filter->thread.name.is_set) return true;
    const struct thread *thread = profile_thread(profile, profile->samples.thread[sample]);
    return is_who(&filter->thread, profile_thread_name_at(profile, sample), profile_slice(profile, thread->id)) ||
           is_thread_of_process(&filter->thread, profile, thread);
}

static bool is_in_process(struct sample_filter *filter, size_t sample)
{
    char pid[24] = "";
    if (!filter->process.name.is_set) return true;
    const struct process_key *process =
        &filter->processes.items[process_of_sample(&filter->processes, filter->profile, sample)];
    if (process->pid != 0) (void)snprintf(pid, sizeof(pid), "%" PRId64, process->pid);
    return is_who(&filter->process, process->name, slice_of_text(pid));
}

static bool is_in_time(struct sample_filter *filter, size_t sample)
{
    if (!filter->has_times) return true;
    uint64_t time_ns = filter->profile->samples.time_ns[sample];
    bool is_within = time_ns >= filter->from_ns && time_ns < filter->end_ns;
    filter->has_matched_times |= is_within;
    return is_within;
}

static bool select_samples(struct sample_filter *filter)
{
    bool *kept = calloc(filter->profile->samples.count + 1, sizeof(*kept));
    if (!kept) return false;
    for (size_t i = 0; i < filter->profile->samples.count; i++) {
        bool in_thread = is_in_thread(filter, i), in_process = is_in_process(filter, i);
        kept[i] = is_in_time(filter, i) && in_thread && in_process;
    }
    profile_keep_samples(filter->profile, kept);
    free(kept);
    return true;
}

static enum status prepare_filter(struct sample_filter *filter, const struct filter_options *options,
                                  struct error *error)
{
    struct profile *profile = filter->profile;
    enum status status = who_init(&filter->thread, profile, "thread", options->thread, error);
    if (status == STATUS_OK) status = who_init(&filter->process, profile, "process", options->process, error);
    if (status != STATUS_OK) return status;
    if (filter->process.name.is_set && !processes_find(&filter->processes, profile))
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the processes");
    if (options->from_ns == 0 && options->to_ns == 0) return STATUS_OK;
    if (options->to_ns != 0 && options->to_ns <= options->from_ns)
        return error_set(error, STATUS_MALFORMED, 0, "--to-time must be later than --from");
    if (!profile->has_times)
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "--from and --to-time need the times of samples, and the profile "
                         "has none; a recording, a chunk and a V1 profile have them");
    uint64_t start_ns = times_origin_ns(filter->profile);
    filter->has_times = true;
    if (__builtin_add_overflow(start_ns, options->from_ns, &filter->from_ns)) filter->from_ns = UINT64_MAX;
    bool is_open = options->to_ns == 0 || __builtin_add_overflow(start_ns, options->to_ns, &filter->end_ns);
    if (is_open) filter->end_ns = UINT64_MAX;
    return STATUS_OK;
}

static void note_unmatched(const struct sample_filter *filter, struct filter_outcome *outcome)
{
    if (filter->thread.name.is_set && !filter->thread.has_matched) filter_note_unmatched(outcome, "thread");
    if (filter->process.name.is_set && !filter->process.has_matched) filter_note_unmatched(outcome, "process");
    if (filter->has_times && !filter->has_matched_times) filter_note_unmatched(outcome, "from and to-time");
}

enum status filter_samples(struct profile *profile, const struct filter_options *options,
                           struct filter_outcome *outcome, struct error *error)
{
    struct sample_filter filter = {.profile = profile};
    enum status status = prepare_filter(&filter, options, error);
    bool is_set = filter.thread.name.is_set || filter.process.name.is_set || filter.has_times;
    if (status == STATUS_OK && is_set && !select_samples(&filter))
        status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to filter");
    if (status == STATUS_OK) status = check_steps(&filter.thread.name.regexp, "thread", error);
    if (status == STATUS_OK) status = check_steps(&filter.process.name.regexp, "process", error);
    if (status == STATUS_OK) note_unmatched(&filter, outcome);
    who_fini(&filter.thread);
    who_fini(&filter.process);
    processes_fini(&filter.processes);
    return status;
}
