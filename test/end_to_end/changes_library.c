/* A library of which there are two: their functions have different names, and frames of different sizes at the same
 * addresses.  SPDX-License-Identifier: MIT */
#include <string.h>

void call_back(void (*called)(unsigned));

__attribute__((noinline, noclone)) static void NAME(void (*called)(unsigned))
{
    char room[ROOM];
    memset(room, 0, sizeof(room));
    __asm__ volatile("" ::"r"(room) : "memory");
    called(10);
    __asm__ volatile("" ::"r"(room) : "memory");
}

__attribute__((visibility("default"))) void call_back(void (*called)(unsigned))
{
    NAME(called);
    __asm__ volatile("" ::: "memory");
}
