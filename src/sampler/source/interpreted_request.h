/* Requests to the signal handler to read the functions that an interpreter runs on its thread.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SOURCE_INTERPRETED_REQUEST_H
#define OFFBEAT_SAMPLER_SOURCE_INTERPRETED_REQUEST_H

#include "format/recording/recording_layout.h"
#include "interpreters/merged_stack.h"
#include "interpreters/recalled_memory.h"

enum { INTERPRETED_STACKS_MAX = 5 };

/* An interpreter in this process. Immutable once a request refers to it. */
struct interpreted_process {
    struct interpreter_state state;
    struct native_view view;
};

/* Belongs to one request, and exists as long as that. */
struct interpreted_request {
    const struct interpreted_process *process;
    _Atomic uint64_t thread_state, thread_identity; /* struct interpreted_thread; 0: the interpreter does not know it */
    uint64_t stack_pointers[RECORDING_FRAMES_MAX];
    uint64_t merged[RECORDING_FRAMES_MAX];
    struct interpreted_work work;
    struct recalled_memory recalled;
    struct recalled_parts parts;          /* parts of the last stack that the handler has read */
    struct recalled_parts sleeping_parts; /* parts of the last one that the sampler thread has read */
    struct interpreted_stack stacks[INTERPRETED_STACKS_MAX]; /* one for each reply */
};

#endif
