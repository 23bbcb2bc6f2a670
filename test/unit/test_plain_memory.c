/* The library's own string functions, under other names, beside libc's: at each place of a page, up to its end.
 * SPDX-License-Identifier: MIT */
#define memcpy plain_memcpy
#define memmove plain_memmove
#define memset plain_memset
#define memcmp plain_memcmp
#define memchr plain_memchr
#define strlen plain_strlen
#define strcmp plain_strcmp
#define strncmp plain_strncmp
#define strchr plain_strchr
#define strrchr plain_strrchr
#define strstr plain_strstr
#include "../../src/sampler/kernel/plain_memory.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strcmp
#undef strncmp
#undef strchr
#undef strrchr
#undef strstr

#include "test.h"

#include <sys/mman.h>

enum { PAGE = 4096, SIZE_MOST = 80, ROUNDS = 40 };

/* Ends right before memory that cannot be read. */
static char *make_page(void)
{
    char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && mprotect(page + PAGE, PAGE, PROT_NONE) == 0);
    return page;
}

/* Few letters, so that each is found early, late and not at all. */
static void fill(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) text[i] = (char)("abcdefghijklmnopqrstuvwxyz\n\xc3"[rand() % 28]);
}

TEST(strings_are_searched_as_by_libc_up_to_the_end_of_a_page)
{
    char *page = make_page();
    for (size_t size = 1; size <= SIZE_MOST; size++) {
        char *text = page + PAGE - size;
        for (unsigned round = 0; round < ROUNDS; round++) {
            int wanted = "aq\n\xc3"[round % 4];
            fill(page + PAGE - 2 * SIZE_MOST, 2 * SIZE_MOST);
            text[size - 1] = '\0';
            CHECK(plain_strchr(text, wanted) == strchr(text, wanted));
            CHECK(plain_strrchr(text, wanted) == strrchr(text, wanted));
            CHECK(plain_strchr(text, '\0') == text + size - 1);
            CHECK_UINT(plain_strlen(text), strlen(text));
            CHECK(plain_memchr(text, wanted, size) == memchr(text, wanted, size));
        }
    }
    munmap(page, 2 * PAGE);
}

TEST(a_string_that_ends_long_before_its_page_is_left_at_its_end)
{
    char *page = make_page();
    for (size_t size = 1; size <= SIZE_MOST; size++) {
        fill(page, PAGE);
        char *text = page + rand() % PAGE / 2;
        text[size - 1] = '\0';
        text[size] = 'Q';
        CHECK(plain_strchr(text, 'Q') == NULL);
    }
    munmap(page, 2 * PAGE);
}

TEST_MAIN()
