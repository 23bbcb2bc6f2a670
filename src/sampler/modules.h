/* Which files are mapped as code, and a frame table for each: published as immutable snapshots.
 *
 * Belongs to the sampler thread. A snapshot that a signalled thread may still walk with is kept until the caller says
 * that nobody does.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_MODULES_H
#define OFFBEAT_SAMPLER_MODULES_H

#include "base/pages.h"
#include "sampler/recording_writer.h"
#include "sampler/table_job.h"
#include "unwind/unwind.h"

#include <stdatomic.h>

enum { MODULES_MAX = 4096 };

struct module {
    uint32_t number;     /* in the recording */
    uint64_t start, end; /* the executable segment */
    uint64_t file_offset;
    uint64_t device, inode; /* of the file; 0: of none */
    uint64_t load_bias;
    uint64_t image_start, image_size, image_vmaddr;
    uint64_t header_start, header_size; /* .eh_frame_hdr; 0: none */
    const void *loader_object;          /* how the loader knows it; NULL: it does not */
    uint8_t build_id[RECORDING_BUILD_ID_MAX];
    uint32_t build_id_size;
    bool is_seen;               /* while the list is compared */
    bool is_tried;              /* a table was built, or cannot be built */
    enum table_outcome outcome; /* if it is tried */
    struct table_job *job;      /* that finds its table; NULL: not begun, or over */
    struct frame_table table;
    char path[MODULE_PATH_MAX];
};

struct modules {
    struct pages_array items;       /* of struct module, sorted by start */
    struct unwind_modules *current; /* the snapshot; its memory is one block */
    size_t current_size;
    atomic_bool is_changing;    /* the sampler thread is at work on them: a forked child begins with none */
    bool is_outdated;           /* there was no memory for a newer one */
    struct pages_array retired; /* of struct retired: snapshots and tables that may still be in use */
    void *spare;                /* a snapshot's memory, for the next one */
    size_t spare_size;
    uint32_t next_number;
    uint32_t unloads_seen;       /* how often the program had unloaded modules when they were listed */
    bool has_loaded_since;       /* they are not those any more that the program started with */
    const char *cache_directory; /* where tables are kept by build id; NULL: nowhere */
    uint64_t without_table, table_bytes, table_ns;
};

/* The program has unloaded a module. Another one may get its addresses, and what the loader calls it by. Any thread,
 * signal-safe. */
void modules_note_unload(void);

/* Looks whether a module in use is another one than before, or the program has unloaded any; if so, lists them again,
 * publishes a snapshot and writes RECORDING_MODULE and RECORDING_MODULE_GONE records. IS_TIME, once a second or so,
 * lists them if they have changed before: nobody may have noted that one was unloaded. Tables are built for modules
 * that turn up in a stack, then. */
void modules_refresh(struct modules *modules, bool is_time, struct recording_writer *writer);

/* What may be spent on tables: WORK_NS of processor time and, because reading waits for disks and a busy machine for
 * processors, a few times as much of the clock's, or WAIT_NS, for which the sampler had to wait before. */
struct modules_budget {
    uint64_t cpu_until_ns, until_ns;
};
struct modules_budget modules_budget_of(uint64_t work_ns, uint64_t wait_ns);
static const struct modules_budget modules_no_limit = {.cpu_until_ns = UINT64_MAX, .until_ns = UINT64_MAX};

enum modules_result {
    MODULES_READY,   /* walk again: the current snapshot knows more */
    MODULES_LATER,   /* the module's call frame information is being copied: walk at a later tick */
    MODULES_NOTHING, /* nothing can be done */
};

/* For a walk that ended at ADDRESS with UNWIND_PENDING: works within BUDGET on the table of the module there until
 * walks can look rules up, having listed the modules again if it is in none that is known, and publishes a snapshot. */
enum modules_result modules_build(struct modules *modules, uint64_t address, struct modules_budget budget,
                                  struct recording_writer *writer);

/* Continues tables that were begun, within BUDGET. Modules with more than LARGEST bytes of call frame
 * information wait. */
void modules_work(struct modules *modules, size_t largest, struct modules_budget budget);

/* Writes the known modules to the start of a new recording, with new numbers. */
void modules_write_again(struct modules *modules, struct recording_writer *writer);

/* True if walks can continue in at least one module. */
bool modules_have_any(const struct modules *modules);

/* Works on COUNT of the tables that nobody has asked for yet, until walks can look rules up, within BUDGET. The modules
 * with the lowest addresses come first: the program itself, then mostly libc, which the loader maps last. */
void modules_build_more(struct modules *modules, size_t count, struct modules_budget budget);

/* In a forked child, whose parent may have been building tables. */
void modules_after_fork(struct modules *modules);

/* True if there is something to release: */
bool modules_have_retired(struct modules *modules);
/* No walk with a snapshot older than the current one is under way: frees what was retired. */
void modules_release_retired(struct modules *modules);

#endif
