/* The files in which JIT compilers name their code, /tmp/perf-PID.map, of recorded processes: each is looked for by the
 * process's own number and below its own root, and kept open, so that its names are found after the process has ended.
 *
 * Anyone can put anything there. A file counts if it is regular, belongs to the user of the process, was written since
 * the process started and is not too large. Links do not lead out of the process's root, and nothing else than a
 * regular file is ever opened. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_KEPT_MAPS_H
#define OFFBEAT_RECORDER_KEPT_MAPS_H

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { KEPT_MAP_BYTES_MAX = 128 << 20, KEPT_MAPS_MAX = 1 << 12, KEPT_MAPS_ENDED_MAX = 64 };

struct kept_map {
    pid_t pid;
    int descriptor;
    uint64_t device, inode;
    uint64_t ended_ns; /* time when its process ended, CLOCK_MONOTONIC; 0: it has not */
    char *link;        /* link to the descriptor, maps/perf-PID.map */
};

struct kept_maps {
    ARRAY_OF(struct kept_map) items;
    const char *directory; /* folder for the links; NULL: no map is looked for */
};

/* Looks for the map of process PID, which started at START_TICKS (proc(5), starttime). */
void kept_maps_look(struct kept_maps *maps, pid_t pid, uint64_t start_ticks);

/* Takes over that PID has ended. Of the maps of processes that have ended, the latest are kept. */
void kept_maps_note_end(struct kept_maps *maps, pid_t pid);

void kept_maps_fini(struct kept_maps *maps);

#endif
