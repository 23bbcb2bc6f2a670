/* SPDX-License-Identifier: MIT */
#include "sampler/image_headers.h"

#include "sampler/self.h"

#include <string.h>

bool image_headers_read(uint64_t image_start, struct image_headers *ret_headers)
{
    Elf64_Ehdr header;
    if (self_read_memory(image_start, &header, sizeof(header)) != sizeof(header)) return false;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > SEGMENTS_MAX) return false;
    size_t size = header.e_phnum * sizeof(Elf64_Phdr);
    ret_headers->count = header.e_phnum;
    return self_read_memory(image_start + header.e_phoff, ret_headers->items, size) == size;
}
