/* SPDX-License-Identifier: MIT */
#include "format/recording/recorded_waits.h"

#include "base/unsigned.h"

#include <math.h>
#include <stdlib.h>

#define PIECE_NS UINT64_C(1000000000) /* a profile can be cut into chunks */

static const char *const reasons[RECORDING_WAITS] = {
    [RECORDING_WAIT_OTHER] = "other",     [RECORDING_WAIT_PREEMPTED] = "preempted", [RECORDING_WAIT_STARTING] = "start",
    [RECORDING_WAIT_LOCK] = "lock",       [RECORDING_WAIT_SLEEP] = "sleep",         [RECORDING_WAIT_POLL] = "poll",
    [RECORDING_WAIT_NETWORK] = "network", [RECORDING_WAIT_PIPE] = "pipe",           [RECORDING_WAIT_DEVICE] = "device",
    [RECORDING_WAIT_DISK] = "disk",       [RECORDING_WAIT_PAGE] = "page fault",     [RECORDING_WAIT_CHILD] = "child",
    [RECORDING_WAIT_SIGNAL] = "signal",   [RECORDING_WAIT_STOPPED] = "stopped",
};

void recorded_waits_declare(struct profile *profile)
{
    static const char *const columns[WAIT_COLUMNS] = {"waits", "off-cpu", "runnable", "blocked"};
    for (size_t i = 0; i < WAIT_COLUMNS; i++)
        profile_add_value_type(profile, columns[i], i == WAITS ? "count" : "nanoseconds");
}

/* Returns the labels of WAIT after the ones of NAMED. */
static struct label_set_id labels_of(struct profile *profile, struct label_set_id named,
                                     const struct recorded_wait *wait)
{
    struct label labels[3];
    uint32_t count = 0;
    const struct label_set *set = &profile->label_sets.items[named.index];
    if (set->count > 0) labels[count++] = profile->labels.items[set->first];
    labels[count++] =
        (struct label){.key = profile_text(profile, WAIT_LABEL), .text = profile_text(profile, reasons[wait->reason])};
    if (wait->waker.index != 0)
        labels[count++] = (struct label){.key = profile_text(profile, WAKER_LABEL), .text = wait->waker};
    return profile_add_labels(profile, labels, count);
}

void recorded_waits_add(struct profile *profile, struct sample sample, const struct recorded_wait *wait,
                        struct recording_time time, uint64_t *splits_left)
{
    uint64_t count = wait->count;
    sample.labels = labels_of(profile, sample.labels, wait);
    sample.time_ns = wait->start_ns;
    while (time.blocked_ns + time.runnable_ns > 0 || count > 0) {
        bool is_whole = wait->count > 1 || *splits_left == 0;
        uint64_t blocked_ns = is_whole ? time.blocked_ns : least(time.blocked_ns, PIECE_NS);
        uint64_t runnable_ns = is_whole ? time.runnable_ns : least(time.runnable_ns, PIECE_NS - blocked_ns);
        const int64_t values[WAIT_COLUMNS] = {[WAITS] = (int64_t)count,
                                              [OFF_CPU] = (int64_t)(blocked_ns + runnable_ns),
                                              [OFF_CPU_RUNNABLE] = (int64_t)runnable_ns,
                                              [OFF_CPU_BLOCKED] = (int64_t)blocked_ns};
        profile_add_sample(profile, &sample, values);
        *splits_left -= !is_whole;
        sample.time_ns += blocked_ns + runnable_ns;
        time.blocked_ns -= blocked_ns;
        time.runnable_ns -= runnable_ns;
        count = 0;
    }
}

/* The samples of a thread that stand for others, too. */
struct estimate {
    double own_ns, estimated_ns; /* time of their own waits, and of all that they stand for */
    double left_out_ns;          /* exact time of those that they stand for */
};

static void add_estimates(const struct profile *profile, struct estimate *estimates)
{
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = &profile->samples.values[i * WAIT_COLUMNS];
        struct estimate *estimate = &estimates[profile->samples.thread[i].index];
        if (values[WAITS] <= 1) continue;
        estimate->own_ns += (double)values[OFF_CPU] / (double)values[WAITS];
        estimate->estimated_ns += (double)values[OFF_CPU];
    }
}

/* Returns NS times FACTOR, both from a file, as a time that fits. */
static int64_t scaled(int64_t ns, double factor)
{
    return (int64_t)fmin((double)ns * factor, 0x1p62);
}

/* Makes the sums of the samples that stand for others right. */
static void correct_estimates(struct profile *profile, const struct estimate *estimates)
{
    for (size_t i = 0; i < profile->samples.count; i++) {
        int64_t *values = &profile->samples.values[i * WAIT_COLUMNS];
        const struct estimate *estimate = &estimates[profile->samples.thread[i].index];
        if (values[WAITS] <= 1 || estimate->estimated_ns <= 0) continue;
        double factor = (estimate->own_ns + estimate->left_out_ns) / estimate->estimated_ns;
        values[OFF_CPU_RUNNABLE] = scaled(values[OFF_CPU_RUNNABLE], factor);
        values[OFF_CPU] = scaled(values[OFF_CPU], factor);
        values[OFF_CPU_BLOCKED] = values[OFF_CPU] - values[OFF_CPU_RUNNABLE];
    }
}

static void add_sum(struct profile *profile, struct thread_id thread, uint64_t time_ns, struct stack_id stack,
                    uint64_t count, uint64_t ns)
{
    const struct sample sample = {.stack = stack, .thread = thread, .time_ns = time_ns};
    const int64_t values[WAIT_COLUMNS] = {
        [WAITS] = (int64_t)count, [OFF_CPU] = (int64_t)ns, [OFF_CPU_BLOCKED] = (int64_t)ns};
    if (ns > 0) profile_add_sample(profile, &sample, values);
}

void recorded_waits_add_others(struct profile *profile, const struct recorded_other_waits *others, size_t count,
                               uint64_t time_ns, struct stack_id short_stack, struct stack_id no_stack)
{
    struct estimate *estimates = calloc(profile->threads.count, sizeof(*estimates)); /* estimates by thread */
    if (!estimates) {
        profile->failed = STATUS_NO_MEMORY;
        return;
    }
    add_estimates(profile, estimates);
    for (size_t i = 0; i < count; i++) estimates[others[i].thread.index].left_out_ns += (double)others[i].left_out_ns;
    correct_estimates(profile, estimates); /* before there are sums, which are exact */
    for (size_t i = 0; i < count; i++) {
        const struct recorded_other_waits *other = &others[i];
        add_sum(profile, other->thread, time_ns, short_stack, other->short_count, other->short_ns);
        if (estimates[other->thread.index].estimated_ns <= 0)
            add_sum(profile, other->thread, time_ns, no_stack, other->left_out_count, other->left_out_ns);
    }
    free(estimates);
}
