/* The file that a module was mapped from, if it still is there. It has what no loader maps, such as .debug_frame, which
 * describes code that was compiled without unwind tables; and of what is mapped too, a copy from the file takes a third
 * of the time of one from memory. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_IMAGE_FILE_H
#define OFFBEAT_SAMPLER_IMAGE_FILE_H

#include "unwind/elf_sections.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* START is where the start of the file was mapped. */
struct image_file {
    const char *path;
    uint64_t start;
    uint64_t device, inode; /* of what was mapped; inode 0: another copy of the file will do, too */
};

/* Where FILE has its call frame information. False if it is not there any more, or damaged. */
bool image_file_find_frames(const struct image_file *file, struct elf_frame_sections *ret_sections);

/* Copies SIZE bytes at OFFSET of FILE. Copied and not mapped: a file that is cut meanwhile gives fewer bytes, and no
 * SIGBUS. Opened for each copy, so that no descriptor stays open in between. */
bool image_file_copy(const struct image_file *file, uint64_t offset, void *bytes, size_t size);

#endif
