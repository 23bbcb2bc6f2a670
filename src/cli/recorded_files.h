/* Files of this machine that perf recorded without a build id.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_RECORDED_FILES_H
#define OFFBEAT_CLI_RECORDED_FILES_H

#include "base/index_table.h"
#include "profile/profile.h"

struct recorded_file {
    char *path, *id;
    uint64_t inode, generation; /* number of the file, and which of the files with that number; 0: not known */
    bool is_contents;           /* ID is not a build id: it is computed from the file's code (binary/contents_id.h) */
};

/* The answers so far, for one recording. */
struct recorded_files {
    const struct profile *profile; /* profile with the machine that perf noted */
    uint64_t begin_ns; /* begin of the recording, ns since 1970; 0: not known, no file is the recorded one */
    INDEXED_ARRAY_OF(struct recorded_file) known;
};

/* Prepares FILES for the recording that is open as DESCRIPTOR: it began when its file was made. */
void recorded_files_init(struct recorded_files *files, int descriptor, const struct profile *profile);
void recorded_files_fini(struct recorded_files *files);

/* Returns the id of the file at PATH, in hex, if it is the one that was recorded; else "". It is if perf ran on a
 * machine of this name, if the file is regular, an ELF file, and has the number INODE, and if its content is older than
 * the recording. Its time of change must be older, too, or its GENERATION the same: perf links files into ~/.debug. The
 * running kernel, "[kernel.kallsyms]", is if the machine started before that. */
const char *recorded_files_identify(struct recorded_files *files, const char *path, uint64_t inode,
                                    uint64_t generation);

/* Gives mappings of PROFILE with an id that is not a build id the debug id that it is. */
void recorded_files_give_debug_ids(const struct recorded_files *files, struct profile *profile);

#endif
