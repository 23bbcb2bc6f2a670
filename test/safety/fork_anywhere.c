/* Children are forked, by every call that there is, while other threads trace, begin, flush and end the library, and in
 * a signal handler that interrupts it. Each child calls the library and exits. fork_anywhere SECONDS: status 1 if one
 * hangs. SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_CHILD_MS = 10000, RINGS = 4096 };

static atomic_bool is_over;
static struct offbeat_span *_Atomic shared;
static pid_t _Atomic children[RINGS]; /* children that the signal handler made */
static atomic_uint child_count;

static void rest(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&pause, NULL);
}

static void use_library(void)
{
    struct offbeat_span *root = offbeat_transaction_start("GET /", "http.server");
    (void)offbeat_span_enter(root);
    offbeat_span_finish(offbeat_span_start("db", "q"));
    (void)offbeat_span_set_text(root, "k", "v");
    offbeat_span_finish(root);
    offbeat_span_finish(offbeat_span_start_child(shared, "of", "another"));
    offbeat_span_unref(offbeat_span_current());
    offbeat_start_profiler();
    offbeat_measure("m", "byte", 1);
    (void)offbeat_counts();
}

static void *trace(void *unused)
{
    while (!is_over) use_library();
    return NULL;
}

static void begin(void)
{
    (void)offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options),
                                                 .traces_sample_rate = 1,
                                                 .profile_session_sample_rate = 1,
                                                 .spool_directory = "",
                                                 .shutdown_timeout_ms = 50});
}

static void *live(void *unused)
{
    for (unsigned round = 0; !is_over; round++) {
        begin();
        rest(20);
        if (round % 3 == 0) (void)offbeat_flush(20);
        if (round % 2 == 0) offbeat_shutdown();
    }
    return NULL;
}

/* Calls only functions that a signal handler may call. The library does nothing in such a child. */
static void fork_in_handler(int number)
{
    unsigned index = child_count;
    if (index >= RINGS) return;
    pid_t child = index % 2 ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        use_library();
        offbeat_shutdown();
        _exit(0);
    }
    children[index] = child;
    child_count = index + 1;
}

/* False if CHILD, which is killed then, hangs. */
static int ends(pid_t child)
{
    for (int waited = 0; waited < LONGEST_CHILD_MS; waited++) {
        if (waitpid(child, NULL, WNOHANG) != 0) return 1;
        rest(1);
    }
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    return 0;
}

static void be_child(unsigned round)
{
    use_library();
    if (round % 16 == 0) rest(1200); /* until it has begun again */
    use_library();
    if (round % 4 == 0) offbeat_shutdown();
    if (round % 3 == 0) _exit(0);
    exit(0);
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
    const struct itimerval often = {{0, 7000}, {0, 7000}};
    pthread_t threads[4];
    unsigned hung = 0, forked = 0, reaped = 0;
    sigset_t alarm_only;
    (void)sigemptyset(&alarm_only);
    (void)sigaddset(&alarm_only, SIGALRM);
    begin();
    shared = offbeat_transaction_start("shared", "s");
    /* The first thread takes the signals: the others fork with libc's fork, which must not be interrupted by it. */
    for (int i = 0; i < 3; i++) (void)pthread_create(&threads[i], NULL, trace, NULL);
    (void)pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    (void)pthread_create(&threads[3], NULL, live, NULL);
    (void)signal(SIGALRM, fork_in_handler);
    (void)setitimer(ITIMER_REAL, &often, NULL);
    for (; time(NULL) < end && !hung; forked++) {
        pid_t child = fork();
        if (child == 0) be_child(forked);
        if (forked % 16 != 0) hung += !ends(child);
        for (; reaped < child_count && !hung; reaped++) hung += children[reaped] > 0 && !ends(children[reaped]);
    }
    is_over = 1;
    for (int i = 0; i < 4; i++) (void)pthread_join(threads[i], NULL);
    printf("%u forked, %u in a signal handler, %u hang\n", forked, reaped, hung);
    (void)fflush(stdout);
    return hung > 0 || forked == 0 || reaped == 0;
}
