/* Callbacks by which the reader of perf.data asks for the call frame information of files.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_CODE_H
#define OFFBEAT_FORMAT_PERF_PERF_CODE_H

#include "unwind/frame_table.h"

struct perf_code_segment {
    uint64_t file_offset, size, address; /* ADDRESS is the file's own */
};

struct perf_code_file {
    uint16_t elf_machine; /* EM_… */
    const struct frame_table *table;
    uint64_t base; /* the file's own address that the table's addresses are relative to */
    const struct perf_code_segment *segments;
    size_t segment_count;
    const void *binary; /* argument of READ */
};

/* FIND gives the file at PATH if its build id is BUILD_ID (hex), else NULL. Its results are valid until the end of
 * decoding. READ copies bytes of a file, false if they are not there. NOTE_KERNEL is called at the first sample in the
 * kernel itself. IDENTIFY is asked about a mapping without a build id: the id of the file at PATH, in hex, if it is the
 * recorded one (INODE and GENERATION; 0: not known), else "". NOTE_KERNEL and IDENTIFY may be NULL. */
struct perf_code {
    const struct perf_code_file *(*find)(void *context, const char *path, const char *build_id);
    bool (*read)(const void *binary, uint64_t file_offset, void *bytes, size_t size);
    void (*note_kernel)(void *context, const char *build_id);
    const char *(*identify)(void *context, const char *path, uint64_t inode, uint64_t generation);
    void *context;
};

#endif
