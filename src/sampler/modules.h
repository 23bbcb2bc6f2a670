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
    const void *loader_object;          /* how the loader knows it; NULL: it does not */
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
    uint32_t next_number;
    const char *cache_directory; /* where tables are kept by build id; NULL: nowhere */
    uint64_t without_table, table_bytes, table_ns;
};

/* Looks whether a module in use is another one than before; if so, lists them anew, publishes a snapshot and writes
 * RECORDING_MODULE and RECORDING_MODULE_GONE records. IS_TIME, once a second or so, lists where nothing better is to be
 * had. Tables are built for modules that turn up in a stack, then. */
void modules_refresh(struct modules *modules, bool is_time, struct recording_writer *writer);

/* For a walk that ended at ADDRESS with UNWIND_PENDING: builds the table of the module there, having listed the modules
 * anew if it is in none that is known, and publishes a snapshot. False if there is still none: give up. */
bool modules_build(struct modules *modules, uint64_t address, struct recording_writer *writer);

/* Writes what is known to the start of a new recording, with new numbers. */
void modules_tell_again(struct modules *modules, struct recording_writer *writer);

/* Builds COUNT of the tables that nobody has asked for yet. */
void modules_build_more(struct modules *modules, size_t count);

/* No walk with a snapshot older than the current one is under way: frees what was retired. */
void modules_release_retired(struct modules *modules);

#endif
