/* The missing part of a profile and its causes: samples that were lost, and stacks that do not reach their root.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_COMPLETENESS_H
#define OFFBEAT_ANALYZE_COMPLETENESS_H

#include "profile/profile.h"

/* Up to these shares, and below this number of samples, a profile is as good as complete. */
#define COMPLETENESS_LOST_MAX 0.02
#define COMPLETENESS_INCOMPLETE_MAX 0.05
enum { COMPLETENESS_SAMPLES_MIN = 3 };

enum incomplete_cause {
    INCOMPLETE_CAUSE_NO_TABLE,
    INCOMPLETE_CAUSE_UNKNOWN_REGISTER,
    INCOMPLETE_CAUSE_TOO_DEEP,
    INCOMPLETE_CAUSE_BAD_MEMORY,
    INCOMPLETE_CAUSE_BAD_FRAME,
    INCOMPLETE_CAUSE_OTHER,
    INCOMPLETE_CAUSES,
};

/* Incomplete stacks of one cause. */
struct incomplete_stacks {
    double samples;
    double in_mapping;         /* number of these that end in MAPPING */
    struct mapping_id mapping; /* mapping in which most of them end; 0: code of no file */
};

enum { COMPLETENESS_LOSSES_MAX = 16 };

/* Samples that were lost for one cause. */
struct lost_samples {
    const char *cause; /* the key of the recorder's fact; valid as long as the profile */
    double samples;
};

struct completeness {
    double samples;    /* samples of the profile */
    double lost;       /* samples that it lost; an estimate where whole ticks were missed */
    double incomplete; /* number of SAMPLES with an incomplete stack */
    struct incomplete_stacks by_cause[INCOMPLETE_CAUSES];
    struct lost_samples losses[COMPLETENESS_LOSSES_MAX]; /* the largest first */
    size_t loss_count;
    double threads_missed, bytes_lost;
};

/* RET_COMPLETENESS is set on success. */
enum status completeness_compute(const struct profile *profile, struct completeness *ret_completeness,
                                 struct error *error);

double completeness_lost_share(const struct completeness *completeness);
double completeness_incomplete_share(const struct completeness *completeness);

/* Whether a person must know. */
bool completeness_is_lossy(const struct completeness *completeness);
bool completeness_is_incomplete(const struct completeness *completeness);

#endif
