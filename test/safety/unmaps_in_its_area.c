/* SPDX-License-Identifier: MIT */
/* Unmaps a part of its memory again and again, and maps it again at the same address, as some allocators do. That
 * is legal where no other thread of the program maps memory at that moment. Nothing else is free above that part:
 * memory that somebody asks the kernel for is put there, and is then mapped over and unmapped. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { AREA = 64 << 20, PART = 1 << 20 };

static volatile int over;
static char *part;

static void *toggle(void *unused)
{
    while (!over) {
        mmap(part, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        part[PART / 2] = 1;
        munmap(part, PART);
        for (volatile int i = 0; i < 5000; i++)
            ;
    }
    return unused;
}

static void *live_shortly(void *unused)
{
    for (volatile int i = 0; i < 4000000; i++)
        ;
    return unused;
}

/* Fills the address space so that the highest free place is below AREA. */
static void fill_above(const char *area)
{
    for (size_t size = 16 << 20; size >= 4096; size /= 2) {
        for (;;) {
            char *filling = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (filling > area) continue;
            munmap(filling, size);
            break;
        }
    }
}

int main(int count, char **arguments)
{
    time_t end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 3);
    static char stacks[4][256 << 10] __attribute__((aligned(4096)));
    char *area = mmap(NULL, AREA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    part = area + AREA / 2;
    fill_above(area);
    pthread_t toggler;
    pthread_create(&toggler, NULL, toggle, NULL);
    while (time(NULL) < end) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            pthread_attr_setstack(&attributes, stacks[i],
                                  sizeof stacks[i]); /* the C library would map the stack otherwise */
            pthread_create(&threads[i], &attributes, live_shortly, NULL);
        }
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    }
    over = 1;
    pthread_join(toggler, NULL);
    puts("lived");
    return 0;
}
