/* Storms of scarcity: no memory, no descriptors, nothing to be read under /proc.  SPDX-License-Identifier: MIT */
#include "storm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* --- No memory ---------------------------------------------------------------------------------------------------- */

static uint64_t mapped_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%llu", &pages) == 1);
    fclose(file);
    return pages * 4096;
}

static void storm_no_memory(void)
{
    enum { BLOCKS_MAX = 4096, BLOCK = 64 << 10 };
    static void *blocks[BLOCKS_MAX];
    storm_crowd(3);
    struct rlimit limit = {.rlim_cur = mapped_bytes() + (16 << 20), .rlim_max = RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    while (storm_continues()) {
        unsigned count = 0;
        while (count < BLOCKS_MAX && (blocks[count] = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
                                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
            memset(blocks[count++], 7, 4096);
        CHECK(count < BLOCKS_MAX && errno == ENOMEM);
        for (unsigned i = 0; i < 400; i++) storm_work(i);
        while (count > 0) CHECK(munmap(blocks[--count], BLOCK) == 0);
        storm_work(1);
    }
    storm_crowd_join();
}

/* --- No descriptors ----------------------------------------------------------------------------------------------- */

static void open_all(int first, int limit)
{
    for (int number = first; number < limit; number++) CHECK(open("/dev/null", O_RDONLY) == number);
    CHECK(open("/dev/null", O_RDONLY) < 0 && errno == EMFILE);
    for (unsigned i = 0; i < 50; i++) storm_work(i);
    for (int number = first; number < limit; number++) CHECK(close(number) == 0);
}

static void storm_no_descriptors(void)
{
    struct rlimit limit = {.rlim_cur = 8, .rlim_max = 8};
    CHECK(dup(0) >= 0); /* the lowest free number is 3 from here, whatever the runner left open */
    for (int number = 3; number < 64; number++) close(number);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    storm_crowd(3);
    while (storm_continues()) open_all(3, 8);
    limit.rlim_cur = 3;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (unsigned i = 0; i < 2000; i++) storm_work(i);
    storm_crowd_join();
}

/* --- Not dumpable: /proc/self belongs to root then ---------------------------------------------------------------- */

static void storm_not_dumpable(void)
{
    storm_crowd(3);
    for (unsigned i = 0; storm_continues(); i++) {
        CHECK(prctl(PR_SET_DUMPABLE, i / 20 % 2) == 0);
        for (unsigned j = 0; j < 200; j++) storm_work(j);
        pid_t child = fork();
        if (child == 0) {
            for (unsigned j = 0; j < 100; j++) storm_work(j);
            exit(7);
        }
        storm_expect_exit(child, 7);
    }
    storm_crowd_join();
}

/* --- Code that ends where the mapping does, and code that may be run but not read ------------------------------------
 */

static void storm_edge_of_code(void)
{
    enum { PAGE = 4096, RETURN = 0xc3 };
    uint8_t *code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    code[PAGE - 1] = RETURN;
    CHECK(munmap(code + PAGE, PAGE) == 0);
    void (*returns)(void) = (void (*)(void))(uintptr_t)(code + PAGE - 1);
    for (unsigned i = 0; storm_continues(); i++) {
        CHECK(mprotect(code, PAGE, i % 2 ? PROT_EXEC : PROT_READ | PROT_EXEC) == 0);
        for (unsigned j = 0; j < 10000000; j++) returns();
    }
}

const struct storm storms_of_limits[] = {
    {"no_memory", storm_no_memory},
    {"no_descriptors", storm_no_descriptors},
    {"not_dumpable", storm_not_dumpable},
    {"edge_of_code", storm_edge_of_code},
    {0},
};
