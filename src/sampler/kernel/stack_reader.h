/* Memory of a thread's stack, read block by block from outside of the thread.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_STACK_READER_H
#define OFFBEAT_SAMPLER_STACK_READER_H

#include "unwind/unwind.h"

struct stack_reader {
    uint64_t words[(16 << 10) / 8];
    struct frame_lookup_work work;
};

/* Returns the memory of this process, its code included. READER is used as long as the memory is. A thread can end at
 * any time, and its stack with it. */
struct unwind_memory stack_reader_memory(struct stack_reader *reader);

/* Notes that the function at FROM only jumps to that at TO, before the first walk. */
void stack_reader_note_jump(uint64_t from, uint64_t to);

#endif
