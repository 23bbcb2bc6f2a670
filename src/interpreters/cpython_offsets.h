/* Where CPython keeps what a reader of stacks needs. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_CPYTHON_OFFSETS_H
#define OFFBEAT_INTERPRETERS_CPYTHON_OFFSETS_H

#include "interpreters/interpreter.h"

/* Ways in which a version keeps its frames. */
enum cpython_frames {
    CPYTHON_FRAME_OBJECTS, /* 3.8 to 3.10: objects on the heap, and a native frame for each of them */
    CPYTHON_C_FRAMES,      /* 3.11: a record on the C stack for each call of the evaluation function */
    CPYTHON_ENTRY_FRAMES,  /* 3.12 and later: the record is a frame in the chain */
};

/* Ways in which a version stores line numbers. */
enum cpython_lines {
    CPYTHON_SIGNED_PAIRS, /* 3.8 and 3.9 */
    CPYTHON_RANGES,       /* 3.10: pairs, in which a step of -128 means no line */
    CPYTHON_LOCATIONS,    /* 3.11 and later */
};

/* Offsets and sizes, bytes. */
struct cpython_offsets {
    uint32_t minor;
    uint32_t runtime_sizes[2]; /* sizes of _PyRuntime in builds that the table is right for; 0: any */
    enum cpython_frames frames;
    enum cpython_lines lines;
    struct {
        uint32_t interpreters, lock; /* LOCK 0: interpreters have it */
    } runtime;
    struct {
        uint32_t next, threads, lock; /* LOCK: a pointer */
    } interpreter;
    struct {
        uint32_t next, interpreter, identity, native_id; /* NATIVE_ID 0: there is none */
        uint32_t frame;                                  /* the current frame, or record on the C stack */
        uint32_t size;                                   /* end of the last of these */
    } thread;
    struct {
        uint32_t frame, previous; /* offsets in a record on the C stack */
    } c_frame;
    struct {
        uint32_t size, code, previous, instruction, owner, is_entry;
        uint32_t instruction_unit; /* bytes; 0: INSTRUCTION is an address */
    } frame;
    struct {
        uint32_t name, qualified_name, file, first_line, line_table, instructions;
        uint32_t version; /* number that no other code object has had; 0: there is none */
    } code;
    struct {
        uint32_t ascii, other; /* starts of the characters in a string */
    } string;
};

/* Returns the offsets of version 3.MINOR up to 3.12, if its runtime has RUNTIME_SIZE bytes; else NULL. */
const struct cpython_offsets *cpython_offsets_of(uint32_t minor, uint64_t runtime_size);

/* Reads the offsets that version 3.MINOR, 3.13 or later, says of itself at RUNTIME. Returns NULL if they are not there
 * or cannot be right. */
const struct cpython_offsets *cpython_offsets_read(uint32_t minor, const struct memory_range *runtime,
                                                   const struct process_memory *memory, struct memory_pieces *pieces);

#endif
