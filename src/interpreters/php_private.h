/* Shared by the files of PHP: offsets of 8.2 without thread safety, x86-64, bytes. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_PHP_PRIVATE_H
#define OFFBEAT_INTERPRETERS_PHP_PRIVATE_H

#include "interpreters/interpreter.h"

enum {
    PHP_CURRENT_FRAME = 488, /* in executor_globals */
    PHP_FRAME_OPERATION = 0,
    PHP_FRAME_FUNCTION = 24,
    PHP_FRAME_FLAGS = 40,
    PHP_FRAME_PREVIOUS = 48,
    PHP_FRAME_BYTES = 56,
    PHP_FUNCTION_TYPE = 0,
    PHP_FUNCTION_NAME = 8,
    PHP_FUNCTION_CLASS = 16,
    PHP_FUNCTION_OPERATION_COUNT = 80,
    PHP_FUNCTION_OPERATIONS = 88,
    PHP_FUNCTION_FILE = 152,
    PHP_FUNCTION_FIRST_LINE = 160,
    PHP_FUNCTION_BYTES = 168,
    PHP_OPERATION_LINE = 24,
    PHP_OPERATION_BYTES = 32,
    PHP_CLASS_NAME = 8,
    PHP_STRING_HASH = 8,
    PHP_STRING_LENGTH = 16,
    PHP_STRING_DATA = 24,
};

enum php_function_type { PHP_INTERNAL = 1, PHP_USER = 2, PHP_EVALUATED = 4 };

static inline bool php_is_user(uint8_t type)
{
    return type == PHP_USER || type == PHP_EVALUATED;
}

/* --- php_stack.c: runs in the signal handler ---------------------------------------------------------------------- */

enum interpreted_result php_read(const struct interpreter_state *state, struct interpreted_thread thread,
                                 const struct process_memory *memory, struct interpreted_work *work,
                                 struct interpreted_stack *ret_stack);

struct interpreter_chain php_chain(const struct interpreter_state *state);

/* Computes the keys of COUNT frames, and the places of their operations from their addresses. Returns false if the
 * function of one is none. Signal-safe. */
bool php_read_functions(const struct process_memory *memory, struct interpreted_work *work,
                        struct interpreted_frame *frames, size_t count);

#endif
