/* The code that a process has mapped: modules for the recording, for engines, and for walks.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_PROCESS_CODE_H
#define OFFBEAT_RECORDER_PROCESS_CODE_H

#include "recorder/engine.h"
#include "recorder/java_code.h"
#include "sampler/record/recording_writer.h"
#include "unwind/unwind.h"

struct walked_stack;

enum {
    PROCESS_MODULES_MAX = 1 << 14,
    PROCESS_GENERATED_MAX = 1 << 12,
    PROCESS_MODULE_GENERATED = UINT32_MAX, /* number of a module of generated code, which no recording has */
};

struct process_code {
    ARRAY_OF(struct process_module) modules;   /* list sorted by START */
    ARRAY_OF(struct generated_code) generated; /* list sorted by START */
    struct unwind_module *walked;              /* the same for walks */
    struct frame_lookup *lookups;              /* lookups of WALKED, at the addresses of the process */
    struct unwind_modules list;                /* list of WALKED */
    struct rule_cache *cache;
    uint32_t next_number;
    uint64_t generation; /* number that grows with each change */
    uint64_t listed_ns;  /* time of the last listing, CLOCK_MONOTONIC */
    bool has_unloaded;   /* true if code has gone since the program began */
    struct java_code java;
};

void process_code_fini(struct process_code *code);

/* Lists the code of process PID again and writes what is new and gone to WRITER. Returns false, with errno, if its
 * mappings cannot be read: the process has ended (ENOENT or ESRCH), or this user may not. */
bool process_code_list(struct process_code *code, struct code_files *files, pid_t pid, const char *image_directory,
                       struct recording_writer *writer);

/* Returns the module that holds ADDRESS, or NULL. */
const struct process_module *process_code_module(const struct process_code *code, uint64_t address);

/* Returns true if ADDRESS is in code that is in no file. */
bool process_code_is_generated(const struct process_code *code, uint64_t address);

/* Returns true if a frame of STACK, of the time TIME_NS, is in no known code, or in a module that was seen only later,
 * and the process unloads code: other code may have been there. */
bool process_code_is_outdated(const struct process_code *code, const struct walked_stack *stack, uint64_t time_ns);

/* Makes walks use the tables that are ready by now. */
void process_code_update(struct process_code *code);
/* Returns true if walks use all tables that are ready. */
bool process_code_is_current(const struct process_code *code);

/* Prepares the module at ADDRESS, where a walk has met no rules. Returns true if a second walk can go on there. */
bool process_code_prepare(struct process_code *code, struct code_files *files, uint64_t address);

#endif
