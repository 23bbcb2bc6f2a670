/* SPDX-License-Identifier: MIT */
#include "base/pages.h"

#include "base/kernel.h"

#include <string.h>

enum { ARRAY_FIRST_BYTES = 64 << 10 };

enum { POPULATE_WRITE = 23 }; /* MADV_POPULATE_WRITE, newer than some headers */

void *pages_allocate(size_t size)
{
    return kernel_map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

void pages_populate(void *memory, size_t size)
{
    (void)kernel_call4(SYS_madvise, kernel_address(memory), (long)size, POPULATE_WRITE, 0);
}

enum { PAGE_BYTES = 4096 };

static void advise(uintptr_t start, uintptr_t end, long advice)
{
    if (start < end) (void)kernel_call3(SYS_madvise, (long)start, (long)(end - start), advice);
}

static uintptr_t page_of(uintptr_t address)
{
    return address & ~(uintptr_t)(PAGE_BYTES - 1);
}

void pages_release(void *memory, size_t size)
{
    uintptr_t start = (uintptr_t)memory;
    advise(page_of(start + PAGE_BYTES - 1), page_of(start + size), MADV_DONTNEED);
}

/* The pages at both ends too: a mapping that is half advised becomes two, which mremap, and so realloc, cannot move. */
void pages_prefer_large(void *memory, size_t size)
{
    uintptr_t start = (uintptr_t)memory;
    advise(page_of(start), page_of(start + size + PAGE_BYTES - 1), MADV_HUGEPAGE);
}

void pages_prepare(void *memory, size_t size)
{
    enum { FEW_BYTES = 128 << 10 }; /* of a heap, mostly, and there already */
    uintptr_t start = (uintptr_t)memory;
    if (size >= PAGES_LARGE_BYTES) {
        pages_prefer_large(memory, size);
    } else if (size >= FEW_BYTES) {
        advise(page_of(start + PAGE_BYTES - 1), page_of(start + size), POPULATE_WRITE);
    }
}

void pages_free(void *memory, size_t size)
{
    if (memory) kernel_unmap(memory, size);
}

/* mremap refuses a range that is not one mapping (mremap(2), EFAULT), and the kernel splits a mapping where anybody
 * gives a part of it another property. The items then move by a copy. */
static void *move_by_copy(const struct pages_array *array, size_t size)
{
    void *items = pages_allocate(size);
    if (!items) return NULL;
    memcpy(items, array->items, array->size_bytes);
    pages_free(array->items, array->size_bytes);
    return items;
}

static void *move(const struct pages_array *array, size_t size)
{
    if (!array->items) return pages_allocate(size);
    long moved =
        kernel_call4(SYS_mremap, kernel_address(array->items), (long)array->size_bytes, (long)size, MREMAP_MAYMOVE);
    if (moved < 0 && moved > -4096) return move_by_copy(array, size);
    return (void *)(uintptr_t)moved;
}

static bool grow(struct pages_array *array, size_t needed)
{
    size_t size = array->size_bytes ? array->size_bytes : ARRAY_FIRST_BYTES;
    if (needed > SIZE_MAX / 4) return false;
    while (size < needed) size *= 2;
    void *items = move(array, size);
    if (!items) return false;
    array->items = items;
    array->size_bytes = size;
    return true;
}

void *pages_array_add(struct pages_array *array, size_t item_size, size_t maximum)
{
    if (array->count >= maximum) return NULL;
    size_t needed = (array->count + 1) * item_size;
    if (needed > array->size_bytes && !grow(array, needed)) return NULL;
    return (char *)array->items + item_size * array->count++;
}

void pages_array_reserve(struct pages_array *array, size_t item_size, size_t count)
{
    size_t size = 0;
    if (array->items || count == 0 || __builtin_mul_overflow(item_size, count, &size) || !grow(array, size)) return;
    pages_prefer_large(array->items, array->size_bytes); /* not SIZE: that would split the mapping */
    pages_populate(array->items, size);
}

void pages_array_fini(struct pages_array *array)
{
    pages_free(array->items, array->size_bytes);
    *array = (struct pages_array){0};
}
