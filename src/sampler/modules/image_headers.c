/* SPDX-License-Identifier: MIT */
#include "sampler/modules/image_headers.h"

#include "sampler/kernel/own_memory.h"

#include <string.h>

size_t image_headers_copy(const struct image_headers *headers, uint64_t address, void *bytes, size_t size)
{
    uint64_t offset = address - headers->image_start;
    if (offset > headers->start_size || size > headers->start_size - offset)
        return process_read_memory(address, bytes, size);
    memcpy(bytes, headers->start + offset, size);
    return size;
}

bool image_headers_read(uint64_t image_start, struct image_headers *ret_headers)
{
    Elf64_Ehdr header;
    ret_headers->image_start = image_start;
    ret_headers->start_size = process_read_memory(image_start, ret_headers->start, sizeof(ret_headers->start));
    if (image_headers_copy(ret_headers, image_start, &header, sizeof(header)) != sizeof(header)) return false;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > SEGMENTS_MAX) return false;
    size_t size = header.e_phnum * sizeof(Elf64_Phdr);
    ret_headers->count = header.e_phnum;
    return image_headers_copy(ret_headers, image_start + header.e_phoff, ret_headers->items, size) == size;
}
