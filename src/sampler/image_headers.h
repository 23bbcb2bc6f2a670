/* The ELF headers of a module, read from memory.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_IMAGE_HEADERS_H
#define OFFBEAT_SAMPLER_IMAGE_HEADERS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEGMENTS_MAX = 64 }; /* files with more are not looked at */

struct image_headers {
    Elf64_Phdr items[SEGMENTS_MAX];
    size_t count;
};

/* IMAGE_START is where the start of the file is mapped. False if there is no 64-bit ELF header. */
bool image_headers_read(uint64_t image_start, struct image_headers *ret_headers);

#endif
