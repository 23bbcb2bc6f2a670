/* SPDX-License-Identifier: MIT */
#include "recorder/remote_memory.h"

#include "unwind/cross_code.h"

#include <sys/uio.h>

enum { PAGE_BYTES_MIN = 4096 };

size_t remote_read(pid_t pid, uint64_t address, void *bytes, size_t size)
{
    size_t done = 0;
    const struct iovec local = {.iov_base = bytes, .iov_len = size};
    const struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
    ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got > 0) done = (size_t)got;
    return done;
}

bool remote_gather(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    _Static_assert(sizeof(struct memory_range) == sizeof(struct iovec), "memory_range is the kernel's struct iovec");
    uint64_t size = 0;
    for (size_t i = 0; i < pieces->count; i++) size += pieces->from[i].size;
    ssize_t got = process_vm_readv(*(const pid_t *)memory->context, (const struct iovec *)(const void *)pieces->to,
                                   pieces->count, (const struct iovec *)(const void *)pieces->from, pieces->count, 0);
    return got >= 0 && (uint64_t)got == size;
}

/* Copies a block from ADDRESS up to the end of a page, so that at least the words in this page are read. */
static bool copy_from(struct unwind_memory *memory, uint64_t address)
{
    struct remote_stack *stack = memory->context;
    uint64_t page_end = (address | (PAGE_BYTES_MIN - 1)) + 1;
    size_t in_page = (size_t)(page_end - address), size = sizeof(stack->words);
    size_t got = remote_read(stack->pid, address, stack->words, size);
    if (got == 0) got = remote_read(stack->pid, address, stack->words, in_page);
    memory->low = address;
    memory->high = address + got / sizeof(uint64_t) * sizeof(uint64_t);
    memory->shift = (uint64_t)(uintptr_t)stack->words - address;
    return got >= sizeof(uint64_t);
}

/* The first block begins a little below the stack pointer, where registers are that were just popped. */
static bool read_block(struct unwind_memory *memory, uint64_t address)
{
    if (address % sizeof(uint64_t) != 0) return false;
    bool is_first = memory->high == 0 && address > MACHINE_RED_ZONE;
    if (is_first && copy_from(memory, address - MACHINE_RED_ZONE) && memory->high >= address + sizeof(uint64_t))
        return true;
    return copy_from(memory, address);
}

static bool read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct remote_stack *stack = context;
    return remote_read(stack->pid, address, bytes, size) == size;
}

struct unwind_memory remote_stack_memory(struct remote_stack *stack, pid_t pid)
{
    stack->pid = pid;
    stack->code = (struct unwind_code){.read = read_code, .context = stack};
    return (struct unwind_memory){
        .extend = read_block, .context = stack, .work = &stack->work, .code = &stack->code, .cross = unwind_cross_code};
}
