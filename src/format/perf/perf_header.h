/* The header of a perf.data file: events, build ids, the machine.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_HEADER_H
#define OFFBEAT_FORMAT_PERF_PERF_HEADER_H

#include "format/perf/perf_data.h"

/* The identity of a file. {0}: not known. */
struct perf_file_id {
    uint64_t device, inode, generation;
};

enum { PERF_FILES_OF_NAME_MAX = 256 };

/* Files of one name, in several mount namespaces, are a list. perf notes each in the order in which it was mapped. */
struct perf_build_id {
    struct string_id file_name, build_id;
    uint32_t next, count;     /* NEXT: the next file of that name; 0: none. COUNT: files of that name, in the first. */
    bool has_several_ids;     /* files of the name differ; only in the first */
    struct perf_file_id file; /* {0}: not mapped yet */
};

struct perf_header {
    struct profile *profile;
    bool is_pipe, is_in_folder; /* the records are in other files of a folder */
    uint64_t data_start, data_end;
    bool may_be_cut;
    uint64_t features_taken; /* a bit each: the first of a kind counts */
    struct perf_events events;
    INDEXED_ARRAY_OF(struct perf_build_id) build_ids; /* build ids by the name of the file */
    const struct unwinder *unwinder;                  /* unwinder for the machine; NULL: it is not supported */
    int64_t clock_offset_ns;                          /* difference to times since 1970 */
    bool has_clock;
};

/* Reads the header at the front of SOURCE and what it refers to. Finish it in every case. */
enum status perf_header_read(struct perf_header *header, const struct perf_source *source, struct profile *profile,
                             struct error *error);
void perf_header_fini(struct perf_header *header);

/* The records by which a pipe says the same; others are ignored. */
enum status perf_header_take(struct perf_header *header, const struct perf_record *record, uint64_t offset,
                             struct error *error);

/* "" if none is known. Where files of that name have several build ids, each new FILE has the next one of them, and a
 * FILE that is not known has none. */
struct string_id perf_header_build_id(struct perf_header *header, struct string_id file_name, struct perf_file_id file);

/* The name of a file without what perf adds to the kernel's: "[kernel.kallsyms]_text". */
struct slice perf_file_name(struct slice name);

/* BYTES in hex. */
struct string_id perf_hex(struct profile *profile, struct slice bytes);

#endif
