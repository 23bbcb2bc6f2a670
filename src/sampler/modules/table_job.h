/* Finds the frame table of one module in steps: takes it from where it was kept, or copies the module's call frame
 * information and builds it. As soon as .eh_frame is copied, walks can look rules up in the copy.
 *
 * Belongs to the sampler thread. Information is copied with process_read_memory, so that a module that is unmapped
 * meanwhile costs a table and not a crash. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_TABLE_JOB_H
#define OFFBEAT_SAMPLER_TABLE_JOB_H

#include "unwind/frame_lookup.h"
#include "unwind/frame_table_file.h"

enum { MODULE_PATH_MAX = 1024 };

/* The file of a module, where it is mapped. */
struct mapped_image {
    uint64_t start, size;
    uint64_t vmaddr;                    /* link address of START */
    uint64_t first_mapping_end;         /* end of the mapping at START */
    uint64_t load_bias;                 /* run-time addresses minus link addresses */
    uint64_t header_start, header_size; /* address and size of .eh_frame_hdr; 0: there is none */
    uint64_t device, inode;             /* identity of the file; 0: there is none */
};

/* Location of the call frame information of a module, and of its stored table. */
struct table_source {
    struct mapped_image image;
    char kept_path[2 * MODULE_PATH_MAX]; /* path of the stored table; empty: none */
    uint8_t key[FRAME_TABLE_KEY_MAX];    /* key of the stored table */
    size_t key_size;
};

enum table_outcome {
    TABLE_BUILT,
    TABLE_NO_INFORMATION, /* neither .eh_frame nor .debug_frame */
    TABLE_UNREADABLE,     /* the information is damaged, or its module was unmapped */
    TABLE_NO_FUNCTIONS,
    TABLE_TOO_LARGE,
    TABLE_NO_MEMORY,
    TABLE_OUTCOMES,
};

struct table_job;

/* Begins the work on SOURCE, whose file is PATH, "[vdso]" for a module without a file. Copies both. Returns NULL
 * without memory. */
struct table_job *table_job_begin(const struct table_source *source, const char *path);

/* Does one step, at most some 100 µs of computing; reading a file that is not in memory takes longer. Returns true if
 * there is more to do. */
bool table_job_step(struct table_job *job);

/* Returns true once walks can use *RET_LOOKUP, which refers to the copies. */
bool table_job_lookup(const struct table_job *job, struct frame_lookup *ret_lookup);

/* Returns the size of the module's call frame information, bytes; 0 until that is known. */
size_t table_job_size(const struct table_job *job);

/* Ends the job, finished or not. *RET_TABLE is set if the outcome is TABLE_BUILT. *RET_COPIES is memory that lookups
 * refer to, of *RET_COPIES_SIZE bytes, or NULL; the caller frees it (pages_free) once no walk uses it. */
enum table_outcome table_job_end(struct table_job *job, struct frame_table *ret_table, void **ret_copies,
                                 size_t *ret_copies_size);

#endif
