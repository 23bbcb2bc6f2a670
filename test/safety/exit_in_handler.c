/* exit_in_handler [malloc|printf|dlopen [THREADS]]: the main thread, and THREADS others, are nearly always in one call,
 * in which the handler of SIGTERM calls exit. SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end(int number)
{
    exit(0);
}

static void *call_malloc(void *unused)
{
    volatile char *p[512] = {0};
    for (unsigned i = 0;; i++) {
        int k = i % 512;
        free((void *)p[k]);
        p[k] = malloc(64 + (i * 7919) % 20000);
        p[k][0] = 1;
    }
}

static void *call_printf(void *unused)
{
    for (unsigned i = 0;; i++) printf("%u of %s, %g\n", i, "many lines", i / 3.0);
}

static void *call_dlopen(void *unused)
{
    for (;;) {
        void *library = dlopen("libresolv.so.2", RTLD_NOW);
        if (library) dlclose(library);
    }
}

int main(int argc, char **argv)
{
    const char *call = argc > 1 ? argv[1] : "malloc";
    void *(*work)(void *) = strcmp(call, "printf") == 0   ? call_printf
                            : strcmp(call, "dlopen") == 0 ? call_dlopen
                                                          : call_malloc;
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &before);
    for (int i = argc > 2 ? atoi(argv[2]) : 0; i > 0; i--) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
    }
    signal(SIGTERM, end);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(NULL);
}
