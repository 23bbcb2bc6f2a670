/* The address spaces of the processes in a perf.data file, at the time of the record at hand. Only executable mappings
 * are recorded. Processes that forked share a space until one of them maps something.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_SPACES_H
#define OFFBEAT_FORMAT_PERF_PERF_SPACES_H

#include "base/index_table.h"
#include "base/status.h"
#include "format/perf/perf_code.h"
#include "profile/profile.h"
#include "unwind/unwind.h"

enum {
    PERF_SPACE_MAPS_MAX = 32768,  /* executable mappings of one process */
    PERF_PROCESSES_MAX = 4 << 20, /* Linux has no more process ids at one time */
    PERF_SEGMENTS_MAX = 16 << 20,
    PERF_COPIES_FREE = 1 << 18, /* mappings that forks may copy, without */
    PERF_COPIES_OF_RECORD = 12, /* mappings that forks may copy for each record */
    PERF_RULE_CACHES = 16,
};

/* A part of a file that is mapped, wherever: in profiles, it is where the first process had it. */
struct perf_segment {
    struct string_id file_name, build_id;
    struct string_id function; /* function that all of it is; "": it is a file */
    uint64_t file_offset, size;
    uint64_t start;            /* start of the first one */
    uint32_t owner;            /* the process, if the mapping is memory without a file; else 0 */
    struct mapping_id mapping; /* 0: not used yet */
};

struct perf_map {
    uint64_t start, end;
    uint64_t offset; /* offset of START in its segment */
    uint32_t segment;
    const struct perf_code_file *file; /* NULL: there is none, or nobody has asked for it yet */
};

struct perf_space {
    struct perf_map *maps;         /* sorted, without overlaps */
    struct unwind_module *modules; /* modules of the same maps */
    size_t count, capacity, modules_capacity;
    uint32_t users;
    uint64_t version; /* another one after each change */
};

struct perf_process {
    uint32_t pid;
    struct perf_space *space; /* NULL: nothing is mapped */
};

struct unwinder;

struct perf_spaces {
    struct profile *profile;
    const struct unwinder *unwinder; /* unwinder for the recorded machine; NULL: it is unknown */
    INDEXED_ARRAY_OF(struct perf_segment) segments;
    INDEXED_ARRAY_OF(struct perf_process) processes;
    struct perf_rules {
        uint64_t version; /* version of the space that the rules belong to; 0: none */
        struct rule_cache cache;
    } * rules; /* PERF_RULE_CACHES; NULL: not needed yet */
    uint64_t versions, copies, records;
    enum status status; /* the first failure */
};

void perf_spaces_init(struct perf_spaces *spaces, struct profile *profile);
void perf_spaces_fini(struct perf_spaces *spaces);

/* The fields of a mapping record. */
struct perf_mapped {
    uint32_t pid;
    uint64_t start, size, file_offset;
    struct string_id file_name, build_id, function;
    bool is_kernel; /* one for all processes */
};
void perf_spaces_map(struct perf_spaces *spaces, const struct perf_mapped *mapped);
void perf_spaces_fork(struct perf_spaces *spaces, uint32_t parent, uint32_t child);
void perf_spaces_empty(struct perf_spaces *spaces, uint32_t pid); /* exec, or exit */

enum { PERF_KERNEL_PID = UINT32_MAX };

/* The space of PID, or NULL. Valid until the next change. */
struct perf_space *perf_spaces_find(const struct perf_spaces *spaces, uint32_t pid);

/* The cache for walks in SPACE, until its next change. NULL without memory. */
struct rule_cache *perf_spaces_rules(struct perf_spaces *spaces, const struct perf_space *space);

/* The map in SPACE (may be NULL) that ADDRESS is in, or NULL. */
const struct perf_map *perf_space_map_at(const struct perf_space *space, uint64_t address);

/* The mapping of MAP in the profile, and where ADDRESS is in it. */
struct mapping_id perf_spaces_place(struct perf_spaces *spaces, const struct perf_map *map, uint64_t address,
                                    uint64_t *ret_address);

#endif
