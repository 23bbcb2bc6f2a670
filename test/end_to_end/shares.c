/* A program whose profile is known: it measures with CLOCK_MONOTONIC how long each of its functions really lasts and
 * prints that as JSON at its end, so that a test can hold a profile against it. Each thread shows one thing that a
 * profiler must get right; the comment above its function says what. Argument: the plugin's path.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each function is its own frame, by its own name: never inlined, copied, or left by a jump. */
#define FRAME __attribute__((noinline, noclone))
#define STAY_A_FRAME() __asm__ volatile("" ::: "memory")

enum { RECURSION_DEPTH = 200, BRIEF_THREADS = 5, BLOCK_MS = 1000 };

/* The measured times. Shared with the forked child, which fills in its own part. */
static struct truth {
    uint64_t seventy_ns, thirty_ns;
    uint64_t asleep_ns;
    uint64_t recursion_ns;
    uint64_t plugin_asleep_ns, plugin_ns;
    uint64_t in_handler_ns, outside_handler_ns;
    uint64_t child_ns;
    uint64_t brief_ns[BRIEF_THREADS];
    uint64_t main_ns;
} * truth;

static volatile uint64_t sink;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define MILLISECONDS(count) ((uint64_t)(count)*1000000u)

/* The work itself, written out in each function so that its time is its own; returns how long it really lasted. */
#define BURN(duration_ns, salt)                                                                                        \
    uint64_t start_ns = now_ns();                                                                                      \
    while (now_ns() - start_ns < (duration_ns))                                                                        \
        for (uint64_t i = 0; i < 20000; i++) sink = sink * 31 + (i ^ (salt));                                          \
    STAY_A_FRAME();                                                                                                    \
    return now_ns() - start_ns

/* --- 70 % of a thread's time in one function and 30 % in another -------------------------------------------------- */

FRAME static uint64_t spends_seventy(uint64_t duration_ns)
{
    BURN(duration_ns, 70);
}

FRAME static uint64_t spends_thirty(uint64_t duration_ns)
{
    BURN(duration_ns, 30);
}

static void *run_shares(void *unused)
{
    for (unsigned i = 0; i < 13; i++) {
        truth->seventy_ns += spends_seventy(MILLISECONDS(210));
        truth->thirty_ns += spends_thirty(MILLISECONDS(90));
    }
    return NULL;
}

/* --- a thread that sleeps: wall time without any CPU time --------------------------------------------------------- */

FRAME static uint64_t sleeps_all_along(uint64_t duration_ns)
{
    uint64_t start_ns = now_ns(), end_ns = start_ns + duration_ns;
    struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u), .tv_nsec = (long)(end_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) continue;
    STAY_A_FRAME();
    return now_ns() - start_ns;
}

static void *run_sleeper(void *unused)
{
    truth->asleep_ns = sleeps_all_along(MILLISECONDS(3900));
    return NULL;
}

/* --- a deep stack, every frame of which must be there ------------------------------------------------------------- */

FRAME static uint64_t works_at_the_bottom(uint64_t duration_ns)
{
    BURN(duration_ns, 200);
}

FRAME static uint64_t recurses(unsigned depth)
{
    uint64_t lasted_ns = depth > 1 ? recurses(depth - 1) : works_at_the_bottom(MILLISECONDS(BLOCK_MS));
    STAY_A_FRAME();
    return lasted_ns;
}

static void *run_recursion(void *unused)
{
    truth->recursion_ns = recurses(RECURSION_DEPTH);
    return NULL;
}

/* --- code that was not there at the start and is gone at the end -------------------------------------------------- */

static void *run_plugin(void *path)
{
    uint64_t (*works_in_the_plugin)(uint64_t);
    truth->plugin_asleep_ns = sleeps_all_along(MILLISECONDS(500));
    void *plugin = dlopen(path, RTLD_NOW);
    void *work = plugin ? dlsym(plugin, "works_in_the_plugin") : NULL;
    if (!work) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(&works_in_the_plugin, &work, sizeof(work));
    truth->plugin_ns = works_in_the_plugin(MILLISECONDS(BLOCK_MS));
    dlclose(plugin);
    return NULL;
}

/* --- the program's own signal handler: its stack continues below the kernel's frame ---------------------------------
 */

FRAME static uint64_t works_in_the_handler(uint64_t duration_ns)
{
    BURN(duration_ns, 10);
}

static void handle_signal(int number)
{
    truth->in_handler_ns += works_in_the_handler(MILLISECONDS(100));
}

FRAME static uint64_t works_outside_the_handler(uint64_t duration_ns)
{
    BURN(duration_ns, 11);
}

FRAME static void raises_signals(void)
{
    for (unsigned i = 0; i < 18; i++) {
        raise(SIGUSR1);
        truth->outside_handler_ns += works_outside_the_handler(MILLISECONDS(100));
    }
    STAY_A_FRAME();
}

static void *run_signals(void *unused)
{
    raises_signals();
    return NULL;
}

/* --- a forked child, which lives on as a program of one thread ---------------------------------------------------- */

FRAME static uint64_t works_in_the_child(uint64_t duration_ns)
{
    BURN(duration_ns, 5);
}

static pid_t start_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        truth->child_ns = works_in_the_child(MILLISECONDS(BLOCK_MS));
        exit(0);
    }
    return child;
}

/* --- threads that come and go ------------------------------------------------------------------------------------- */

FRAME static uint64_t works_briefly(uint64_t duration_ns)
{
    BURN(duration_ns, 3);
}

static void *run_brief(void *place)
{
    *(uint64_t *)place = works_briefly(MILLISECONDS(400));
    return NULL;
}

static pthread_t start(const char *name, void *(*run)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) != 0) exit(1);
    pthread_setname_np(thread, name);
    return thread;
}

static void run_brief_threads(void)
{
    for (unsigned i = 0; i < BRIEF_THREADS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "brief-%u", i);
        pthread_join(start(name, run_brief, &truth->brief_ns[i]), NULL);
    }
}

/* ------------------------------------------------------------------------------------------------------------------ */

static uint64_t cpu_ns_of(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

static void print_truth(void)
{
    printf(
        "{\"threads\": {"
        "\"shares\": {\"spends_seventy\": %lu, \"spends_thirty\": %lu}, "
        "\"sleeper\": {\"sleeps_all_along\": %lu}, "
        "\"recursion\": {\"recurses\": %lu, \"works_at_the_bottom\": %lu}, "
        "\"plugin\": {\"sleeps_all_along\": %lu, \"works_in_the_plugin\": %lu}, "
        "\"signals\": {\"works_in_the_handler\": %lu, \"works_outside_the_handler\": %lu, \"raises_signals\": %lu}, ",
        truth->seventy_ns, truth->thirty_ns, truth->asleep_ns, truth->recursion_ns, truth->recursion_ns,
        truth->plugin_asleep_ns, truth->plugin_ns, truth->in_handler_ns, truth->outside_handler_ns,
        truth->in_handler_ns + truth->outside_handler_ns);
    for (unsigned i = 0; i < BRIEF_THREADS; i++)
        printf("\"brief-%u\": {\"works_briefly\": %lu}, ", i, truth->brief_ns[i]);
    printf("\"shares_program\": {\"main\": %lu}}, \"child\": {\"works_in_the_child\": %lu}, \"cpu\": %lu, "
           "\"recursion_depth\": %d}\n",
           truth->main_ns, truth->child_ns, cpu_ns_of(RUSAGE_SELF) + cpu_ns_of(RUSAGE_CHILDREN), RECURSION_DEPTH);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    uint64_t start_ns = now_ns();
    truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (truth == MAP_FAILED) return 1;
    signal(SIGUSR1, handle_signal);

    pthread_t threads[] = {
        start("shares", run_shares, NULL),       start("sleeper", run_sleeper, NULL),
        start("recursion", run_recursion, NULL), start("plugin", run_plugin, argv[1]),
        start("signals", run_signals, NULL),
    };
    pid_t child = start_child();
    run_brief_threads();
    for (unsigned i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) pthread_join(threads[i], NULL);
    waitpid(child, NULL, 0);
    truth->main_ns = now_ns() - start_ns;
    print_truth();
    return 0;
}
