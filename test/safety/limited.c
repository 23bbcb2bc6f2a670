/* "memory": maps 80 MB under a limit of 128 MB. "lock": locks its memory, and prints VmSize, VmLck and VmRSS in kB.
 * "size": prints them without a lock. "thread": creates a thread. Each works for 0.3 s first; the exit status is 0 if
 * it gets what it needs. SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

static volatile unsigned long sink;

static void spin(double seconds)
{
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end) {
        for (int i = 0; i < 20000; i++) sink += i * i;
    }
}

static int use_memory(void)
{
    const size_t size = 80 << 20;
    struct rlimit limit = {128 << 20, 128 << 20};
    setrlimit(RLIMIT_AS, &limit);
    spin(0.3);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    memset(memory, 1, size);
    return 0;
}

static void print_sizes(void)
{
    char line[200];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file)) {
        if (!strncmp(line, "VmSize:", 7) || !strncmp(line, "VmLck:", 6) || !strncmp(line, "VmRSS:", 6))
            printf("%ld ", atol(strchr(line, ':') + 1));
    }
    puts("");
}

static void *work(void *unused)
{
    spin(0.3);
    return NULL;
}

static int create_thread(void)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, work, NULL);
    if (error == 0) pthread_join(thread, NULL);
    spin(0.3);
    return error;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "memory") == 0) return use_memory();
    if (strcmp(what, "lock") == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 1;
    spin(0.3);
    if (strcmp(what, "thread") == 0) return create_thread();
    print_sizes();
    return 0;
}
