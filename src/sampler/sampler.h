/* Samples the threads of its own process and writes a recording of it.
 *
 * One sampler a process. Start and stop from any thread, not from signal handlers; start again only after stop.
 * The sampler runs on a thread of its own, which blocks all signals, holds no lock that the program can take and keeps
 * its descriptors to itself.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLER_H
#define OFFBEAT_SAMPLER_SAMPLER_H

#include "format/recording_layout.h"

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLER_FREQUENCY_DEFAULT = 101, SAMPLER_FREQUENCY_MAX = 10000 };

struct sampler_options {
    uint32_t frequency_hz; /* 1 to SAMPLER_FREQUENCY_MAX */
    enum recording_mode mode;
    uint64_t duration_ns;        /* stops by itself after so long; 0: never */
    bool ignores_children;       /* forked children are left alone */
    const char *cache_directory; /* where frame tables are kept; must exist; NULL: nowhere; copied */
    const char *directory;       /* where recordings go, as PID-N.recording; copied */
};

/* False if no thread could be made or there is no memory; the program goes on unprofiled. */
bool sampler_start(const struct sampler_options *options);

/* Takes what was sampled to its file. Waits for the sampler thread, but no longer than half a second. */
void sampler_stop(void);

/* For pthread_atfork: the child begins a recording of its own, with an id of its own; the parent's goes on. */
void sampler_after_fork_in_child(void);

#endif
