/* The code that a Java virtual machine (HotSpot) has generated. Without frame pointers only the machine knows the size
 * of its frames: it describes its own structures in exported tables, from which its code cache is read.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_HOTSPOT_H
#define OFFBEAT_RECORDER_HOTSPOT_H

#include "interpreters/interpreter.h"
#include "unwind/frame_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOTSPOT_HEAPS_MAX = 8 };

/* Offsets of members, bytes. */
struct hotspot_layout {
    uint32_t heap_memory, heap_log2_segment, space_low, space_high;
    uint32_t block_length, block_used, block_header_size;
    uint32_t blob_name, blob_frame_size, blob_frame_complete;
    uint32_t blob_code_begin, blob_code_end;     /* addresses, up to JDK 21 or so */
    uint32_t blob_code_offset, blob_data_offset; /* distances from the blob instead; the first 0: there is none */
};

struct hotspot {
    struct hotspot_layout layout;
    uint64_t heaps; /* address of the variable that leads to the list of heaps */
};

/* Finds the tables that IMAGE, libjvm.so, exports. Returns false if they are not complete, or not filled yet. */
bool hotspot_attach(const struct interpreter_image *image, const struct process_memory *memory,
                    struct hotspot *ret_hotspot);

/* Makes a table of all code in the cache, relative to *RET_BASE. *RET_END is the end of the cache. Returns false if it
 * cannot be read. */
bool hotspot_read_code(const struct hotspot *hotspot, const struct process_memory *memory,
                       struct frame_table *ret_table, uint64_t *ret_base, uint64_t *ret_end);

#endif
