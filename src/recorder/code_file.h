/* Files with code that processes map, each with its frame table, shared by all processes that map it.
 *
 * The identity of a file is its device and number as the opened file has them, so that it is the same in all mount
 * namespaces. A file is opened through /proc/PID/map_files, which also shows deleted files, or else by its path below
 * /proc/PID/root if that leads to the same file. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_CODE_FILE_H
#define OFFBEAT_RECORDER_CODE_FILE_H

#include "base/array.h"
#include "base/index_table.h"
#include "base/maps.h"
#include "binary/elf_file.h"
#include "symbolize/frame_sections.h"
#include "unwind/frame_build.h"
#include "unwind/frame_lookup.h"

#include <sys/types.h>

enum { CODE_FILES_MAX = 1 << 16, CODE_BUILD_ID_MAX = ELF_BUILD_ID_BYTES_MAX, CODE_LANDMARKS_MAX = 8 };

/* Whether the file of a mapping could be read. */
enum code_file_sight {
    CODE_FILE_SEEN,   /* it is open */
    CODE_FILE_OTHER,  /* it is no ELF file, or this user may not read it */
    CODE_FILE_UNSEEN, /* it could not be read: the process has ended, or there is no room for another file */
};

enum code_file_state {
    CODE_FILE_NEW,       /* its call frame information was not needed yet */
    CODE_FILE_LOOKED_UP, /* rules are looked up in the call frame information, and the table is being built */
    CODE_FILE_HAS_TABLE,
    CODE_FILE_WITHOUT_TABLE,
};

/* Code of the Go runtime where stacks end or change, as offsets from the first byte of the image. */
struct code_landmark {
    uint64_t start, end;
    bool is_root; /* true: nothing called it; false: it was called on another stack, by the frame pointer */
};

struct code_file {
    uint32_t number;  /* number among the open files, the lowest that was free */
    uint64_t used_ns; /* last time that a process was known to have it, CLOCK_MONOTONIC */
    enum code_file_state state;
    struct frame_table table;   /* table if STATE is CODE_FILE_HAS_TABLE */
    struct frame_lookup lookup; /* lookup if STATE is CODE_FILE_LOOKED_UP and HAS_LOOKUP */
    bool has_lookup;
    bool keeps_frame_pointers; /* true for Go: all its code has frame pointers, and the outermost one is zero */
    struct code_landmark landmarks[CODE_LANDMARKS_MAX]; /* list sorted by START */
    size_t landmark_count;
    uint8_t build_id[CODE_BUILD_ID_MAX];
    size_t build_id_size;              /* bytes; 0: it has none */
    uint64_t image_size, image_vmaddr; /* range of its segments, from the first byte to the last one */
    uint64_t device, inode;            /* numbers in the maps of the processes; 0: the vdso */
    struct elf_file elf;               /* the open file, so that it can be read after it was deleted */
    uint8_t *memory;                   /* copy of the vdso; NULL: it is a file */
    struct frame_sections sections;    /* call frame information while the table is being built */
    struct frame_build *build;         /* work on the table; NULL: none */
    char *link;                        /* link to this descriptor, by which names are found; NULL: none */
};

struct code_files {
    ARRAY_OF(struct code_file *) items; /* files by number; NULL: the number is free */
    struct index_table by_identity;
    const char *cache_directory; /* folder of tables that were built before; NULL: none */
    size_t open_count;
    size_t building;          /* number of files whose tables are being built */
    uint64_t evicted, unseen; /* files closed by eviction, and mappings whose file could not be read */
};

/* Adds a file without a name for code that a process has generated. Returns NULL if there is no room. */
struct code_file *code_files_add_generated(struct code_files *files);

/* Called for a file that is about to be closed. */
typedef void (*code_file_function)(void *context, const struct code_file *file);

void code_files_fini(struct code_files *files);

/* Returns the file that process PID has mapped at ENTRY, or the vdso, with *RET_SIGHT; NULL unless that is SEEN. */
struct code_file *code_files_find(struct code_files *files, pid_t pid, const struct maps_entry *entry,
                                  enum code_file_sight *ret_sight);

/* Keeps FILE readable by its build id below DIRECTORY, where names are looked for, until it is closed. */
void code_file_link(struct code_file *file, const char *directory);

/* Closes up to COUNT files that no process has had since UNUSED_SINCE_NS, the longest unused first, after a call of
 * CLOSING for each. Returns the number. Files with links stay if KEEPS_LINKS. */
size_t code_files_evict(struct code_files *files, size_t count, uint64_t unused_since_ns, bool keeps_links,
                        code_file_function closing, void *context);

/* Prepares FILE for walks: takes over a stored table, or reads its call frame information. */
void code_file_prepare(struct code_files *files, struct code_file *file);

/* Works on the tables that are being built until the time UNTIL_NS (CLOCK_MONOTONIC). Returns true if one was
 * completed. */
bool code_files_work(struct code_files *files, uint64_t until_ns);

#endif
