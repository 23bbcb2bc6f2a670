/* Where files were in memory, by the records that `perf script --show-mmap-events` prints.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_PERF_MAPS_H
#define OFFBEAT_FORMAT_TEXT_PERF_MAPS_H

#include "base/index_table.h"
#include "base/slice.h"

enum {
    PERF_MAPS_MAX = 16 << 20,
    PERF_MAPS_OF_ONE_MAX = 64, /* maps of one file in one process; further ones are ignored */
};

/* The slices are parts of the text. */
struct perf_map {
    struct slice pid, file, build_id; /* BUILD_ID is empty unless perf recorded with --buildid-mmap */
    uint64_t start, size, file_offset;
    uint32_t next_of_process, next_of_file; /* index + 1; 0: none */
};

/* {0} is valid and empty. */
struct perf_maps {
    struct perf_map *items;
    size_t count, capacity;
    struct index_table by_process, by_file; /* the first map of a file and process, and of a file */
};

/* RECORD is what follows PERF_RECORD_MMAP2: "pid/tid: [0xSTART(0xSIZE) @ 0xOFFSET <build id>]: r-xp /path". Others are
 * ignored. False without memory. */
bool perf_maps_add(struct perf_maps *maps, struct slice record);

/* The map of FILE in process PID, or in any if it has none there, that ADDRESS is in. IS_OFFSET: ADDRESS counts from
 * the start of the file, as perf prints frames of call graphs. NULL if there is none. */
const struct perf_map *perf_maps_find(const struct perf_maps *maps, struct slice pid, struct slice file,
                                      uint64_t address, bool is_offset);

void perf_maps_fini(struct perf_maps *maps);

#endif
