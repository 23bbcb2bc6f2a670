/* The samples of a profile, process by process and thread by thread: a format with a time axis draws a track for each
 * thread of each process.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_TRACKS_H
#define OFFBEAT_FORMAT_COMMON_TRACKS_H

#include "profile/processes.h"

struct track_sample {
    uint32_t process, thread, sample; /* indexes in processes, the profile's threads and its samples */
    uint64_t time_ns;
};

struct tracks {
    struct processes processes;
    struct track_sample *samples; /* samples; tracks_sort orders them by process, thread and time */
    size_t count;
};

/* One for each sample of PROFILE, in its order, with its times. False without memory. Finish with tracks_fini in both
 * cases. */
bool tracks_init(struct tracks *tracks, const struct profile *profile);
void tracks_fini(struct tracks *tracks); /* accepts {0} */

void tracks_sort(struct tracks *tracks);

/* Returns the number of samples from FIRST on that are of one thread in one process. */
size_t tracks_size_at(const struct tracks *tracks, size_t first);

/* The place of the track to open on, counted from 0. */
size_t tracks_place_to_show(const struct tracks *tracks, const struct profile *profile);

#endif
