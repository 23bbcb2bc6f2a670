/* Which files are mapped as code, and a frame table for each: published as immutable snapshots.
 *
 * Belongs to the sampler thread. A snapshot that a signalled thread may still walk with is kept until the caller says
 * that nobody does.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_MODULES_H
#define OFFBEAT_SAMPLER_MODULES_H

#include "base/pages.h"
#include "sampler/recording_writer.h"
#include "unwind/unwind.h"

enum { MODULES_MAX = 4096, MODULE_PATH_MAX = 1024 };

struct module {
    uint32_t number;     /* in the recording */
    uint64_t start, end; /* the executable segment */
    uint64_t file_offset;
    uint64_t load_bias;
    uint64_t image_start, image_size, image_vmaddr;
    uint64_t header_start, header_size; /* .eh_frame_hdr; 0: none */
    uint64_t header_segment_end;        /* of the loaded segment that holds it, and .eh_frame */
    uint8_t build_id[RECORDING_BUILD_ID_MAX];
    uint32_t build_id_size;
    bool is_seen;  /* while the list is compared */
    bool is_tried; /* a table was built, or there can be none */
    struct frame_table table;
    char path[MODULE_PATH_MAX];
};

struct modules {
    struct pages_array items;       /* of struct module, sorted by start */
    struct unwind_modules *current; /* the snapshot; its memory is one block */
    size_t current_size;
    struct pages_array retired; /* of struct retired: snapshots and tables that may still be in use */
    uint64_t changes;           /* the loader's counters at the last look */
    uint32_t next_number;
    uint64_t without_table, table_bytes, table_ns;
};

/* Asks the loader whether anything was loaded or unloaded since; if so, reads the list, publishes a snapshot and writes
 * RECORDING_MODULE and RECORDING_MODULE_GONE records. Tables are built for modules that turn up in a stack, then. */
void modules_refresh(struct modules *modules, struct recording_writer *writer);

/* Builds the table of the module that holds ADDRESS, for a walk that ended there with UNWIND_PENDING, and publishes a
 * snapshot that has it. */
void modules_build(struct modules *modules, uint64_t address);

/* No walk with a snapshot older than the current one is under way: frees what was retired. */
void modules_release_retired(struct modules *modules);

/* Around fork: the child must not inherit the loader's lock from the sampler thread. */
void modules_before_fork(void);
void modules_after_fork(void);

#endif
