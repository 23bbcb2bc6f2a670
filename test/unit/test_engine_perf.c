/* Tests the engine over perf events on a thread of this program that has inherited its events.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/clocks.h"
#include "recorder/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define SHORT_NS UINT64_C(1000000)
#define LONG_NS UINT64_C(20000000)
#define WORK_NS UINT64_C(300000000)

static struct engine *engine;
static atomic_uint phase; /* number of the stretch of work that is done */
static atomic_int spinner;

/* Works for WORK_NS of CPU time in each phase that is begun. */
static void *spin(void *context)
{
    struct timespec time;
    atomic_store(&spinner, gettid());
    for (unsigned done = 0; done < 2; done++) {
        while (atomic_load(&phase) <= 2 * done) (void)usleep(1000);
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        uint64_t end_ns = (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec + WORK_NS;
        do {
            (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        } while ((uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec < end_ns);
        atomic_fetch_add(&phase, 1);
    }
    return NULL;
}

static void count_stack(void *context, const struct engine_stack *stack)
{
    *(unsigned *)context += stack->tid == atomic_load(&spinner);
}

static void ignore_change(void *context, pid_t pid, pid_t parent, enum process_change change)
{
}

/* Returns the number of stacks of the next stretch of work. */
static unsigned work(void)
{
    unsigned count = 0, begun = atomic_fetch_add(&phase, 1) + 1;
    const struct engine_sink sink = {.context = &count, .stack = count_stack, .process = ignore_change};
    while (atomic_load(&phase) == begun) {
        engine_perf.poll(engine, &sink);
        (void)usleep(10000);
    }
    engine_perf.poll(engine, &sink);
    return count;
}

TEST(a_new_period_reaches_threads_that_have_inherited_their_events)
{
    struct engine_denial denial;
    if (!engine_perf.probe(&denial)) SKIP(denial.reason);
    const struct engine_options options = {.period_ns = SHORT_NS, .is_cpu_mode = true};
    struct watched_process watched = {.pid = getpid()};
    pthread_t thread;
    engine = engine_perf.open(&options, &denial);
    CHECK(engine && engine_perf.add_process(engine, &watched, &denial));
    CHECK(pthread_create(&thread, NULL, spin, NULL) == 0);
    unsigned often = work();
    engine_perf.set_period(engine, NULL, LONG_NS);
    engine_perf.set_period(engine, &watched, LONG_NS);
    unsigned seldom = work();
    CHECK(pthread_join(thread, NULL) == 0);
    engine_perf.remove_process(engine, &watched);
    engine_perf.close(engine);
    printf("# %u stacks before, %u after\n", often, seldom);
    CHECK(often > 50 && seldom > 0 && seldom < often / 5);
}

TEST_MAIN()
