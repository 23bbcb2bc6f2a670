/* Finds the call frame information of a file by its section headers: the program headers of a loaded module do not
 * describe all of it. Reads only the few fields that this takes; binary/elf_file.h is the reader for everything else.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_ELF_SECTIONS_H
#define OFFBEAT_UNWIND_ELF_SECTIONS_H

#include "base/slice.h"

#include <stdbool.h>

/* Copies SIZE bytes at OFFSET of the file. Returns false if there are fewer. */
typedef bool (*elf_read)(void *context, uint64_t offset, void *bytes, size_t size);

struct elf_section_place {
    uint64_t address;      /* address in the file; 0 if the section is not loaded */
    uint64_t offset, size; /* place in the file; size 0: there is no such section, or it cannot be used */
};

struct elf_frame_sections {
    struct elf_section_place eh_frame, eh_frame_hdr, debug_frame;
};

/* Searches the section headers of a 64-bit little-endian file for the chosen machine. Ignores compressed sections and
 * sections without bytes in the file. Returns false if it is another kind of file, or damaged. Allocates nothing. */
bool elf_frame_sections_find(elf_read read, void *context, struct elf_frame_sections *ret_sections);

#endif
