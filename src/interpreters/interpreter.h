/* Reads the stacks of programs that an interpreter runs: the functions of the program, beside the native frames of the
 * interpreter. One struct interpreter for each kind of interpreter, and one file or more. SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_INTERPRETERS_INTERPRETER_H
#define OFFBEAT_INTERPRETERS_INTERPRETER_H

#include "interpreters/process_memory.h"

enum {
    INTERPRETED_FRAMES_MAX = 1024,
    INTERPRETED_NAME_MAX = 512,
    INTERPRETED_FILE_MAX = 1024,
    INTERPRETED_BLOCK = 4096,
    INTERPRETED_BLOCKS = 2,
    INTERPRETED_CODE_BYTES = 192,
    INTERPRETED_CODES = 64, /* code objects that are read at once */
};

/* A function that is being run. */
struct interpreted_frame {
    uint64_t code;        /* address of the function's code object */
    uint64_t key;         /* hash of the code object's content: another one at the same address has another key */
    uint64_t record;      /* an address in the native frame of the evaluation function, if that was called for this
                             frame; else 0, and its caller is run by the same native frame */
    uint64_t instruction; /* place in the code, bytes from its start */
    bool is_entry;        /* true if the evaluation function was called for it, where records must be found */
};

/* A copied block of memory. */
struct interpreted_block {
    uint64_t low, high;
    uint8_t bytes[INTERPRETED_BLOCK];
};

/* Working memory of one thread or signal handler. Needs no initial value. */
struct interpreted_work {
    struct interpreted_block blocks[INTERPRETED_BLOCKS];
    unsigned next_block; /* block that is replaced next */
    struct memory_pieces pieces;
    uint8_t codes[INTERPRETED_CODES][INTERPRETED_CODE_BYTES];
    uint64_t hashes[INTERPRETED_CODES];
};

/* The stack of a thread, the innermost frame first. */
struct interpreted_stack {
    uint32_t count;
    bool is_cut; /* true if there are more frames than room */
    struct interpreted_frame frames[INTERPRETED_FRAMES_MAX];
};

/* The number that stands for the first thread of a process. */
enum { INTERPRETED_MAIN_THREAD = -1 };

/* A thread of an interpreter. */
struct interpreted_thread {
    uint64_t state;    /* address of the interpreter's description of the thread */
    uint64_t identity; /* value in that description by which it is known again */
};

enum interpreted_result {
    INTERPRETED_READ,
    INTERPRETED_NOTHING, /* the thread runs no function of the program */
    INTERPRETED_GONE,    /* the thread's description is gone */
    INTERPRETED_TORN,    /* the stack contradicts itself: it was read while it changed */
};

/* A place in the program. */
struct interpreted_place {
    char function[INTERPRETED_NAME_MAX], file[INTERPRETED_FILE_MAX];
    uint32_t first_line, line; /* 0: not known */
};

/* A description of the chain of frames of a thread, for one who copies it without knowledge of the interpreter. Offsets
 * and sizes, bytes; code addresses are multiples of 8. */
struct interpreter_chain {
    uint32_t state_size, start; /* size of the thread's description, and offset of the first frame or record in it */
    uint32_t record_size, record_frame, record_previous; /* record on the C stack, which has frames; size 0: none */
    uint32_t record_stack, record_words; /* start and number of words of the array of frames, which ends there */
    uint32_t frame_size, frame_previous, frame_code;
    uint32_t frame_is_next;     /* 1: frames are an array: the caller of a frame is right behind it */
    uint32_t frame_environment; /* pointer to the end of an environment, whose first word is the code if the frame has
                                   none; 0: there are none */
    uint32_t frame_ends_record; /* byte that is 1 in the last frame of a record; 0: there is one record */
    uint32_t code_size, code_name;
    uint32_t name_size;              /* size of the part of a name that is read */
    uint32_t name_text, text_size;   /* pointer in a name, and size of the part of what is there; size 0: nothing */
    uint32_t code_file;              /* pointer to the string of the file; 0: it is not read */
    uint32_t file_head;              /* start of what is read of the string: its number of characters */
    uint32_t file_state;             /* word in that part with the size of a character, as CPython's strings have it */
    uint32_t file_ascii, file_other; /* starts of the text in the string */
};

/* A mapped ELF file. */
struct interpreter_image {
    uint64_t start, size, bias;
};

/* An interpreter in a process. */
struct interpreter_state {
    const struct interpreter *interpreter; /* NULL: none */
    struct interpreter_image image;        /* the file that holds its code and data */
    uint64_t root;                         /* address of its global data */
    uint64_t code_type;                    /* type of code objects */
    struct memory_range evaluation; /* code of the evaluation function, where stacks have no records; else empty */
    uint32_t major, minor, patch;   /* version; 0: not known */
    const struct cpython_offsets *offsets;
    const struct ruby_offsets *ruby;
    uint64_t names; /* Ruby: the table of names of identifiers; 0: not known */
};

enum interpreter_attached {
    INTERPRETER_ABSENT, /* it is not in this image */
    INTERPRETER_ATTACHED,
    INTERPRETER_LATER,   /* it has not begun */
    INTERPRETER_UNKNOWN, /* a build that is not known */
};

struct interpreter {
    const char *name;     /* "CPython" */
    bool links_first;     /* true if a frame is in the chain before the evaluation function is called for it */
    const char *platform; /* platform of its frames in Sentry's protocol: "python" */

    /* Looks for the interpreter in IMAGE. */
    enum interpreter_attached (*attach)(const struct interpreter_image *image, const struct process_memory *memory,
                                        struct interpreted_work *work, struct interpreter_state *ret_state);

    /* Lists the threads of STATE, at most MAX, with the kernel's number of each, or INTERPRETED_MAIN_THREAD. Returns
     * how many there are. */
    size_t (*threads)(const struct interpreter_state *state, const struct process_memory *memory,
                      struct interpreted_work *work, struct interpreted_thread *ret_threads, int *ret_tids, size_t max);

    /* Reads the stack of THREAD. It must not run meanwhile, or be the calling one. Signal-safe. */
    enum interpreted_result (*read)(const struct interpreter_state *state, struct interpreted_thread thread,
                                    const struct process_memory *memory, struct interpreted_work *work,
                                    struct interpreted_stack *ret_stack);

    /* Describes the memory that READ reads. */
    struct interpreter_chain (*chain)(const struct interpreter_state *state);

    /* Returns the memory of the lock that a thread must have to run; size 0: it is not known. A thread that sleeps on
     * an address there waits for the lock. NULL: threads need none. */
    struct memory_range (*lock)(const struct interpreter_state *state, const struct process_memory *memory,
                                struct interpreted_work *work);
    const char *waiting; /* name of the place where it waits */

    /* Finds the place of FRAME. Returns false if its code object is gone. */
    bool (*place)(const struct interpreter_state *state, const struct interpreted_frame *frame,
                  const struct process_memory *memory, struct interpreted_work *work,
                  struct interpreted_place *ret_place);
};

extern const struct interpreter cpython, php, ruby;

/* Looks for any interpreter in IMAGE. */
enum interpreter_attached interpreter_attach(const struct interpreter_image *image, const struct process_memory *memory,
                                             struct interpreted_work *work, struct interpreter_state *ret_state);

#endif
