/* SPDX-License-Identifier: MIT */
#include "base/pages.h"

#include <errno.h>
#include <sys/mman.h>

enum { ARRAY_FIRST_BYTES = 64 << 10 };

void *pages_allocate(size_t size)
{
    int kept_errno = errno;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = kept_errno;
    return memory == MAP_FAILED ? NULL : memory;
}

void pages_free(void *memory, size_t size)
{
    int kept_errno = errno;
    if (memory) (void)munmap(memory, size);
    errno = kept_errno;
}

static bool grow(struct pages_array *array, size_t needed)
{
    size_t size = array->size_bytes ? array->size_bytes : ARRAY_FIRST_BYTES;
    while (size < needed) size *= 2;
    if (!array->items) {
        array->items = pages_allocate(size);
        array->size_bytes = array->items ? size : 0;
        return array->items != NULL;
    }
    int kept_errno = errno;
    void *moved = mremap(array->items, array->size_bytes, size, MREMAP_MAYMOVE);
    errno = kept_errno;
    if (moved == MAP_FAILED) return false;
    array->items = moved;
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

void pages_array_fini(struct pages_array *array)
{
    pages_free(array->items, array->size_bytes);
    *array = (struct pages_array){0};
}
