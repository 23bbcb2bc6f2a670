/* The sections of an ELF file's debug information that names come from, inflated, as a small ELF file in memory.
 *
 * libdw could read the file itself, but then each thread's handle would inflate all of it for its own, slowly, and with
 * what names need not (where variables are, half a gigabyte in large programs).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DEBUG_IMAGE_H
#define OFFBEAT_SYMBOLIZE_DEBUG_IMAGE_H

#include "binary/elf_file.h"

#define DEBUG_IMAGE_BYTES_MAX ((uint64_t)16 << 30)

/* {0} is valid and empty. */
struct debug_image {
    uint8_t *bytes; /* pages that nothing else writes to */
    size_t size;
};

/* False if FILE has no debug information, if it is compressed in a way that we do not know or damaged, or if memory is
 * short. Every section of texts in the image ends with a NUL. */
bool debug_image_make(struct debug_image *image, const struct elf_file *file);

void debug_image_free(struct debug_image *image);

#endif
