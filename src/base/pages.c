/* SPDX-License-Identifier: MIT */
#include "base/pages.h"

#include "base/kernel.h"
#include "base/maps.h"

#include <elf.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

enum { ARRAY_FIRST_BYTES = 64 << 10 };

enum { POPULATE_WRITE = 23 }; /* MADV_POPULATE_WRITE, newer than some headers */

/* A program may unmap a part of its memory and map it again at the same address: that is legal if none of its threads
 * maps anything in between. The kernel puts a mapping in the highest gap that is large enough, which may be that part;
 * the program would then replace and unmap our memory. So we ask for addresses far below its mappings, one after the
 * other. 256 GB are less than what ThreadSanitizer leaves free there (1.5 TB, tsan_platform.h, HiAppMem). */
static const uintptr_t AREA_BELOW = (uintptr_t)256 << 30, AREA_SIZE = (uintptr_t)128 << 30;

static _Atomic uintptr_t area_start, area_used;
static _Atomic size_t mapped_bytes, mapped_bytes_max = SIZE_MAX;
static atomic_bool leaves_unlocked;

static uintptr_t next_address(size_t pages_size)
{
    uintptr_t start = atomic_load(&area_start);
    return start ? start + atomic_fetch_add(&area_used, pages_size) % AREA_SIZE : 0;
}

size_t pages_size(void)
{
    static _Atomic size_t known;
    size_t size = atomic_load_explicit(&known, memory_order_relaxed); /* a constant */
    if (size == 0) atomic_store_explicit(&known, size = getauxval(AT_PAGESZ), memory_order_relaxed);
    return size;
}

static uintptr_t page_of(uintptr_t address)
{
    return address & ~(uintptr_t)(pages_size() - 1);
}

static uintptr_t round_up(uintptr_t address)
{
    return page_of(address + pages_size() - 1);
}

static void unlock(uintptr_t start, uintptr_t end)
{
    (void)kernel_call3(SYS_munlock, (long)start, (long)(end - start), 0);
}

/* Maps memory that the program's mlockall(MCL_FUTURE) neither locks nor fills: inaccessible memory is not filled. */
static void *map_unlocked(uintptr_t address, size_t size, int protection, int flags, int descriptor)
{
    void *memory = kernel_map(address, size, PROT_NONE, flags, descriptor);
    if (!memory) return NULL;
    unlock((uintptr_t)memory, (uintptr_t)memory + size);
    if (kernel_call3(SYS_mprotect, kernel_address(memory), (long)size, protection) == 0) return memory;
    kernel_unmap(memory, size);
    return NULL;
}

void *pages_map(size_t size, int protection, int flags, int descriptor)
{
    size_t pages_size = round_up(size);
    if (atomic_fetch_add(&mapped_bytes, pages_size) + pages_size > atomic_load(&mapped_bytes_max)) {
        atomic_fetch_sub(&mapped_bytes, pages_size);
        return NULL;
    }
    bool is_anonymous = flags & MAP_ANONYMOUS;
    uintptr_t wanted = next_address(pages_size);
    void *memory = is_anonymous && atomic_load(&leaves_unlocked)
                       ? map_unlocked(wanted, size, protection, flags, descriptor)
                       : kernel_map(wanted, size, protection, flags, descriptor);
    uintptr_t address = (uintptr_t)memory, nothing = 0;
    if (!memory) atomic_fetch_sub(&mapped_bytes, pages_size);
    if (address > AREA_BELOW) atomic_compare_exchange_strong(&area_start, &nothing, address - AREA_BELOW);
    return memory;
}

bool pages_are_near(const void *memory)
{
    uintptr_t start = atomic_load(&area_start);
    return start && (uintptr_t)memory - start < AREA_SIZE;
}

void pages_set_limit(size_t bytes)
{
    atomic_store(&mapped_bytes_max, bytes);
}

void pages_leave_unlocked(void)
{
    atomic_store(&leaves_unlocked, true);
}

extern const Elf64_Ehdr image_header __asm__("__ehdr_start") __attribute__((visibility("hidden")));

/* Unlocks the image of the shared library that this code is in. */
static void unlock_image(void)
{
    uintptr_t start = (uintptr_t)&image_header;
    const Elf64_Phdr *segments = (const void *)(start + image_header.e_phoff);
    for (unsigned i = 0; i < image_header.e_phnum; i++) {
        uintptr_t begin = start + segments[i].p_vaddr;
        if (segments[i].p_type == PT_LOAD) unlock(page_of(begin), round_up(begin + segments[i].p_memsz));
    }
}

void pages_unlock_all(void)
{
    enum { LINES_BYTES = 64 << 10 };
    struct maps_entry entry;
    struct maps_reader reader = {.descriptor = kernel_open("/proc/self/maps", O_RDONLY, 0),
                                 .buffer = pages_allocate(LINES_BYTES),
                                 .size = LINES_BYTES};
    unlock_image();
    while (reader.descriptor >= 0 && reader.buffer && maps_next(&reader, &entry)) {
        if (pages_are_near((const void *)entry.start)) unlock(entry.start, entry.end);
    }
    if (reader.descriptor >= 0) kernel_close(reader.descriptor);
    pages_free(reader.buffer, LINES_BYTES);
}

void *pages_allocate(size_t size)
{
    return pages_map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

void pages_populate(void *memory, size_t size)
{
    (void)kernel_call4(SYS_madvise, kernel_address(memory), (long)size, POPULATE_WRITE, 0);
}

static void advise(uintptr_t start, uintptr_t end, long advice)
{
    if (start < end) (void)kernel_call3(SYS_madvise, (long)start, (long)(end - start), advice);
}

void pages_release(void *memory, size_t size)
{
    uintptr_t start = (uintptr_t)memory;
    advise(round_up(start), page_of(start + size), MADV_DONTNEED);
}

/* The pages at both ends too: a mapping that is half advised becomes two, which mremap, and so realloc, cannot move. */
void pages_prefer_large(void *memory, size_t size)
{
    uintptr_t start = (uintptr_t)memory;
    advise(page_of(start), round_up(start + size), MADV_HUGEPAGE);
}

void pages_prepare(void *memory, size_t size)
{
    enum { FEW_BYTES = 128 << 10 }; /* a smaller block is mostly in the heap, whose pages are present */
    uintptr_t start = (uintptr_t)memory;
    if (size >= PAGES_LARGE_BYTES) {
        pages_prefer_large(memory, size);
    } else if (size >= FEW_BYTES) {
        advise(round_up(start), page_of(start + size), POPULATE_WRITE);
    }
}

void pages_free(void *memory, size_t size)
{
    if (!memory) return;
    kernel_unmap(memory, size);
    atomic_fetch_sub(&mapped_bytes, round_up(size));
}

static bool grow(struct pages_array *array, size_t needed)
{
    size_t size = array->size_bytes ? array->size_bytes : ARRAY_FIRST_BYTES;
    if (needed > SIZE_MAX / 4) return false;
    while (size < needed) size *= 2;
    void *items = pages_allocate(size);
    if (!items) return false;
    if (array->items) memcpy(items, array->items, array->size_bytes);
    pages_free(array->items, array->size_bytes);
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
