/* Storms of processes: every way to make one, to become another, and to end.  SPDX-License-Identifier: MIT */
#include "storm.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

/* --- What the started programs do --------------------------------------------------------------------------------- */

static int exec_again(const char *until_ns, bool blocks_signals);

static void *exec_on_thread(void *argument)
{
    exit(exec_again(argument, false));
}

static void *exec_blocked_on_thread(void *argument)
{
    exit(exec_again(argument, true));
}

_Noreturn static void *work_forever(void *argument)
{
    for (unsigned i = 0;; i++) storm_work(i);
}

/* Becomes this program again from a thread that is busy and so likely to have been signalled just now. */
static int exec_again(const char *until_ns, bool blocks_signals)
{
    sigset_t all;
    (void)sigfillset(&all);
    if (blocks_signals) (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (unsigned i = 0; i < 20 + now_ns() % 200; i++) storm_work(i);
    execl(storm_program, storm_program, "process", blocks_signals ? "exec-blocked" : "exec", until_ns, (char *)NULL);
    return 1;
}

static int run_exec(const char *kind, const char *until_ns)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    if (now_ns() >= strtoull(until_ns, NULL, 10)) return 9;
    char *argument = strdup(until_ns);
    (void)storm_thread(work_forever, NULL);
    bool blocks_signals = strcmp(kind, "exec-blocked") == 0;
    if (now_ns() / 1000 % 2) return exec_again(until_ns, blocks_signals);
    (void)storm_thread(blocks_signals ? exec_blocked_on_thread : exec_on_thread, argument);
    sleep_ns(20000000000u);
    return 3;
}

static void *end_after_a_moment(void *argument)
{
    sleep_ns(1000000);
    _exit(13);
}

static void say_bye(void)
{
    if (write(STDOUT_FILENO, "", 0) < 0) _exit(4);
}

static int run_ending(const char *kind)
{
    (void)storm_thread(work_forever, NULL);
    (void)atexit(say_bye);
    storm_work(1);
    if (strcmp(kind, "_exit") == 0) _exit(11);
    if (strcmp(kind, "quick_exit") == 0) quick_exit(12);
    if (strcmp(kind, "thread") == 0) {
        (void)storm_thread(end_after_a_moment, NULL);
        pthread_exit(NULL);
    }
    if (strcmp(kind, "abort") == 0) abort();
    if (strcmp(kind, "kill") == 0) kill(getpid(), SIGKILL);
    return 14;
}

int process_main(int argc, char **argv)
{
    if (strcmp(argv[0], "exit") == 0) return atoi(argv[1]);
    if (strcmp(argv[0], "end") == 0) return run_ending(argv[1]);
    if (strncmp(argv[0], "exec", 4) == 0) return run_exec(argv[0], argv[1]);
    return 99;
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

static void *run_moment(void *argument)
{
    storm_work(1);
    return argument;
}

/* A child's libc is whole: it allocates, makes threads, and has children. */
static void live_as_child(unsigned generation)
{
    void *result = NULL;
    pthread_t thread = storm_thread(run_moment, &result);
    for (unsigned i = 0; i < 100; i++) storm_work(i);
    char *memory = malloc(100000);
    CHECK(memory);
    memset(memory, 1, 100000);
    free(memory);
    CHECK(pthread_join(thread, &result) == 0 && result);
    if (generation == 0) return;
    pid_t child = fork();
    if (child == 0) {
        live_as_child(generation - 1);
        _exit(20);
    }
    storm_expect_exit(child, 20);
}

static void *run_forks(void *unused)
{
    for (unsigned i = 0; storm_continues(); i++) {
        pid_t child = fork();
        if (child == 0) {
            live_as_child(i % 3);
            if (i % 2) exit(21);
            _exit(21);
        }
        storm_expect_exit(child, 21);
    }
    return NULL;
}

static void storm_fork(void)
{
    storm_crowd(2);
    pthread_t thread = storm_thread(run_forks, NULL);
    (void)run_forks(NULL);
    storm_join(thread);
    storm_crowd_join();
}

/* --- Programs started in every way -------------------------------------------------------------------------------- */

static void spawn_program(char *const *arguments, int expected)
{
    pid_t child = -1;
    CHECK((errno = posix_spawn(&child, storm_program, NULL, NULL, arguments, environ)) == 0);
    storm_expect_exit(child, expected);
}

static void vfork_program(char *const *arguments, int expected)
{
    pid_t child = vfork();
    if (child == 0) {
        execv(storm_program, arguments);
        _exit(98);
    }
    storm_expect_exit(child, expected);
}

static void fork_program(char *const *arguments, int expected)
{
    pid_t child = fork();
    if (child == 0) {
        storm_work(1);
        execv(storm_program, arguments);
        _exit(98);
    }
    storm_expect_exit(child, expected);
}

static void read_from_shell(void)
{
    char line[64] = "";
    FILE *stream = popen("echo out; exit 3", "r");
    CHECK(stream && fgets(line, sizeof(line), stream));
    CHECK(strcmp(line, "out\n") == 0);
    CHECK(WEXITSTATUS(pclose(stream)) == 3);
}

static void *run_programs(void *unused)
{
    char name[] = "storm", process[] = "process", exits[] = "exit", number[] = "22";
    char *const arguments[] = {name, process, exits, number, NULL};
    for (unsigned i = 0; storm_continues(); i++) {
        if (i % 5 == 0) spawn_program(arguments, 22);
        if (i % 5 == 1) vfork_program(arguments, 22);
        if (i % 5 == 2) fork_program(arguments, 22);
        if (i % 5 == 3) read_from_shell();
        if (i % 5 == 4) {
            int status = system("exit 4");
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
        }
    }
    return NULL;
}

static void storm_programs(void)
{
    storm_crowd(1);
    pthread_t thread = storm_thread(run_programs, NULL);
    storm_join(thread);
    storm_crowd_join();
}

/* --- exec from threads that were just signalled ------------------------------------------------------------------- */

static void run_exec_chain(const char *kind)
{
    char until[32];
    snprintf(until, sizeof(until), "%llu",
             (unsigned long long)(now_ns() + (uint64_t)storm_seconds_left() * 1000000000u));
    pid_t child = fork();
    if (child == 0) {
        execl(storm_program, storm_program, "process", kind, until, (char *)NULL);
        _exit(98);
    }
    storm_expect_exit(child, 9);
}

static void storm_exec(void)
{
    run_exec_chain("exec");
}

static void storm_exec_with_all_blocked(void)
{
    run_exec_chain("exec-blocked");
}

/* --- Every way to end --------------------------------------------------------------------------------------------- */

static pid_t start_ending(const char *kind)
{
    pid_t child = fork();
    if (child != 0) return child;
    execl(storm_program, storm_program, "process", "end", kind, (char *)NULL);
    _exit(98);
}

static void storm_endings(void)
{
    while (storm_continues()) {
        storm_expect_exit(start_ending("_exit"), 11);
        storm_expect_exit(start_ending("quick_exit"), 12);
        storm_expect_exit(start_ending("thread"), 13);
        storm_expect_exit(start_ending("return"), 14);
        storm_expect_signal(start_ending("abort"), SIGABRT);
        storm_expect_signal(start_ending("kill"), SIGKILL);
    }
}

/* Killed at any moment of its start. */
static void storm_killed_at_start(void)
{
    for (unsigned i = 0; storm_continues(); i++) {
        pid_t child = start_ending("thread");
        sleep_ns(i % 40 * 100000);
        kill(child, SIGTERM);
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) || (WIFEXITED(status) && WEXITSTATUS(status) == 13));
    }
}

/* --- Daemons ------------------------------------------------------------------------------------------------------ */

static _Atomic unsigned *daemons_done; /* shared with them */

static void live_as_daemon(void)
{
    setsid();
    if (fork() != 0) _exit(30);
    alarm(20);
    (void)syscall(SYS_close_range, 0u, ~0u, 0);
    CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
    for (unsigned i = 0; i < 500; i++) storm_work(i);
    CHECK(open("/dev/null", O_RDONLY) == 3);
    ++*daemons_done;
    exit(0);
}

static void storm_daemons(void)
{
    unsigned begun = 0;
    daemons_done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(daemons_done != MAP_FAILED);
    storm_crowd(1);
    while (storm_continues()) {
        pid_t child = fork();
        if (child == 0) live_as_daemon();
        storm_expect_exit(child, 30);
        begun++;
        for (unsigned i = 0; *daemons_done != begun; i++) {
            CHECK(i < 10000);
            sleep_ns(1000000);
        }
    }
    storm_crowd_join();
}

const struct storm storms_of_processes[] = {
    {"fork", storm_fork},       {"programs", storm_programs},
    {"exec", storm_exec},       {"exec_with_all_blocked", storm_exec_with_all_blocked},
    {"endings", storm_endings}, {"killed_at_start", storm_killed_at_start},
    {"daemons", storm_daemons}, {0},
};
