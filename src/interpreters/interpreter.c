/* SPDX-License-Identifier: MIT */
#include "interpreters/interpreter.h"

static const struct interpreter *const all[] = {&cpython, &php, &ruby};

enum interpreter_attached interpreter_attach(const struct interpreter_image *image, const struct process_memory *memory,
                                             struct interpreted_work *work, struct interpreter_state *ret_state)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        enum interpreter_attached result = all[i]->attach(image, memory, work, ret_state);
        if (result != INTERPRETER_ABSENT) return result;
    }
    return INTERPRETER_ABSENT;
}
