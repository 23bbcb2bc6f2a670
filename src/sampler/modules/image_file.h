/* The file that a module was mapped from, if it still exists. It has sections that no loader maps, such as
 * .debug_frame, which describes code that was compiled without unwind tables. Copying a mapped section from the file
 * takes a third of the time of copying it from memory. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_IMAGE_FILE_H
#define OFFBEAT_SAMPLER_IMAGE_FILE_H

#include "unwind/elf_sections.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_file {
    const char *path;
    uint64_t start;         /* address at which the start of the file is mapped */
    uint64_t device, inode; /* identity of the mapped file; inode 0: another copy of the file will do, too */
};

/* Finds the call frame information of FILE. Returns false if the file is gone, or damaged. */
bool image_file_find_frames(const struct image_file *file, struct elf_frame_sections *ret_sections);

/* Copies SIZE bytes at OFFSET of FILE. The file is not mapped: if it is cut meanwhile, there are fewer bytes, and no
 * SIGBUS. It is opened for each copy, so that no descriptor stays open. */
bool image_file_copy(const struct image_file *file, uint64_t offset, void *bytes, size_t size);

/* Copies FILE, which is mapped from its start up to END and is deleted, to PATH, if there is no file yet. Needs
 * CAP_CHECKPOINT_RESTORE (proc(5), map_files), except for the program itself. */
void image_file_keep(const struct image_file *file, uint64_t end, const char *path);

#endif
