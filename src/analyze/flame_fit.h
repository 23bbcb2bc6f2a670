/* The widest boxes of a flame graph or flamechart: as many as there is room for.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_FLAME_FIT_H
#define OFFBEAT_ANALYZE_FLAME_FIT_H

#include "analyze/flame_layout.h"

struct flame_fit {
    const struct profile *profile;
    const struct grouping *grouping;
    struct flame_options options; /* NARROWEST and TIE_DEPTH are set by flame_fit_init */
    bool is_chart;                /* THREAD in the order of time */
    struct thread_id thread;
    struct flame_layout layout; /* the result; to be freed in every case */
    uint64_t start_ns;          /* start of the first box of a chart, ns */
};

/* Lays out at most BOXES_MAX boxes (0: all), and leaves out the narrow ones. Errors as flame_layout_init. */
enum status flame_fit_init(struct flame_fit *fit, size_t boxes_max, struct error *error);

#endif
