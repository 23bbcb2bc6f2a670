/* An allocator before libc's, that fails when a test says so: link with --wrap=malloc, calloc and realloc. The program
 * defines may_allocate.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_FAILING_ALLOCATOR_H
#define OFFBEAT_TEST_FAILING_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static long allocations_left = -1; /* below 0: no limit */
static bool has_failed;

static bool may_allocate(void);

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size)
{
    return may_allocate() ? __real_realloc(memory, size) : NULL;
}

#endif
