/* SPDX-License-Identifier: MIT */
#include "sampler/kernel/raw_thread.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/thread_denial.h"
#include "sampler/kernel/priority.h"
#include "sampler/kernel/processor.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum {
    STACK_BYTES = 256 << 10,
    STORAGE_SLACK = 256 << 10, /* beyond the furthest thread-local variable that we know of: errno */
    END_WAIT_NS = 100000000,
    THREAD_BLOCK_BYTES = 16 << 10, /* libc's own description of a thread */
};

/* Allocates zeroed storage in the shape of a thread's, for the odd variable that some function touches all the same.
 * Returns the thread pointer. */
static void *make_storage(void)
{
    size_t below, size = processor_thread_bytes(&errno, STORAGE_SLACK, THREAD_BLOCK_BYTES, &below);
    size_t page = pages_size();
    below = (below + page - 1) & ~(page - 1);
    uint8_t *memory = pages_allocate(size + page);
    if (!memory) return NULL;
    processor_thread_block_fill(memory + below);
    return memory + below;
}

/* Allocates the stack, with an inaccessible page below it. */
static uint8_t *make_stack(void)
{
    uint8_t *stack = pages_allocate(STACK_BYTES);
    if (stack) (void)kernel_call3(SYS_mprotect, kernel_address(stack), (long)pages_size(), PROT_NONE);
    return stack;
}

/* Memory of the one thread. When the thread has ended, the kernel sets IS_ALIVE to 0 and wakes its waiters. */
static struct {
    void *storage;
    uint8_t *stack;
    _Atomic uint32_t is_alive;
    int tid; /* 0: there is no thread, or its number is unknown */
} kept;

static bool await_memory(uint64_t limit_ns)
{
    enum { TURNS = 10 };
    struct timespec limit = {.tv_nsec = (long)(limit_ns / TURNS)};
    for (unsigned turn = 0; turn < TURNS && atomic_load(&kept.is_alive); turn++) {
        (void)kernel_call6(SYS_futex, (long)(uintptr_t)&kept.is_alive, FUTEX_WAIT, 1, kernel_address(&limit), 0, 0);
    }
    return !atomic_load(&kept.is_alive);
}

bool raw_thread_await_end(uint64_t limit_ns)
{
    enum { CHECKS_MAX = 1000 };
    struct timespec pause = {.tv_nsec = 10000};
    if (!await_memory(limit_ns)) return false;
    /* The kernel frees a thread's memory first. A moment later the thread leaves its process. */
    long pid = kernel_call3(SYS_getpid, 0, 0, 0);
    for (unsigned check = 0; check < CHECKS_MAX && kept.tid > 0; check++) {
        if (kernel_call3(SYS_tgkill, pid, kept.tid, 0) != 0) break;
        (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0, 0);
    }
    return true;
}

void raw_thread_forget(void)
{
#ifdef __SANITIZE_ADDRESS__ /* the parent's thread was in the middle of using the stack, with marks around each        \
                               variable */
    if (kept.stack) __asan_unpoison_memory_region(kept.stack, STACK_BYTES);
#endif
    kept.tid = 0;
    atomic_store(&kept.is_alive, 0);
}

#ifdef __SANITIZE_THREAD__ /* test/soak/races.c: TSan knows of libc's threads only */

#include <pthread.h>

static struct {
    int (*run)(void *context);
    void *context;
} started;

static void *run_started(void *unused)
{
    (void)started.run(started.context);
    raw_thread_forget();
    (void)kernel_call3(SYS_futex, (long)(uintptr_t)&kept.is_alive, FUTEX_WAKE, 1);
    return NULL;
}

#endif

static int make_thread(int (*run)(void *context), void *context)
{
#ifdef __SANITIZE_THREAD__
    pthread_t thread;
    started.run = run;
    started.context = context;
    int error = pthread_create(&thread, NULL, run_started, NULL);
    return error ? -error : pthread_detach(thread) == 0;
#else
    enum {
        FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                CLONE_CHILD_CLEARTID,
    };
    int thread = (int)kernel_clone(run, context, kept.stack + STACK_BYTES, FLAGS, kept.storage, &kept.is_alive);
    if (thread > 0) kept.tid = thread;
    return thread;
#endif
}

bool raw_thread_start(int (*run)(void *context), void *context)
{
    int kept_errno = errno;
    uint64_t all = UINT64_MAX, mask = 0;
    if (!await_memory(END_WAIT_NS)) return false;
    if (!kept.storage) kept.storage = make_storage();
    if (!kept.stack) kept.stack = make_stack();
    if (!kept.storage || !kept.stack) return false;
    atomic_store(&kept.is_alive, 1);
    (void)kernel_call4(SYS_rt_sigprocmask, SIG_SETMASK, kernel_address(&all), kernel_address(&mask), sizeof(mask));
    struct thread_denial denial = {0};
    int thread;
    do thread = make_thread(run, context);
    while (thread_denial_may_end(&denial, thread > 0 ? 0 : -thread));
    /* A thread that inherits the calling one's real-time priority would wait until that one sleeps. */
    uint32_t priority = thread_real_time_priority(0);
    if (thread > 1 && priority > 0) thread_precede(thread, priority);

    (void)kernel_call4(SYS_rt_sigprocmask, SIG_SETMASK, kernel_address(&mask), 0, sizeof(mask));
    if (thread <= 0) raw_thread_forget();
    errno = kept_errno;
    return thread > 0;
}
