/* Lists the files that are mapped as code, with a frame table for each, and publishes them as immutable snapshots.
 *
 * Belongs to the sampler thread. A snapshot that a signalled thread may still walk with is kept until the caller says
 * that no thread does.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_MODULES_H
#define OFFBEAT_SAMPLER_MODULES_H

#include "base/pages.h"
#include "sampler/record/recording_writer.h"
#include "sampler/modules/table_job.h"
#include "unwind/unwind.h"

#include <stdatomic.h>

enum { MODULES_MAX = 4096 };

struct module {
    uint32_t number;     /* number in the recording */
    uint64_t start, end; /* addresses of the executable segment */
    uint64_t file_offset;
    struct mapped_image image;
    const void *loader_object; /* the loader's handle; NULL: the loader does not know the module */
    uint8_t build_id[RECORDING_BUILD_ID_MAX];
    uint32_t build_id_size;
    bool is_seen;          /* true if a comparison of two lists has found it in the other list */
    bool is_tried;         /* true if its table was built, or cannot be built */
    struct table_job *job; /* work on its table; NULL: not begun, or over */
    struct frame_table table;
    char path[MODULE_PATH_MAX];
};

/* Memory for the next snapshot; NULL: there is none. */
struct spare_snapshot {
    void *memory;
    size_t size;
};

/* Tables of all modules since the start. */
struct tables_total {
    uint64_t missing;  /* modules that can have none */
    uint64_t bytes;    /* memory of the tables */
    uint64_t spent_ns; /* time of the work on them, ns */
};

struct modules {
    struct pages_array items;       /* struct module, sorted by start */
    struct unwind_modules *current; /* snapshot for walks; its memory is one block */
    size_t current_size;
    atomic_bool is_changing;    /* true while the sampler thread changes them: a forked child begins with none */
    bool is_outdated;           /* true if there was no memory for a newer snapshot */
    struct pages_array retired; /* struct retired: snapshots and tables that may still be in use */
    struct spare_snapshot spare;
    uint32_t next_number;
    uint32_t unloads_seen;       /* dlclose calls of the program at the last listing */
    bool has_loaded_since;       /* true if the list has changed since the program's start */
    const char *cache_directory; /* folder of stored tables, by build id; NULL: tables are not stored */
    const char *image_directory; /* folder for copies of deleted files; NULL: none are kept */
    struct tables_total tables;
};

/* Lists the modules again if one in use has changed or the program has unloaded any; then publishes a snapshot and
 * writes RECORDING_MODULE and RECORDING_MODULE_GONE records. IS_TIME, once a second or so, also lists them if they have
 * ever changed, because an unload can go unnoticed. Tables are built when a stack reaches the module. */
void modules_refresh(struct modules *modules, bool is_time, struct recording_writer *writer);

/* Limits of the work on tables: CPU time of the sampler thread, ns, and CLOCK_MONOTONIC. */
struct modules_budget {
    uint64_t cpu_until_ns, until_ns;
};

/* Returns a budget of WORK_NS of CPU time. Reading waits for disks, and a busy machine for processors: the wall-clock
 * limit is a few times as much, or WAIT_NS, for which the sampler had to wait before. */
struct modules_budget modules_budget_of(uint64_t work_ns, uint64_t wait_ns);
static const struct modules_budget modules_no_limit = {.cpu_until_ns = UINT64_MAX, .until_ns = UINT64_MAX};

enum modules_result {
    MODULES_READY,   /* walk again: the current snapshot knows more */
    MODULES_LATER,   /* walk at a later tick: the module's call frame information is being copied */
    MODULES_NOTHING, /* nothing can be done */
};

/* Works within BUDGET on the table of the module at ADDRESS, where a walk ended with UNWIND_PENDING, until walks can
 * look rules up, and publishes a snapshot. Lists the modules again if no known one is there. */
enum modules_result modules_build(struct modules *modules, uint64_t address, struct modules_budget budget,
                                  struct recording_writer *writer);

/* Continues begun tables within BUDGET, except of modules with more than LARGEST bytes of call frame information. */
void modules_work(struct modules *modules, size_t largest, struct modules_budget budget);

/* Writes the known modules to the start of a new recording, with new numbers. */
void modules_write_again(struct modules *modules, struct recording_writer *writer);

/* Keeps copies of files that were deleted or replaced since their modules were listed. */
void modules_keep_deleted(const struct modules *modules);

/* Notes that the program has unloaded a library. From any thread, signal-safe. */
void modules_note_unload(void);

/* Returns true if walks can continue in at least one module. */
bool modules_have_any(const struct modules *modules);

/* Works within BUDGET on COUNT tables that no walk needs yet, until walks can look rules up. The modules with the
 * lowest addresses come first: the program itself, then mostly libc, which the loader maps last. */
void modules_build_more(struct modules *modules, size_t count, struct modules_budget budget);

/* Drops unfinished work in a forked child, whose parent may have been building tables. */
void modules_after_fork(struct modules *modules);

/* Returns true if there is retired memory that modules_release_retired may free. */
bool modules_have_retired(struct modules *modules);
/* Frees what was retired. The caller knows that no walk uses a snapshot older than the current one. */
void modules_release_retired(struct modules *modules);

#endif
