/* A stopped process that is looked at from outside: its registers, its memory, its modules with a table for each as the
 * sampler would have them, and the stack as our unwinder sees it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_TRACEE_H
#define OFFBEAT_TEST_TRACEE_H

#include "unwind/unwind.h"

#include <sys/types.h>
#include <sys/user.h>

enum { TRACEE_MODULES_MAX = 512, TRACEE_FRAMES_MAX = 2048, TRACEE_BLOCK = 16 << 10 };

struct stack {
    size_t count;
    uint64_t addresses[TRACEE_FRAMES_MAX];      /* return addresses, leaf first, as unwind_walk gives them */
    uint64_t stack_pointers[TRACEE_FRAMES_MAX]; /* stack pointers of our walk */
    bool reached_root;
    enum unwind_outcome outcome; /* outcome of our walk */
};

struct tracee_module {
    uint64_t start, end, bias;
    uint64_t header; /* .eh_frame_hdr in the process; 0: none */
    uint32_t header_fdes;
    char path[512];
    struct frame_table table;
};

struct tracee {
    pid_t pid; /* the stopped thread */
    struct user_regs_struct registers;
    size_t module_count;
    struct tracee_module modules[TRACEE_MODULES_MAX];
    struct unwind_module items[TRACEE_MODULES_MAX];
    uint64_t generation;                /* same index as ITEMS */
    struct rule_cache cache;            /* same index as ITEMS */
    struct resume_cache resume_cache;   /* cache of our walks */
    uint64_t block_address, block_size; /* memory that BLOCK holds since the last stop */
    uint8_t block[TRACEE_BLOCK];
    uint64_t table_bytes, table_rows;
};

/* Reads the registers and forgets the memory, after each stop. Returns false if the process is gone. */
bool tracee_look(struct tracee *tracee);

/* Reads the list of modules again, and builds tables for new ones. */
void tracee_refresh_modules(struct tracee *tracee);

/* Reads a word, through the block. */
bool tracee_read_word(struct tracee *tracee, uint64_t address, uint64_t *ret_word);

/* Our walk from REGISTERS. */
void tracee_walk(struct tracee *tracee, struct stack *ret_stack);

/* Walks from IP and SP alone. Returns how often a frame pointer was recovered. */
size_t tracee_walk_without_registers(struct tracee *tracee, struct stack *ret_stack);

/* "file+0x123" for ADDRESS, in a buffer that lasts for four calls. */
const char *tracee_place(const struct tracee *tracee, uint64_t address);

void tracee_fini(struct tracee *tracee);

#endif
