/* Reads the memory of a process, mapping by mapping, from its /proc/PID/maps: of this process or of any other that may
 * be read. Uses the caller's buffer and neither libc's memory nor its locale, so that the sampler's thread can use it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_MAPS_H
#define OFFBEAT_BASE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct maps_entry {
    uint64_t start, end;
    uint64_t file_offset;   /* offset of START in the file */
    uint64_t device, inode; /* the file; 0: no file */
    bool is_executable;
    const char *path; /* path without " (deleted)", or a name of the kernel ("[vdso]"); "": anonymous memory */
};

struct maps_reader {
    int descriptor; /* descriptor of the maps file, at its start; stays the caller's */
    char *buffer;   /* SIZE bytes, at least the longest line: 64 KiB are enough for any path */
    size_t size;
    size_t filled, taken; /* private, 0 at the start */
};

/* The next mapping. False at the end. RET_ENTRY is valid until the next call. Lines that are no mappings are left out.
 */
bool maps_next(struct maps_reader *reader, struct maps_entry *ret_entry);

#endif
