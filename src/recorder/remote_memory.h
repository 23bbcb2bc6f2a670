/* Reads the memory of another process, which neither stops nor notices it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_REMOTE_MEMORY_H
#define OFFBEAT_RECORDER_REMOTE_MEMORY_H

#include "interpreters/process_memory.h"
#include "unwind/frame_lookup.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { REMOTE_BLOCK_BYTES = 16 << 10 };

/* Copies up to SIZE bytes at ADDRESS of process PID, up to the first page that cannot be read. Returns their number. */
size_t remote_read(pid_t pid, uint64_t address, void *bytes, size_t size);

/* Copies PIECES of the process whose number is the context of MEMORY, in one call. */
bool remote_gather(const struct process_memory *memory, const struct memory_pieces *pieces);

/* The stack of a thread, read block by block while it is walked. */
struct remote_stack {
    pid_t pid;
    struct unwind_code code;
    struct frame_lookup_work work;
    uint64_t words[REMOTE_BLOCK_BYTES / sizeof(uint64_t)];
};

/* Returns the memory of process PID for walks; STACK is used by it. */
struct unwind_memory remote_stack_memory(struct remote_stack *stack, pid_t pid);

#endif
