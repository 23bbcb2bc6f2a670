/* Runs in the signal handler: no libc. SPDX-License-Identifier: MIT */
#include "interpreters/block_view.h"

enum { PAGE = INTERPRETED_BLOCK };

void view_begin(struct interpreted_work *work)
{
    for (unsigned i = 0; i < INTERPRETED_BLOCKS; i++) work->blocks[i].low = work->blocks[i].high = 0;
    work->next_block = 0;
}

const uint8_t *view_memory(struct interpreted_work *work, const struct process_memory *memory, uint64_t address,
                           size_t size)
{
    for (unsigned i = 0; i < INTERPRETED_BLOCKS; i++) {
        const struct interpreted_block *block = &work->blocks[i];
        if (address >= block->low && address < block->high && size <= block->high - address)
            return block->bytes + (address - block->low);
    }
    const uint8_t *copy = memory->peek ? memory->peek(memory, address, size) : NULL;
    if (copy) return copy;
    if (address < PAGE || address > UINT64_MAX - size || size > INTERPRETED_BLOCK) return NULL;
    struct interpreted_block *block = &work->blocks[work->next_block];
    uint64_t low = address - address % PAGE, high = low + PAGE;
    if (high < address + size) {
        high = address + size;
        low = high - PAGE;
    }
    block->low = block->high = 0;
    if (!process_memory_read(memory, &work->pieces, low, block->bytes, PAGE)) {
        low = address;
        high = address + size;
        if (!process_memory_read(memory, &work->pieces, low, block->bytes, size)) return NULL;
    }
    block->low = low;
    block->high = high;
    work->next_block = (work->next_block + 1) % INTERPRETED_BLOCKS;
    return block->bytes + (address - low);
}
