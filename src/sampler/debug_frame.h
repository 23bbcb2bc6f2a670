/* .debug_frame, which describes code that was compiled without unwind tables. No loader maps it: it is taken out of the
 * file, if that still is the one that the module was mapped from. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_DEBUG_FRAME_H
#define OFFBEAT_SAMPLER_DEBUG_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_copy {
    uint8_t *memory; /* of base/pages.h; NULL: nothing */
    size_t size;
};

/* Copies the .debug_frame of the file at PATH, the start of which was mapped at IMAGE_START. False, and nothing copied,
 * if there is none, it is larger than LIMIT, or that file is not there any more. Copied and not mapped: one
 * that is cut meanwhile gives fewer bytes, and no SIGBUS. */
bool debug_frame_read(const char *path, uint64_t image_start, size_t limit, struct frame_copy *ret_copy);

#endif
