/* The recordings of one start of the sampler: one, or one after the other, with one id and one clock. Belongs to the
 * sampler thread. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RECORDING_SESSION_H
#define OFFBEAT_SAMPLER_RECORDING_SESSION_H

#include "sampler/record/recording_writer.h"

#include <stdatomic.h>

struct recording_session {
    struct recording_writer writer;
    char directory[3072];
    char script[256]; /* name of the script that an interpreter runs; "": the process has the kernel's name */
    enum recording_mode mode;
    uint64_t period_ns;
    uint64_t length_ns; /* length of a recording, ns; 0: there is only one */
    uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE];
    int64_t wall_offset_ns;    /* wall clock minus CLOCK_MONOTONIC, ns */
    uint64_t start_ns;         /* start of the present recording, CLOCK_MONOTONIC */
    uint32_t tick_count;       /* ticks of the present recording, the open one included */
    atomic_bool is_cut_wanted; /* true if the present recording is to end soon; any thread sets it */
};

/* Chooses the id, a random one if PROFILER_ID is zeros, and the clock of all recordings. */
void recording_session_choose_clock(struct recording_session *session,
                                    const uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE]);

/* Begins a recording at START_NS in a file of its own. */
void recording_session_begin(struct recording_session *session, uint64_t start_ns, bool keeps_descriptor);

/* Returns true if a new recording is to begin between two ticks, the last one at BEFORE_NS. *RET_START_NS is its start.
 * If the process was stopped for long, that is later than the last tick: a recording must not be much longer than
 * requested. */
bool recording_session_is_over(struct recording_session *session, uint64_t now_ns, uint64_t before_ns,
                               uint64_t *ret_start_ns);

/* Marks the recording as complete, closes it, and hands it over if there are several. */
void recording_session_end(struct recording_session *session);

#endif
