/* The samples and frames of a profile that a report shows.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_FILTER_H
#define OFFBEAT_ANALYZE_FILTER_H

#include "profile/profile.h"

/* Each is NULL or "" where it is not wanted. The first six are regular expressions in RE2's syntax that may match
 * anywhere in a frame's function name, file name or mapping; PRUNE_FROM knows function names only. */
struct filter_options {
    const char *focus;      /* keeps samples with a frame that matches */
    const char *ignore;     /* removes samples with a frame that matches; wins over FOCUS */
    const char *hide;       /* removes frames that match */
    const char *show;       /* removes frames that do not match */
    const char *show_from;  /* removes the callers of the outermost match, and samples without one */
    const char *prune_from; /* removes what the innermost match calls */
    /* KEY=VALUE or VALUE. VALUE is a number with a unit, a range of them (400kb:, :2s, 1:5), or regular expressions,
     * separated by commas. Without KEY each expression must match some "key:value" of the sample; with it, any of
     * them a value of that key. */
    const char *tag_focus, *tag_ignore;
    const char *tag_show, *tag_hide; /* regular expressions on keys: the labels that the reports show */
    /* Label keys, separated by commas: each becomes a frame outside or inside of all others (analyze/tag_frames.h),
     * which the other filters see. */
    const char *tag_root, *tag_leaf;
    const char *tag_unit; /* unit of numbers in those frames */
    /* Regular expressions: keep samples whose thread or process has such a name (any part of it) or number (all of it;
     * of a thread also PID/TID). */
    const char *thread, *process;
    uint64_t from_ns, to_ns; /* keep samples of this time since the profile's start; TO_NS 0: to the end */
};

enum { FILTER_OPTIONS = 16 };

/* Facts about the result that a user should know. */
struct filter_outcome {
    const char *unmatched[FILTER_OPTIONS]; /* options, "focus", that matched nothing */
    size_t unmatched_count;
    bool tag_focus_is_range, tag_ignore_is_range;
};

/* Applies OPTIONS to PROFILE in the order of pprof, in one pass over locations, stacks, label sets and samples. Stacks,
 * locations and label sets of the result are added to PROFILE's; samples are removed or refer to those. A sample
 * without frames is removed if any of the first four options is set, or show_from. On failure PROFILE still has its
 * samples, and some of the options may have been applied. */
enum status filter_apply(struct profile *profile, const struct filter_options *options,
                         struct filter_outcome *ret_outcome, struct error *error);

/* The parts of it: by thread, process and time, by frames, and by labels. */
enum status filter_samples(struct profile *profile, const struct filter_options *options,
                           struct filter_outcome *outcome, struct error *error);
enum status filter_frames(struct profile *profile, const struct filter_options *options, struct filter_outcome *outcome,
                          struct error *error);
enum status filter_labels(struct profile *profile, const struct filter_options *options, struct filter_outcome *outcome,
                          struct error *error);

/* Adds OPTION to those that matched nothing. */
static inline void filter_note_unmatched(struct filter_outcome *outcome, const char *option)
{
    if (outcome->unmatched_count < FILTER_OPTIONS) outcome->unmatched[outcome->unmatched_count++] = option;
}

#endif
