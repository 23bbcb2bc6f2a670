/* Loads liboffbeat (the first argument) at run time, profiles 200 ms with it, unloads it, and works on: what the
 * library began must have been ended and sent, and no code of it may run where it was. SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static volatile unsigned long sink;

static long milliseconds_by(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Works for MILLISECONDS, and for at least a quarter of them by the processor: on a busy machine there is time for the
 * library's threads, too. */
static void works(long milliseconds)
{
    long wall = milliseconds_by(CLOCK_MONOTONIC) + milliseconds;
    long processor = milliseconds_by(CLOCK_THREAD_CPUTIME_ID) + milliseconds / 4;
    while (milliseconds_by(CLOCK_MONOTONIC) < wall || milliseconds_by(CLOCK_THREAD_CPUTIME_ID) < processor)
        for (unsigned long i = 0; i < 20000; i++) sink = sink * 31 + i;
}

static bool find(void *library, const char *name, void *ret_function)
{
    void *function = dlsym(library, name);
    memcpy(ret_function, &function, sizeof(function));
    return function != NULL;
}

int main(int argument_count, char **arguments)
{
    bool (*init)(const struct offbeat_options *options);
    void (*start)(void);
    void *library = argument_count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library || !find(library, "offbeat_init", &init) || !find(library, "offbeat_start_profiler", &start)) {
        (void)fprintf(stderr, "sdk_loads: %s\n",
                      argument_count == 2 ? dlerror() : "the path of liboffbeat.so is missing");
        return 2;
    }
    if (!init(NULL)) return 3;
    start();
    works(200);
    (void)dlclose(library);
    works(200);
    return 0;
}
