/* malloc and its relatives as the code of liboffbeat calls them; the linker puts these in their place (--wrap).
 *
 * For a thread of the program they are libc's, or the program's own. A thread of the library takes nothing from those:
 * libc would reserve 64 MB of address space for it, which also count as locked once the program locks all its memory,
 * and a thread of the program that exits in the middle of malloc may hold a lock of it. It gets blocks of the kernel's
 * pages. They are few and short-lived; the last free ones are kept. Each block can be freed by any thread: what the
 * program's malloc gave is handed back by the next thread of the program that calls a function here.
 * SPDX-License-Identifier: MIT */
#include "base/pages.h"
#include "sdk/sdk_private.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    SMALL_BYTES = 64 << 10, /* all smaller blocks have this size, so that each fits again; the kernel counts only what
                               is touched of it */
    SPARE_BLOCKS = 8,
    MARK = 0x0FFBEA7,
};

struct block {
    size_t size; /* size of the mapping, with this header */
    uintptr_t mark;
    _Alignas(64) uint8_t bytes[];
};

/* ThreadSanitizer in the program, which sees no atomic of this library and takes a block that goes from thread to
 * thread for a race. */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

/* A block of the program's malloc that waits for a thread of the program. Each block that is taken from there has room
 * for this. */
struct returned {
    struct returned *next;
};

static _Atomic(struct block *) spare[SPARE_BLOCKS];
static _Atomic(struct returned *) returned;
static atomic_size_t borrowed; /* blocks that threads of the library took from the program's malloc */

void *libc_malloc(size_t size) __asm__("__real_malloc");
void *libc_calloc(size_t count, size_t size) __asm__("__real_calloc");
void *libc_realloc(void *memory, size_t size) __asm__("__real_realloc");
void libc_free(void *memory) __asm__("__real_free");

void *own_malloc(size_t size) __asm__("__wrap_malloc");
void *own_calloc(size_t count, size_t size) __asm__("__wrap_calloc");
void *own_realloc(void *memory, size_t size) __asm__("__wrap_realloc");
void own_free(void *memory) __asm__("__wrap_free");

/* --- Blocks ------------------------------------------------------------------------------------------------------- */

static uintptr_t mark_of(const struct block *block)
{
    return (uintptr_t)block ^ MARK;
}

/* Returns the block that begins before MEMORY; NULL if the program's malloc gave it. The header is in MEMORY's page. */
static struct block *block_of(void *memory)
{
    uintptr_t address = (uintptr_t)memory;
    if (address % pages_size() != offsetof(struct block, bytes) || !pages_are_near(memory)) return NULL;
    struct block *block = (void *)((char *)memory - offsetof(struct block, bytes));
    return block->mark == mark_of(block) ? block : NULL;
}

static struct block *take_spare(void)
{
    for (size_t i = 0; i < SPARE_BLOCKS; i++) {
        struct block *block = atomic_load(&spare[i]) ? atomic_exchange(&spare[i], NULL) : NULL;
        if (block) return block;
    }
    return NULL;
}

/* Maps SIZE bytes where a block can be recognized. The first mapping of a process, and one for which there is no room
 * there, is elsewhere. */
static struct block *map_block(size_t size)
{
    enum { ATTEMPTS = 2 };
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        struct block *block = pages_allocate(size);
        if (!block || pages_are_near(block)) return block;
        pages_free(block, size);
    }
    return NULL;
}

static void *block_new(size_t size)
{
    size_t whole = SMALL_BYTES;
    if (size > SMALL_BYTES - sizeof(struct block) && __builtin_add_overflow(size, sizeof(struct block), &whole))
        return NULL;
    struct block *block = whole == SMALL_BYTES ? take_spare() : NULL;
    if (!block) block = map_block(whole);
    if (!block) return NULL;
    block->size = whole;
    block->mark = mark_of(block);
    return block->bytes;
}

static void block_free(struct block *block)
{
    block->mark = 0;
    for (size_t i = 0; i < SPARE_BLOCKS && block->size == SMALL_BYTES; i++) {
        struct block *none = NULL;
        if (atomic_compare_exchange_strong(&spare[i], &none, block)) return;
    }
    pages_free(block, block->size);
}

static void *block_resize(struct block *block, size_t size)
{
    size_t capacity = block->size - sizeof(*block);
    if (size <= capacity) return block->bytes;
    void *moved = own_malloc(size);
    if (!moved) return NULL;
    memcpy(moved, block->bytes, capacity);
    block_free(block);
    return moved;
}

/* --- Blocks of the program's malloc ------------------------------------------------------------------------------- */

static void give_back(struct returned *block)
{
    if (__tsan_release) __tsan_release(&returned);
    block->next = atomic_load(&returned);
    while (!atomic_compare_exchange_weak(&returned, &block->next, block)) continue;
}

static void free_returned(void)
{
    if (!atomic_load_explicit(&returned, memory_order_relaxed)) return;
    struct returned *block = atomic_exchange(&returned, NULL);
    if (__tsan_acquire) __tsan_acquire(&returned);
    while (block) {
        struct returned *next = block->next;
        libc_free(block);
        block = next;
    }
}

static size_t with_room(size_t size)
{
    return size < sizeof(struct returned) ? sizeof(struct returned) : size;
}

/* A thread of the library that gets no block, as under valgrind, takes from the program's malloc, and hands as many
 * back at once: the program may never call a function here again. */
static void *borrow(void *memory)
{
    if (memory) atomic_fetch_add(&borrowed, 1);
    return memory;
}

static bool repay(void)
{
    size_t count = atomic_load(&borrowed);
    while (count > 0 && !atomic_compare_exchange_weak(&borrowed, &count, count - 1)) continue;
    return count > 0;
}

/* --- The functions ------------------------------------------------------------------------------------------------ */

void *own_malloc(size_t size)
{
    if (own_threads_are_calling()) {
        void *memory = block_new(size);
        return memory ? memory : borrow(libc_malloc(with_room(size)));
    }
    free_returned();
    return libc_malloc(with_room(size));
}

void *own_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    if (own_threads_are_calling()) {
        void *memory = block_new(bytes);
        return memory ? memset(memory, 0, bytes) : borrow(libc_calloc(1, with_room(bytes)));
    }
    free_returned();
    return libc_calloc(1, with_room(bytes));
}

/* Code of the library's threads does not resize what the program's malloc gave: nobody knows its size here. */
void *own_realloc(void *memory, size_t size)
{
    struct block *block = memory ? block_of(memory) : NULL;
    if (!memory) return own_malloc(size);
    return block ? block_resize(block, size) : libc_realloc(memory, with_room(size));
}

void own_free(void *memory)
{
    bool is_own = own_threads_are_calling();
    if (!is_own) free_returned();
    if (!memory) return;
    struct block *block = block_of(memory);
    if (block)
        block_free(block);
    else if (is_own && !repay())
        give_back(memory);
    else
        libc_free(memory);
}
