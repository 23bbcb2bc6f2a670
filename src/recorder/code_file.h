/* Files with code that processes map, each with its frame table, shared by all processes that map it.
 *
 * The identity of a file is its device and number as the opened file has them, so that it is the same in all mount
 * namespaces. A file is opened through /proc/PID/map_files, which also shows deleted files, or else by its path below
 * /proc/PID/root if that leads to the same file. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_CODE_FILE_H
#define OFFBEAT_RECORDER_CODE_FILE_H

#include "binary/elf_file.h"
#include "unwind/frame_build.h"
#include "unwind/frame_lookup.h"

enum { CODE_FILES_MAX = 1 << 16, CODE_BUILD_ID_MAX = ELF_BUILD_ID_BYTES_MAX };

enum code_file_state {
    CODE_FILE_NEW,       /* its call frame information was not needed yet */
    CODE_FILE_LOOKED_UP, /* rules are looked up in the call frame information, and the table is being built */
    CODE_FILE_HAS_TABLE,
    CODE_FILE_WITHOUT_TABLE,
};

struct code_file {
    uint32_t number; /* number in this run, from 0; never used again */
    enum code_file_state state;
    struct frame_table table;   /* table if STATE is CODE_FILE_HAS_TABLE */
    struct frame_lookup lookup; /* lookup if STATE is CODE_FILE_LOOKED_UP and HAS_LOOKUP */
    bool has_lookup;
    uint8_t build_id[CODE_BUILD_ID_MAX];
    size_t build_id_size;              /* bytes; 0: it has none */
    uint64_t image_size, image_vmaddr; /* range of its segments, from the first byte to the last one */
};

#endif
