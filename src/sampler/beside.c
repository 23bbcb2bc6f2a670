/* A signal that comes from another processor is seen by its thread some 10 µs later, in a virtual machine up to 80 µs
 * later. A thread that was in user code may have entered a system call by then, and answers with that call. So the
 * sampler moves to the processor of the thread and sleeps there. When it wakes up, the kernel stops the thread, in user
 * code or at the end of its system call, and the sampler sends the signal while the thread is stopped: its answer is
 * the place where it was stopped. How long it sleeps is drawn: a thread that was woken while the sampler had the
 * processor begins to run when it sleeps, and would always be stopped as long after its wake-up.
 * SPDX-License-Identifier: MIT */
#include "sampler/beside.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "sampler/self.h"

#include <string.h>

/* The 39th word of /proc/self/task/TID/stat (proc(5)), or -1. The second one can hold blanks, and ends with the last
 * parenthesis. */
static int processor_of(const struct watched_thread *thread)
{
    enum { WORDS_AFTER_NAME = 37 };
    char path[SELF_PATH_SIZE], text[1024];
    self_task_path(path, thread->tid, "stat");
    const char *at = self_read_file(path, text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
    for (unsigned i = 0; at && i < WORDS_AFTER_NAME; i++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    return at ? (int)plain_parse(&at, 10) : -1;
}

static bool set_processors(const uint64_t *allowed, long size)
{
    return kernel_call3(SYS_sched_setaffinity, 0, size, kernel_address(allowed)) == 0;
}

static void go(struct beside *beside, const struct watched_thread *thread)
{
    enum { BITS = 64 };
    uint64_t only[sizeof(beside->allowed) / sizeof(*beside->allowed)] = {0};
    long size = kernel_call3(SYS_sched_getaffinity, 0, sizeof(beside->allowed), kernel_address(beside->allowed));
    int processor = processor_of(thread);
    if (processor < 0 || processor >= size * 8) return;
    only[processor / BITS] = 1ull << (processor % BITS);
    if (set_processors(only, size)) beside->size = size;
}

/* A thread that was stopped before that moment, or that stopped on its own, is where it went to sleep, or was not
 * stopped by us. */
bool beside_stop(struct beside *beside, const struct watched_thread *thread, uint64_t pause_ns)
{
    struct timespec pause = {.tv_nsec = (long)pause_ns};
    beside->size = 0;
    go(beside, thread);
    uint64_t moment_ns = self_monotonic_ns() + pause_ns;
    (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0, 0);
    return perf_timer_was_preempted(&thread->timer, moment_ns);
}

void beside_leave(const struct beside *beside)
{
    if (beside->size > 0) (void)set_processors(beside->allowed, beside->size);
}
