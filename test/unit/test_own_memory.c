/* The memory of the library's threads: sdk/own_memory.c with a malloc of the program that counts.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/pages.h"
#include "sdk/sdk_private.h"

#include <stdint.h>
#include <string.h>

void *own_malloc(size_t size) __asm__("__wrap_malloc");
void *own_calloc(size_t count, size_t size) __asm__("__wrap_calloc");
void *own_realloc(void *memory, size_t size) __asm__("__wrap_realloc");
void own_free(void *memory) __asm__("__wrap_free");

void *program_malloc(size_t size) __asm__("__real_malloc");
void *program_calloc(size_t count, size_t size) __asm__("__real_calloc");
void *program_realloc(void *memory, size_t size) __asm__("__real_realloc");
void program_free(void *memory) __asm__("__real_free");

enum { LARGEST = 1 << 30 };

static bool is_librarys_thread, may_free;
static unsigned allocated, freed;
static size_t smallest = SIZE_MAX; /* size of the smallest block that was asked of the program's malloc */

static void note(size_t size)
{
    if (size < smallest) smallest = size;
}

bool own_threads_are_calling(void)
{
    return is_librarys_thread;
}

void *program_malloc(size_t size)
{
    allocated++;
    note(size);
    return size <= LARGEST ? malloc(size) : NULL; /* AddressSanitizer's ends the program */
}

void *program_calloc(size_t count, size_t size)
{
    allocated++;
    note(count * size);
    return calloc(count, size);
}

void *program_realloc(void *memory, size_t size)
{
    note(size);
    return realloc(memory, size);
}

void program_free(void *memory)
{
    CHECK(may_free || !is_librarys_thread);
    freed++;
    free(memory);
}

TEST(a_thread_of_the_program_has_the_programs_malloc)
{
    char *text = own_malloc(10);
    text = own_realloc(text, 100000);
    CHECK(text);
    own_free(text);
    own_free(own_calloc(3, 5));
    own_free(NULL);
    CHECK_UINT(allocated, 2);
    CHECK_UINT(freed, 2);
}

TEST(a_thread_of_the_library_has_blocks_of_all_sizes)
{
    static const size_t sizes[] = {0, 1, 100, 65471, 65472, 65473, 100000, 3 << 20};
    is_librarys_thread = true;
    allocated = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint8_t *block = own_malloc(sizes[i]);
        CHECK(block && (uintptr_t)block % 64 == 0);
        memset(block, (int)i + 1, sizes[i]);
        block = own_realloc(block, 2 * sizes[i]);
        CHECK(block && (sizes[i] == 0 || (block[0] == i + 1 && block[sizes[i] - 1] == i + 1)));
        memset(block, 0xFF, 2 * sizes[i]);
        own_free(block);
        block = own_calloc(sizes[i], 1);
        CHECK(block && (sizes[i] == 0 || (block[0] == 0 && block[sizes[i] - 1] == 0)));
        own_free(block);
    }
    CHECK_UINT(allocated, 0);
    CHECK(!own_calloc(SIZE_MAX / 2, 4) && !own_malloc(SIZE_MAX) && !own_malloc(SIZE_MAX - 10));
    is_librarys_thread = false;
}

TEST(a_thread_of_the_library_without_room_has_the_programs_malloc)
{
    void *programs = own_malloc(1);
    is_librarys_thread = may_free = true;
    pages_set_limit(1);
    allocated = freed = 0;
    char *block = own_malloc(1 << 20), *other = own_calloc(1 << 20, 1);
    CHECK(block && other && other[100] == 0);
    CHECK_UINT(allocated, 2);
    pages_set_limit(SIZE_MAX);
    own_free(block);
    own_free(other);
    CHECK_UINT(freed, 2);
    own_free(programs);
    CHECK_UINT(freed, 2); /* it waits for a thread of the program */
    is_librarys_thread = may_free = false;
}

TEST(many_blocks_are_apart)
{
    enum { COUNT = 40 };
    uint32_t *blocks[COUNT];
    is_librarys_thread = true;
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = own_malloc(1000)));
        for (size_t at = 0; at < 250; at++) blocks[i][at] = i;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(blocks[i][0] == i && blocks[i][249] == i);
        own_free(blocks[i]);
    }
    is_librarys_thread = false;
}

TEST(a_block_of_the_program_has_room_for_what_the_library_writes_into_it)
{
    smallest = SIZE_MAX;
    own_free(own_malloc(1));
    own_free(own_calloc(1, 1));
    own_free(own_realloc(own_malloc(20), 1));
    CHECK_UINT(smallest, sizeof(void *));
}

TEST(a_block_of_the_program_goes_back_to_a_thread_of_the_program)
{
    void *first = own_malloc(1), *second = own_calloc(1, 1);
    freed = 0;
    is_librarys_thread = true;
    own_free(first);
    own_free(second);
    CHECK_UINT(freed, 0);
    is_librarys_thread = false;
    void *third = own_malloc(1);
    CHECK_UINT(freed, 2);
    own_free(third);
    CHECK_UINT(freed, 3);
}

TEST(a_block_of_the_library_can_be_resized_and_freed_by_the_program)
{
    is_librarys_thread = true;
    char *small = own_malloc(10), *large = own_malloc(100000);
    strcpy(small, "small");
    is_librarys_thread = false;
    freed = 0;
    small = own_realloc(small, 1 << 20);
    CHECK(small && strcmp(small, "small") == 0);
    CHECK_UINT(freed, 0);
    own_free(small);
    CHECK_UINT(freed, 1);
    own_free(large);
    CHECK_UINT(freed, 1);
}

TEST_MAIN()
