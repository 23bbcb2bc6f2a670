/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void h(int s)
{
    exit(0);
}
int main(void)
{
    signal(SIGTERM, h);
    volatile char *p[512] = {0};
    for (unsigned i = 0;; i++) {
        int k = i % 512;
        free((void *)p[k]);
        p[k] = malloc(64 + (i * 7919) % 20000);
        p[k][0] = 1;
    }
}
