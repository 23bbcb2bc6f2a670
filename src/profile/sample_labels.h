/* The labels of a sample as a pprof file has them: its own, and those that its thread stands for
 * (doc/formats/pprof.md).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_SAMPLE_LABELS_H
#define OFFBEAT_PROFILE_SAMPLE_LABELS_H

#include "profile/profile.h"

/* A label of a sample or of its thread. The strings are valid as long as the profile. */
struct sample_label {
    struct string_id key_id; /* 0: a label of the thread */
    const char *key;
    bool is_number;
    const char *text; /* the value, if not IS_NUMBER */
    int64_t number;
    const char *unit; /* "": not known */
    uint32_t place;   /* index among the sample's labels */
};

struct sample_labels {
    struct sample_label *items; /* room for the largest set of the profile, and two */
    uint32_t count;
};

/* False without memory. */
bool sample_labels_init(struct sample_labels *labels, const struct profile *profile);
void sample_labels_fini(struct sample_labels *labels); /* accepts {0} */

/* Sets LABELS to the labels of a sample with the set SET and the thread THREAD. The thread's labels are last; a key
 * that the set has already is left out. */
void sample_labels_collect(struct sample_labels *labels, const struct profile *profile, struct label_set_id set,
                           struct thread_id thread);

/* Sorts as pprof prints them: texts before numbers, then by key, then as they were. */
void sample_labels_sort(struct sample_labels *labels);

#endif
