/* memcpy and its relatives, for liboffbeat alone.
 *
 * The sampler thread must not call through a symbol that another library can interpose: that function may use
 * thread-local storage, which this thread does not have. The compiler itself emits calls to memcpy, memmove, memset and
 * memcmp, so these names must resolve inside the library. They are hidden: the linker binds every reference within
 * liboffbeat to them and exports none of them.
 *
 * meson.build compiles this file with -ffreestanding and without the loop transformations that would turn a loop into a
 * call to the function that it implements. SPDX-License-Identifier: MIT */
#if defined(__aarch64__)
#include "sampler/kernel/vector_aarch64.h"
#else
#include "sampler/kernel/vector_x86_64.h"
#endif

#include <stddef.h>
#include <stdint.h>

/* Loads and stores of any alignment. */
typedef uint64_t unaligned64 __attribute__((aligned(1), may_alias));
typedef uint32_t unaligned32 __attribute__((aligned(1), may_alias));
typedef uint16_t unaligned16 __attribute__((aligned(1), may_alias));

enum { VECTOR = 16 };

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *left, const void *right, size_t size);
void *memchr(const void *bytes, int wanted, size_t size);
size_t strlen(const char *text);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t size);
char *strchr(const char *text, int wanted);
char *strrchr(const char *text, int wanted);
char *strstr(const char *text, const char *wanted);

/* --- Copying ------------------------------------------------------------------------------------------------------ */

/* Up to 32 bytes: everything is loaded before anything is stored, so the ranges may overlap. */
static inline void move_few(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size >= VECTOR) {
        vector first = load(from), last = load(from + size - VECTOR);
        store(to, first);
        store(to + size - VECTOR, last);
    } else if (size >= 8) {
        uint64_t first = *(const unaligned64 *)from, last = *(const unaligned64 *)(from + size - 8);
        *(unaligned64 *)to = first;
        *(unaligned64 *)(to + size - 8) = last;
    } else if (size >= 4) {
        uint32_t first = *(const unaligned32 *)from, last = *(const unaligned32 *)(from + size - 4);
        *(unaligned32 *)to = first;
        *(unaligned32 *)(to + size - 4) = last;
    } else if (size >= 2) {
        uint16_t first = *(const unaligned16 *)from, last = *(const unaligned16 *)(from + size - 2);
        *(unaligned16 *)to = first;
        *(unaligned16 *)(to + size - 2) = last;
    } else if (size == 1) {
        *to = *from;
    }
}

/* More than 32 bytes, where TO is below FROM or the ranges are apart. The last bytes are loaded first, because the loop
 * may overwrite them. */
static inline void move_up(uint8_t *to, const uint8_t *from, size_t size)
{
    vector last = load(from + size - VECTOR);
    uint8_t *end = to + size - VECTOR;
    for (; to < end; to += VECTOR, from += VECTOR) store(to, load(from));
    store(end, last);
}

/* More than 32 bytes, where TO is above FROM and the ranges overlap. */
static inline void move_down(uint8_t *to, const uint8_t *from, size_t size)
{
    vector first = load(from);
    for (; size > VECTOR; size -= VECTOR) store(to + size - VECTOR, load(from + size - VECTOR));
    store(to, first);
}

static inline void *move(void *to, const void *from, size_t size)
{
    if (size <= 2 * VECTOR) {
        move_few(to, from, size);
    } else if ((uintptr_t)to - (uintptr_t)from < size) {
        move_down(to, from, size);
    } else if (size < STRING_BYTES) {
        move_up(to, from, size);
    } else {
        copy_string(to, from, size);
    }
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    return move(to, from, size);
}

void *memmove(void *to, const void *from, size_t size)
{
    return move(to, from, size);
}

/* --- Filling ------------------------------------------------------------------------------------------------------ */

static inline void fill_few(uint8_t *to, uint64_t pattern, size_t size)
{
    if (size >= 8) {
        *(unaligned64 *)to = pattern;
        *(unaligned64 *)(to + size - 8) = pattern;
    } else if (size >= 4) {
        *(unaligned32 *)to = (uint32_t)pattern;
        *(unaligned32 *)(to + size - 4) = (uint32_t)pattern;
    } else if (size >= 2) {
        *(unaligned16 *)to = (uint16_t)pattern;
        *(unaligned16 *)(to + size - 2) = (uint16_t)pattern;
    } else if (size == 1) {
        *to = (uint8_t)pattern;
    }
}

void *memset(void *to, int value, size_t size)
{
    uint8_t *at = to;
    if (size < VECTOR) {
        fill_few(at, (uint8_t)value * (uint64_t)0x0101010101010101, size);
    } else if (size < STRING_BYTES) {
        vector bytes = vector_of((uint8_t)value);
        uint8_t *end = at + size - VECTOR;
        for (; at < end; at += VECTOR) store(at, bytes);
        store(end, bytes);
    } else {
        fill_string(at, (uint8_t)value, size);
    }
    return to;
}

/* --- Comparing and searching: no byte outside of the range is read ------------------------------------------------ */

static inline size_t first_byte(vector_mask mask)
{
    return (unsigned)__builtin_ctzll(mask) / MASK_BITS;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const uint8_t *a = left, *b = right;
    size_t at = 0;
    for (; at + VECTOR <= size; at += VECTOR) {
        vector_mask unequal = MASK_ALL & ~equal_bytes(load(a + at), load(b + at));
        if (unequal == 0) continue;
        at += first_byte(unequal);
        return a[at] - b[at];
    }
    while (at + 8 <= size && *(const unaligned64 *)(a + at) == *(const unaligned64 *)(b + at)) at += 8;
    for (; at < size; at++) {
        if (a[at] != b[at]) return a[at] - b[at];
    }
    return 0;
}

void *memchr(const void *bytes, int wanted, size_t size)
{
    const uint8_t *at = bytes, *end = at + size;
    vector sought = vector_of((uint8_t)wanted);
    for (; (size_t)(end - at) >= VECTOR; at += VECTOR) {
        vector_mask equal = equal_bytes(load(at), sought);
        if (equal != 0) return (void *)(uintptr_t)(at + first_byte(equal));
    }
    for (; at < end; at++) {
        if (*at == (uint8_t)wanted) return (void *)(uintptr_t)at;
    }
    return NULL;
}

/* --- Strings: most are short, byte by byte ------------------------------------------------------------------------ */

size_t strlen(const char *text)
{
    const char *end = text;
    while (*end) end++;
    return (size_t)(end - text);
}

int strncmp(const char *left, const char *right, size_t size)
{
    for (; size > 0; left++, right++, size--) {
        if (*left != *right) return (uint8_t)*left - (uint8_t)*right;
        if (!*left) return 0;
    }
    return 0;
}

int strcmp(const char *left, const char *right)
{
    return strncmp(left, right, SIZE_MAX);
}

static inline vector_mask ends_in(const uint8_t *aligned, int wanted)
{
    vector bytes = load(aligned);
    return equal_bytes(bytes, vector_of((uint8_t)wanted)) | equal_bytes(bytes, vector_of(0));
}

/* Searches in vectors, because texts of /proc are long. An aligned vector is in one page: if one of its bytes can be
 * read, all can. */
char *strchr(const char *text, int wanted)
{
    unsigned before = (uintptr_t)text % VECTOR;
    const uint8_t *at = (const uint8_t *)text - before;
    vector_mask ends = ends_in(at, wanted) >> before * MASK_BITS << before * MASK_BITS;
    while (ends == 0) ends = ends_in(at += VECTOR, wanted);
    at += first_byte(ends);
    return *at == (uint8_t)wanted ? (char *)(uintptr_t)at : NULL;
}

char *strrchr(const char *text, int wanted)
{
    const char *found = NULL;
    do {
        if (*text == (char)wanted) found = text;
    } while (*text++);
    return (char *)(uintptr_t)found;
}

char *strstr(const char *text, const char *wanted)
{
    size_t size = strlen(wanted);
    for (; *text; text++) {
        if (strncmp(text, wanted, size) == 0) return (char *)(uintptr_t)text;
    }
    return size == 0 ? (char *)(uintptr_t)text : NULL;
}
