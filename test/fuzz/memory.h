/* Checks that decoders keep the memory bound of doc/formats/limits.md. It counts only under AddressSanitizer, whose
 * allocator reports each block; elsewhere memory_peak_bytes() is 0 and the check holds.  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_TEST_FUZZ_MEMORY_H
#define OFFBEAT_TEST_FUZZ_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum { MEMORY_BYTES_FREE = 64 << 20, MEMORY_BYTES_PER_BYTE = 40 };

int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
                                              void (*freed)(const volatile void *)) __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *block) __attribute__((weak));

static int64_t memory_live_bytes, memory_most_bytes;

static inline void memory_allocated(const volatile void *block, size_t size)
{
    memory_live_bytes += (int64_t)size;
    if (memory_live_bytes > memory_most_bytes) memory_most_bytes = memory_live_bytes;
}

static inline void memory_freed(const volatile void *block)
{
    if (block) memory_live_bytes -= (int64_t)__sanitizer_get_allocated_size(block);
}

/* Call it once, before the first block that is counted. */
static inline void memory_count(void)
{
    if (__sanitizer_install_malloc_and_free_hooks)
        (void)__sanitizer_install_malloc_and_free_hooks(memory_allocated, memory_freed);
}

static inline void memory_start(void)
{
    memory_live_bytes = memory_most_bytes = 0;
}

/* Whether what was allocated since memory_start() is within the bound for INPUT_BYTES, decompressed. */
static inline int memory_is_bounded(size_t input_bytes)
{
    return memory_most_bytes <= (int64_t)(MEMORY_BYTES_FREE + MEMORY_BYTES_PER_BYTE * input_bytes);
}

#endif
