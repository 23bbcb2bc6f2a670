/* The sections of an ELF file that have call frame information.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_FRAME_SECTIONS_H
#define OFFBEAT_SYMBOLIZE_FRAME_SECTIONS_H

#include "base/buffer.h"
#include "binary/elf_file.h"
#include "unwind/frame_table.h"

enum { FRAME_SECTION_BYTES_MAX = 256 << 20 }; /* bytes of one section */

struct frame_sections {
    struct buffer eh_frame, header, debug_frame;
    struct frame_table_source source; /* source that refers to the buffers */
};

/* Copies the sections of FILE; its tables will be relative to BASE. Returns false if one cannot be read. The caller
 * frees SECTIONS in both cases. */
bool frame_sections_read(struct frame_sections *sections, const struct elf_file *file, uint64_t base);
void frame_sections_free(struct frame_sections *sections);

#endif
