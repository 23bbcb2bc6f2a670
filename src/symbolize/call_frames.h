/* The call frame information of an ELF file.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_CALL_FRAMES_H
#define OFFBEAT_SYMBOLIZE_CALL_FRAMES_H

#include "symbolize/symbol_module.h"
#include "unwind/frame_table.h"

struct call_frames {
    struct symbol_module module; /* module with the segments of its binary */
    uint64_t base;               /* the file's own address that the table's addresses are relative to */
    struct frame_table table;
};

/* Opens the file at PATH, which must outlive FRAMES, and builds its table. As for names, the file is used only if its
 * build id is BUILD_ID, which must not be empty. False if there is none. */
bool call_frames_open(struct call_frames *frames, const char *path, const char *build_id);
void call_frames_close(struct call_frames *frames); /* after a successful open */

#endif
