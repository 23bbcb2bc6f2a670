/* The ELF headers of a module, read from memory.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_IMAGE_HEADERS_H
#define OFFBEAT_SAMPLER_IMAGE_HEADERS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEGMENTS_MAX = 64 }; /* files with more are ignored */

struct image_headers {
    Elf64_Phdr items[SEGMENTS_MAX];
    size_t count;
    uint64_t image_start;
    uint8_t start[2048]; /* first bytes of the image: mostly all headers and the build id, in one system call */
    size_t start_size;
};

/* Reads the headers of the file whose start is mapped at IMAGE_START. Returns false without a 64-bit ELF header. */
bool image_headers_read(uint64_t image_start, struct image_headers *ret_headers);

/* Copies SIZE bytes at ADDRESS of the image. Returns how many there were. */
size_t image_headers_copy(const struct image_headers *headers, uint64_t address, void *bytes, size_t size);

#endif
