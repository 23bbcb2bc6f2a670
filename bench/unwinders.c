/* Preloaded into a large program, interrupts it a thousand times a second of CPU time and lets an unwinder walk the
 * stack: the sampler's handler, with all that it does for an answer, glibc's backtrace or, where it is installed,
 * libunwind. One at a time, in turns: each finds the caches as the program left them. Writes one line for each to the
 * file that OFFBEAT_BENCH_UNWINDERS names, at the end of the program:
 *
 *   NAME STACKS FRAMES MEDIAN_NS P99_NS TOTAL_NS REACHED_THE_ROOT
 *
 * Walks the main thread alone. A measuring tool: what it calls in its handler is not all safe there.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "sampler/modules/modules.h"
#include "sampler/source/signal_handler.h"

enum { FRAMES_MAX = 512, STACKS_MAX = 1 << 17 };

static struct recording_writer writer; /* records that nobody reads */
static struct modules modules;
static struct sample_request slot;
static pid_t own_pid;
static const char *output_path;

struct unwinder {
    const char *name;
    int (*walk)(void **addresses, const ucontext_t *context);
    size_t stack_count, frame_count, root_count;
    uint64_t total_ns;
    uint32_t times_ns[STACKS_MAX];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- ours --------------------------------------------------------------------------------------------------------- */

static int walk_ours(void **unused, const ucontext_t *context)
{
    signal_handler_reply(&slot, context, ORIGIN_ANY, 1);
    return (int)slot.replies[0].address_count;
}

/* --- the peers ---------------------------------------------------------------------------------------------------- */

static int (*libunwind_backtrace)(void **, int);

static int walk_glibc(void **addresses, const ucontext_t *context)
{
    return backtrace(addresses, FRAMES_MAX);
}

static int walk_libunwind(void **addresses, const ucontext_t *context)
{
    return libunwind_backtrace(addresses, FRAMES_MAX);
}

static struct unwinder unwinders[] = {
    {.name = "ours", .walk = walk_ours},
    {.name = "glibc", .walk = walk_glibc},
    {.name = "libunwind", .walk = walk_libunwind},
};
static size_t unwinder_count = sizeof(unwinders) / sizeof(unwinders[0]);

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static void measure(struct unwinder *unwinder, const ucontext_t *context)
{
    static void *addresses[FRAMES_MAX];
    if (unwinder->stack_count == STACKS_MAX) return;
    uint64_t start_ns = now_ns();
    int count = unwinder->walk(addresses, context);
    uint64_t lasted_ns = now_ns() - start_ns;
    unwinder->times_ns[unwinder->stack_count++] = (uint32_t)lasted_ns;
    unwinder->total_ns += lasted_ns;
    unwinder->frame_count += (size_t)count;
    if (unwinder->walk == walk_ours && slot.replies[0].outcome == UNWIND_ROOT) unwinder->root_count++;
}

static void interrupt(int number, siginfo_t *information, void *context)
{
    static unsigned turn;
    if (gettid() != own_pid) return;
    turn++;
    measure(&unwinders[turn % unwinder_count], context);
}

/* --- start and end ------------------------------------------------------------------------------------------------ */

static void find_libunwind(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "unw_backtrace") : NULL;
    if (found)
        memcpy(&libunwind_backtrace, &found, sizeof(found));
    else
        unwinder_count--;
}

__attribute__((constructor)) static void start(void)
{
    output_path = getenv("OFFBEAT_BENCH_UNWINDERS");
    if (!output_path) return;
    unsetenv("LD_PRELOAD");
    own_pid = getpid();
    find_libunwind();
    void *first[4];
    backtrace(first, 4); /* loads what it needs, outside of the handler */

    recording_writer_init(&writer, "/nowhere/at-all", false);
    modules_refresh(&modules, false, &writer);
    modules_build_more(&modules, MODULES_MAX, modules_no_limit);
    slot.modules = modules.current;
    slot.thread = gettid();

    struct sigaction action = {.sa_sigaction = interrupt, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval every = {.it_interval = {.tv_usec = 997}, .it_value = {.tv_usec = 997}};
    setitimer(ITIMER_PROF, &every, NULL);
}

static int by_time(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void write_unwinder(FILE *output, struct unwinder *unwinder)
{
    size_t count = unwinder->stack_count;
    if (!count) return;
    qsort(unwinder->times_ns, count, sizeof(unwinder->times_ns[0]), by_time);
    fprintf(output, "%s %zu %zu %u %u %lu %zu\n", unwinder->name, count, unwinder->frame_count,
            unwinder->times_ns[count / 2], unwinder->times_ns[count - 1 - count / 100], unwinder->total_ns,
            unwinder->root_count);
}

__attribute__((destructor)) static void finish(void)
{
    if (!output_path || getpid() != own_pid) return;
    struct itimerval never = {0};
    setitimer(ITIMER_PROF, &never, NULL);
    FILE *output = fopen(output_path, "we");
    if (!output) return;
    size_t rows = 0;
    const struct module *items = modules.items.items;
    for (size_t i = 0; i < modules.items.count; i++) rows += items[i].table.row_count;
    fprintf(output, "tables %zu %zu %lu %lu\n", modules.items.count, rows, modules.tables.bytes,
            modules.tables.spent_ns);
    for (size_t i = 0; i < unwinder_count; i++) write_unwinder(output, &unwinders[i]);
    fclose(output);
}
