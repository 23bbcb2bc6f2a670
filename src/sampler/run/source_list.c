/* The sources of a sampler of its own process. SPDX-License-Identifier: MIT */
#include "sampler/source/sources.h"

const struct source *const sources[] = {&perf_source,   &cpu_clock_source, &stop_source,
                                        &remote_source, &signal_source,    NULL};
