/* Where a file keeps its call frame information: what the program headers of a loaded module do not say, read from the
 * section headers of its file. Only the few fields that this takes; binary/elf_file.h is the reader for everything
 * else. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_ELF_SECTIONS_H
#define OFFBEAT_UNWIND_ELF_SECTIONS_H

#include "base/slice.h"

#include <stdbool.h>

/* Copies SIZE bytes at OFFSET of the file. False if they are not all there. */
typedef bool (*elf_read)(void *context, uint64_t offset, void *bytes, size_t size);

struct elf_section_place {
    uint64_t address;      /* as the file numbers it; 0 if it is not loaded */
    uint64_t offset, size; /* in the file; size 0: there is none that can be used */
};

struct elf_frame_sections {
    struct elf_section_place eh_frame, eh_frame_hdr, debug_frame;
};

/* Looks through the section headers of a 64-bit little-endian x86-64 file. Compressed sections and those without bytes
 * in the file are passed over. False if it is another kind of file, or damaged. Allocates nothing. */
bool elf_frame_sections_find(elf_read read, void *context, struct elf_frame_sections *ret_sections);

#endif
