/* SPDX-License-Identifier: MIT */
#include "format/common/tracks.h"

#include <stdlib.h>

bool tracks_init(struct tracks *tracks, const struct profile *profile)
{
    *tracks = (struct tracks){.count = profile->samples.count};
    tracks->samples = calloc(tracks->count + 1, sizeof(*tracks->samples));
    if (!processes_find(&tracks->processes, profile) || !tracks->samples) return false;
    for (size_t i = 0; i < tracks->count; i++) {
        tracks->samples[i] = (struct track_sample){
            .process = process_of_sample(&tracks->processes, profile, i),
            .thread = profile->samples.thread[i].index,
            .sample = (uint32_t)i,
            .time_ns = profile->samples.time_ns[i],
        };
    }
    return true;
}

void tracks_fini(struct tracks *tracks)
{
    processes_fini(&tracks->processes);
    free(tracks->samples);
}

static int compare_samples(const void *left, const void *right)
{
    const struct track_sample *a = left, *b = right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns ? -1 : 1;
    return (a->sample > b->sample) - (a->sample < b->sample);
}

void tracks_sort(struct tracks *tracks)
{
    qsort(tracks->samples, tracks->count, sizeof(*tracks->samples), compare_samples);
}

size_t tracks_size_at(const struct tracks *tracks, size_t first)
{
    const struct track_sample *samples = tracks->samples;
    size_t end = first + 1;
    while (end < tracks->count && samples[end].process == samples[first].process &&
           samples[end].thread == samples[first].thread)
        end++;
    return end - first;
}

size_t tracks_place_to_show(const struct tracks *tracks, const struct profile *profile)
{
    uint32_t thread = profile_thread_with_samples(profile, profile_default_thread(profile)).index;
    size_t place = 0;
    for (size_t first = 0; first < tracks->count; first += tracks_size_at(tracks, first), place++) {
        if (tracks->samples[first].thread == thread) return place;
    }
    return 0;
}
