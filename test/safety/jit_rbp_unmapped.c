/* SPDX-License-Identifier: MIT */
/* hand-made (JIT) code that uses rbp as a general register, pointing into memory which another thread maps and unmaps:
 * legal. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile int over;
static unsigned char *page;
static void *toggle(void *x)
{
    while (!over) {
        mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        for (volatile int i = 0; i < 200; i++)
            ;
        munmap(page, 4096);
        for (volatile int i = 0; i < 200; i++)
            ;
    }
    return 0;
}
static void *spin(void *code)
{ /* call code(&over, page) : rbp = page; loop until *rdi */
    void (*f)(volatile int *, void *) = (void (*)(volatile int *, void *))code;
    f(&over, page + 64);
    return 0;
}
int main(int c, char **v)
{
    int sec = c > 1 ? atoi(v[1]) : 10;
    unsigned char *area = mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *stk = area;
    mprotect(stk, 1 << 20, PROT_READ | PROT_WRITE);
    page = area + (32 << 20);
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* push rbp; mov rbp,rsi; 1: cmp dword [rdi],0; je 1b; pop rbp; ret */
    static const unsigned char b[] = {0x55, 0x48, 0x89, 0xf5, 0x83, 0x3f, 0x00, 0x74, 0xfb, 0x5d, 0xc3};
    memcpy(code, b, sizeof b);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstack(&a, stk, 1 << 20);
    pthread_t t, u;
    pthread_create(&t, &a, spin, code);
    pthread_create(&u, NULL, toggle, NULL);
    sleep(sec);
    over = 1;
    pthread_join(t, 0);
    pthread_join(u, 0);
    puts("lived");
    return 0;
}
