/* Acts as a simple wall-clock profiler: preloaded, sends every thread a signal 101 times a second, with
 * a handler that does nothing and SA_RESTART. SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 1000000000 / 101 };

static void handle(int number)
{
}

static void signal_all(void)
{
    DIR *threads = opendir("/proc/self/task");
    if (!threads) return;
    for (const struct dirent *entry; (entry = readdir(threads));) {
        int tid = (int)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && tid != gettid()) (void)syscall(SYS_tgkill, getpid(), tid, SIGPROF);
    }
    (void)closedir(threads);
}

static void *run(void *unused)
{
    for (;;) {
        struct timespec period = {.tv_nsec = PERIOD_NS};
        (void)nanosleep(&period, NULL);
        signal_all();
    }
    return NULL;
}

__attribute__((constructor)) static void start(void)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigset_t all, kept;
    pthread_t thread;
    (void)sigaction(SIGPROF, &action, NULL);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &kept);
    (void)pthread_create(&thread, NULL, run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
}
