/* Places for the module entries of processes in one array of the kernel, in ranges of 16 to 4096. A range that is free
 * again is not used for a while, because a walk may still read it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_ENTRY_PLACES_H
#define OFFBEAT_RECORDER_BPF_ENTRY_PLACES_H

#include "base/array.h"
#include "recorder/bpf/bpf_layout.h"

#include <stdbool.h>

enum { ENTRY_PLACE_CLASSES = 9, ENTRY_PLACE_SMALLEST = 16 };
_Static_assert(ENTRY_PLACE_SMALLEST << (ENTRY_PLACE_CLASSES - 1) == BPF_PROCESS_MODULES_MAX,
               "the largest range is for the largest process");

struct entry_place {
    uint32_t first;
    uint64_t released_ns; /* CLOCK_MONOTONIC */
};

/* {0} is empty. */
struct entry_places {
    uint32_t used; /* entries up to the end of the last range */
    ARRAY_OF(struct entry_place) released[ENTRY_PLACE_CLASSES];
};

void entry_places_fini(struct entry_places *places);

/* Takes a range for COUNT entries at the time NOW_NS. Returns false if there is no room. */
bool entry_places_take(struct entry_places *places, uint32_t count, uint64_t now_ns, uint32_t *ret_first);
void entry_places_release(struct entry_places *places, uint32_t first, uint32_t count, uint64_t now_ns);

#endif
