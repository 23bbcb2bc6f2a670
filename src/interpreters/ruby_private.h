/* Shared by the files of Ruby: offsets, bytes, x86-64. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_RUBY_PRIVATE_H
#define OFFBEAT_INTERPRETERS_RUBY_PRIVATE_H

#include "interpreters/interpreter.h"

/* Offsets that differ between versions. */
struct ruby_offsets {
    uint32_t major, minor;
    uint32_t vm_threads; /* list in the virtual machine: of ractors, or of threads where there are no ractors */
    bool has_ractors;
    struct {
        uint32_t vm, context, native, pthread; /* PTHREAD is in what NATIVE points to; NATIVE 0: in the thread */
    } thread;
    uint32_t frame_size;
    struct {
        uint32_t lines, count, index;
    } lines;                /* table of lines, in the body of a code object */
    uint32_t line_size;     /* size of an entry of the table of lines */
    uint32_t last_operator; /* the last identifier that is its own number */
    uint32_t line_bits;     /* bits of a number of a line that are not of its value */
    bool short_has_length;  /* true if a string within its object begins with its length */
};

/* Offsets that all versions have. */
enum {
    RUBY_THREAD_OBJECT = 16,
    RUBY_CONTEXT_STACK = 0,
    RUBY_CONTEXT_WORDS = 8,
    RUBY_CONTEXT_FRAME = 16,
    RUBY_CONTEXT_BYTES = 24,
    RUBY_FRAME_INSTRUCTION = 0,
    RUBY_FRAME_CODE = 16,
    RUBY_FRAME_ENVIRONMENT = 32,
    RUBY_ENVIRONMENT_METHOD = -16, /* words before the address of an environment: method, block, flags */
    RUBY_ENVIRONMENT_BYTES = 24,
    RUBY_CODE_BODY = 16,
    RUBY_CODE_BYTES = 40, /* size of what is read of a code object, or of the entry of a method */
    RUBY_BODY_SIZE = 4,
    RUBY_BODY_INSTRUCTIONS = 8,
    RUBY_BODY_PATH = 64,
    RUBY_BODY_LABEL = 80,
    RUBY_BODY_FIRST_LINE = 88,
    RUBY_BODY_BYTES = 92,
    RUBY_METHOD_IDENTIFIER = 24,
    RUBY_METHOD_OWNER = 32,
    RUBY_STRING_CONTENT = 16,
    RUBY_STRING_BYTES = 40,
};

/* Bits in the first word of each object. */
enum {
    RUBY_TYPE_MASK = 0x1f,
    RUBY_STRING = 5,
    RUBY_ARRAY = 7,
    RUBY_HASH = 8,
    RUBY_INTERNAL = 0x1a,
    RUBY_INTERNAL_SHIFT = 12, /* kind of internal object */
    RUBY_INTERNAL_MASK = 0xf,
    RUBY_METHOD_ENTRY = 6,
    RUBY_CODE = 7,
};

static inline unsigned ruby_type(uint64_t flags)
{
    return flags & RUBY_TYPE_MASK;
}

static inline bool ruby_is_internal(uint64_t flags, unsigned kind)
{
    return ruby_type(flags) == RUBY_INTERNAL && (flags >> RUBY_INTERNAL_SHIFT & RUBY_INTERNAL_MASK) == kind;
}

/* Returns the offsets of a version; NULL: it is not known. */
const struct ruby_offsets *ruby_offsets_of(uint32_t major, uint32_t minor);

/* --- ruby_stack.c: runs in the signal handler --------------------------------------------------------------------- */

enum interpreted_result ruby_read(const struct interpreter_state *state, struct interpreted_thread thread,
                                  const struct process_memory *memory, struct interpreted_work *work,
                                  struct interpreted_stack *ret_stack);

struct interpreter_chain ruby_chain(const struct interpreter_state *state);

/* Computes the keys of COUNT frames, at most INTERPRETED_CODES, and the places of their instructions from their
 * addresses. Returns false if the code of one is none. Signal-safe. */
bool ruby_read_code(const struct process_memory *memory, struct interpreted_work *work,
                    struct interpreted_frame *frames, size_t count);

/* --- ruby_place.c ------------------------------------------------------------------------------------------------- */

/* Returns the address of the table of names in the data of IMAGE; 0: it was not found. */
uint64_t ruby_find_names(const struct interpreter_image *image, const struct process_memory *memory,
                         struct interpreted_work *work);

bool ruby_place(const struct interpreter_state *state, const struct interpreted_frame *frame,
                const struct process_memory *memory, struct interpreted_work *work,
                struct interpreted_place *ret_place);

#endif
