/* Storms of modules that come and go, and of stacks that do.  SPDX-License-Identifier: MIT */
#include "storm.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PLUGINS = 4 };

/* --- dlopen and dlclose while code runs in what is loaded --------------------------------------------------------- */

static void visit_plugin(unsigned number)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/soak_plugin%u.so", storm_folder, number);
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle) fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    uint64_t (*work)(void) = (uint64_t(*)(void))dlsym(handle, "plugin_work");
    unsigned (*number_of)(void) = (unsigned (*)(void))dlsym(handle, "plugin_number");
    CHECK(work && number_of && number_of() == number);
    uint64_t first = work();
    for (unsigned i = 0; i < 50; i++) CHECK(work() == first);
    CHECK(dlclose(handle) == 0);
}

static void *run_visits(void *argument)
{
    for (unsigned i = (unsigned)(uintptr_t)argument; storm_continues(); i++) visit_plugin(i % PLUGINS);
    return NULL;
}

static void storm_dlopen(void)
{
    pthread_t threads[4];
    storm_crowd(1);
    for (uintptr_t i = 0; i < 4; i++) threads[i] = storm_thread(run_visits, (void *)i);
    for (unsigned i = 0; i < 4; i++) storm_join(threads[i]);
    storm_crowd_join();
}

/* The child must leave the loader alone: its lock may have been another thread's. */
static void storm_dlopen_and_fork(void)
{
    storm_crowd(1);
    pthread_t thread = storm_thread(run_visits, NULL);
    for (unsigned i = 0; storm_continues(); i++) {
        pid_t child = fork();
        if (child == 0) {
            for (unsigned j = 0; j < 100; j++) storm_work(j);
            _exit(5);
        }
        storm_expect_exit(child, 5);
    }
    storm_join(thread);
    storm_crowd_join();
}

/* --- Coroutines on stacks that are mapped and unmapped ------------------------------------------------------------ */

enum { COROUTINE_STACK = 64 << 10, COROUTINES = 8 };

struct coroutine {
    ucontext_t context, caller;
    uint8_t *stack;
    unsigned steps;
};

static __thread struct coroutine *entered;

static void run_coroutine(void)
{
    struct coroutine *self = entered;
    for (unsigned i = 0; i < 3; i++) {
        storm_work(i);
        self->steps++;
        swapcontext(&self->context, &self->caller);
    }
    self->steps = 0;
}

static void make_coroutine(struct coroutine *coroutine)
{
    coroutine->stack =
        mmap(NULL, COROUTINE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(coroutine->stack != MAP_FAILED);
    CHECK(getcontext(&coroutine->context) == 0);
    coroutine->context.uc_stack.ss_sp = coroutine->stack;
    coroutine->context.uc_stack.ss_size = COROUTINE_STACK;
    coroutine->context.uc_link = &coroutine->caller;
    makecontext(&coroutine->context, run_coroutine, 0);
}

static void *run_coroutines(void *unused)
{
    struct coroutine *coroutines = calloc(COROUTINES, sizeof(*coroutines));
    for (unsigned i = 0; storm_continues(); i++) {
        struct coroutine *chosen = &coroutines[i * 7 % COROUTINES];
        unsigned steps_before = chosen->steps;
        if (!chosen->stack) make_coroutine(chosen);
        entered = chosen;
        CHECK(swapcontext(&chosen->caller, &chosen->context) == 0);
        CHECK(chosen->steps == (steps_before + 1) % 4);
        if (chosen->steps != 0) continue;
        CHECK(munmap(chosen->stack, COROUTINE_STACK) == 0);
        chosen->stack = NULL;
    }
    free(coroutines);
    return NULL;
}

static void storm_coroutines(void)
{
    pthread_t thread = storm_thread(run_coroutines, NULL);
    run_coroutines(NULL);
    storm_join(thread);
}

const struct storm storms_of_modules[] = {
    {"dlopen", storm_dlopen},
    {"dlopen_and_fork", storm_dlopen_and_fork},
    {"coroutines", storm_coroutines},
    {0},
};
