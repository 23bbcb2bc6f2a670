/* Memory straight from the kernel, for code in other people's processes: takes none of malloc's locks.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_PAGES_H
#define OFFBEAT_BASE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* mmap's arguments; the memory is away from the program's own (pages.c). NULL if the kernel denies it. Keeps errno.
 * Every mapping of ours is made here. */
void *pages_map(size_t size, int protection, int flags, int descriptor);

/* True if MEMORY is in the part of the address space that the mappings made here are put into if it has room. */
bool pages_are_near(const void *memory);

/* Returns the size of the kernel's pages: 4 KB, on AArch64 also 16 or 64 KB. */
size_t pages_size(void);

/* Zeroed, page-aligned, touched only where it is used; NULL if the kernel denies it. Keeps errno. */
void *pages_allocate(size_t size);
void pages_free(void *memory, size_t size);

/* Denies mappings once all of them together have BYTES. */
void pages_set_limit(size_t bytes);

/* Keeps memory that is mapped from now on unlocked after mlockall(MCL_FUTURE). */
void pages_leave_unlocked(void);

/* Unlocks all our memory, which mlockall has locked: what was mapped here, and the image of this library. */
void pages_unlock_all(void);

/* Has the kernel provide all pages of MEMORY, which was just allocated, at once: much cheaper than one fault for each.
 * No effect before Linux 5.14. */
void pages_populate(void *memory, size_t size);

/* Gives the entire pages inside MEMORY, from any allocator, back to the kernel. They read as zero afterwards. The owner
 * still frees MEMORY. */
void pages_release(void *memory, size_t size);

/* Asks for large pages where MEMORY, just allocated, has not been touched yet: faults and searches are cheaper by far
 * in hundreds of megabytes. A hint; failure is ignored. */
void pages_prefer_large(void *memory, size_t size);

enum { PAGES_LARGE_BYTES = 4 << 20 }; /* smallest block for which large pages pay */

/* Provides the pages of MEMORY, which was just allocated and will all be used soon: asks for large pages if the block
 * is large, else has the kernel provide all pages at once. Single faults take longer, and twice as long where a page is
 * read before it is written, as in a hash table. */
void pages_prepare(void *memory, size_t size);

/* A growing array in pages. {0} is empty. */
struct pages_array {
    void *items;
    size_t count;
    size_t size_bytes; /* size of the mapping */
};

/* A pointer to a new item of ITEM_SIZE bytes (the same in each call) at the end, or NULL if there would be more than
 * MAXIMUM or no memory. Moves the array. */
void *pages_array_add(struct pages_array *array, size_t item_size, size_t maximum);
/* Reserves populated memory for COUNT items in an empty array, in large pages if the kernel has some. A hint: failure
 * is ignored. */
void pages_array_reserve(struct pages_array *array, size_t item_size, size_t count);
void pages_array_fini(struct pages_array *array);

#endif
