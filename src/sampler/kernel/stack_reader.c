/* SPDX-License-Identifier: MIT */
#include "sampler/kernel/stack_reader.h"

#include "sampler/kernel/own_memory.h"

static bool copy_from(struct unwind_memory *memory, uint64_t address)
{
    struct stack_reader *reader = memory->context;
    size_t got = process_read_memory(address, reader->words, sizeof(reader->words));
    memory->low = address;
    memory->high = address + got / 8 * 8;
    memory->shift = (uint64_t)(uintptr_t)reader->words - address;
    return got >= 8;
}

/* Copies a block. The first one begins a little below the stack pointer, where registers are that were just popped. */
static bool read_stack_block(struct unwind_memory *memory, uint64_t address)
{
    if (address % 8 != 0) return false;
    bool is_first = memory->high == 0 && address > MACHINE_RED_ZONE;
    if (is_first && copy_from(memory, address - MACHINE_RED_ZONE) && memory->high >= address + 8) return true;
    return copy_from(memory, address);
}

static bool read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    (void)context;
    return process_read_memory(address, bytes, size) == size;
}

static struct unwind_code code = {.read = read_code};

void stack_reader_note_jump(uint64_t from, uint64_t to)
{
    code.jump_from = from;
    code.jump_to = to;
}

struct unwind_memory stack_reader_memory(struct stack_reader *reader)
{
    return (struct unwind_memory){.extend = read_stack_block, .context = reader, .work = &reader->work, .code = &code};
}
