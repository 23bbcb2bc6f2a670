/* Asking the kernel for the thread's id takes longer than the rest of a span, so each thread asks once. A forked child
 * is noticed by process_number, because locks and references that other threads of the parent held are lost there.
 * SPDX-License-Identifier: MIT */
#include "trace/current_thread.h"

#include "base/process.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Initial-exec: with the usual model the first access on a thread may call malloc, which an exit in a signal handler
 * may have interrupted. */
static __thread struct trace_thread self __attribute__((tls_model("initial-exec")));
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static atomic_bool has_key; /* threads may still run when the library goes */

static void at_thread_end(void *thread)
{
    trace_thread_leave_all(thread);
}

static void prepare_process(void)
{
    has_key = pthread_key_create(&key, at_thread_end) == 0;
}

/* Deletes the key: an unloaded library must not be called when a thread ends. */
__attribute__((destructor)) static void at_unload(void)
{
    if (has_key) (void)pthread_key_delete(key);
    has_key = false;
}

static void prepare_thread(unsigned process)
{
    struct timespec now = {0};
    (void)pthread_once(&once, prepare_process);
    self = (struct trace_thread){.process = process, .tid = gettid()};
    trace_thread_read_name(&self);
    if (getrandom(&self.random, sizeof(self.random), GRND_NONBLOCK) == sizeof(self.random)) return;
    /* Early in the life of the machine there are no random bytes; ids of spans need only differ within a trace. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    self.random = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)gettid();
}

struct trace_thread *trace_thread_self(void)
{
    unsigned process = process_number();
    if (__builtin_expect(self.process != process, 0)) prepare_thread(process);
    return &self;
}

void trace_thread_read_name(struct trace_thread *thread)
{
    if (prctl(PR_GET_NAME, thread->name) != 0) thread->name[0] = '\0';
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t trace_thread_random(struct trace_thread *thread)
{
    uint64_t mixed = thread->random += 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
    return mixed ^ mixed >> 31;
}

void trace_thread_watch(struct trace_thread *thread)
{
    if (!thread->is_watched && has_key) thread->is_watched = pthread_setspecific(key, thread) == 0;
}
