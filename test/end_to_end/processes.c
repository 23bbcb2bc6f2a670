/* A program that becomes many in one of several ways, or is denied something, and works in its own function at
 * each step. Argument: the way. It prints how many milliseconds each function really lasted, summed over the processes,
 * as "FUNCTION MILLISECONDS" lines.  SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void print_lasted(const char *function, uint64_t lasted_ns)
{
    char line[128];
    int length = snprintf(line, sizeof(line), "%s %llu\n", function, (unsigned long long)(lasted_ns / 1000000));
    if (write(STDOUT_FILENO, line, (size_t)length) != length) _exit(1);
}

/* Each is its own frame, its work is written out in it, and none is like another, or they would become one. */
#define WORKS(name, salt)                                                                                              \
    __attribute__((noinline, noclone)) static uint64_t name(uint64_t duration_ms)                                      \
    {                                                                                                                  \
        uint64_t start_ns = now_ns();                                                                                  \
        while (now_ns() - start_ns < duration_ms * 1000000u)                                                           \
            for (uint64_t i = 0; i < 20000; i++) sink = sink * 31 + (i ^ (salt));                                      \
        __asm__ volatile("" ::: "memory");                                                                             \
        return now_ns() - start_ns;                                                                                    \
    }

WORKS(works_in_the_parent, 1)
WORKS(works_in_the_child, 2)
WORKS(works_in_the_grandchild, 3)
WORKS(works_before_exec, 4)
WORKS(works_after_exec, 5)
WORKS(works_at_the_end, 6)
WORKS(works_for_a_moment, 7)
WORKS(works_denied, 8)

#define RUN_AND_PRINT(function, duration_ms) print_lasted(#function, function(duration_ms))

static void expect_success(pid_t child)
{
    int status = -1;
    if (child <= 0 || waitpid(child, &status, 0) != child || status != 0) exit(1);
}

static void become(char *program, const char *way)
{
    (void)execl("/proc/self/exe", program, way, (char *)NULL);
    _exit(1);
}

/* --- Ways --------------------------------------------------------------------------------------------------------- */

static void run_fork(char *program)
{
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            RUN_AND_PRINT(works_in_the_grandchild, 400);
            exit(0);
        }
        RUN_AND_PRINT(works_in_the_child, 400);
        expect_success(grandchild);
        exit(0);
    }
    RUN_AND_PRINT(works_in_the_parent, 400);
    expect_success(child);
}

static void run_vfork(char *program)
{
    pid_t child = vfork();
    if (child == 0) become(program, "end");
    RUN_AND_PRINT(works_in_the_parent, 400);
    expect_success(child);
}

static void run_exec(char *program)
{
    RUN_AND_PRINT(works_before_exec, 400);
    become(program, "exec-again");
}

static void run_exec_again(char *program)
{
    RUN_AND_PRINT(works_after_exec, 400);
    become(program, "end");
}

static void run_end(char *program)
{
    RUN_AND_PRINT(works_at_the_end, 400);
}

/* A thread that libc did not make. It leaves thread-local storage alone, which is its maker's. */
__attribute__((noinline)) static int works_on_a_raw_thread(void *until_ns)
{
    while (now_ns() < *(uint64_t *)until_ns)
        for (uint64_t i = 0; i < 20000; i++) sink = sink * 31 + i;
    return 0;
}

static void run_raw_thread(char *program)
{
    enum {
        STACK = 64 << 10,
        FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID
    };
    static uint32_t tid;
    uint8_t *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t start_ns = now_ns(), until_ns = start_ns + 600000000;
    if (stack == MAP_FAILED || clone(works_on_a_raw_thread, stack + STACK, FLAGS, &until_ns, &tid, NULL, &tid) < 0)
        exit(1);
    for (uint32_t seen; (seen = __atomic_load_n(&tid, __ATOMIC_ACQUIRE)) != 0;)
        (void)syscall(SYS_futex, &tid, FUTEX_WAIT, seen, NULL, NULL, 0);
    print_lasted("works_on_a_raw_thread", now_ns() - start_ns);
}

/* Threads that end at any moment of a tick, most of them between two. */
static void *run_moment(void *duration_ms)
{
    return (void *)(uintptr_t)works_for_a_moment((uintptr_t)duration_ms);
}

static void run_moments(char *program)
{
    uint64_t lasted_ns = 0;
    for (uintptr_t i = 0; i < 150; i++) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, run_moment, (void *)(1 + i % 20)) != 0) exit(1);
        (void)pthread_join(thread, &result);
        lasted_ns += (uintptr_t)result;
    }
    print_lasted("works_for_a_moment", lasted_ns);
}

/* --- Denied ------------------------------------------------------------------------------------------------------- */

static void *sleeps_all_along(void *unused)
{
    struct timespec duration = {.tv_sec = 1};
    (void)nanosleep(&duration, NULL);
    return NULL;
}

static void work_and_sleep(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeps_all_along, NULL) != 0) exit(1);
    RUN_AND_PRINT(works_denied, 800);
    (void)pthread_join(thread, NULL);
}

static void run_not_dumpable(char *program)
{
    if (prctl(PR_SET_DUMPABLE, 0) != 0) exit(1);
    work_and_sleep();
}

static void run_confined(char *program)
{
    work_and_sleep();
}

/* Runs PROGRAM under a filter that kills it when it asks for a perf event. */
static void run_seccomp(char *program)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program_of_filter = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program_of_filter) != 0)
        exit(1);
    become(program, "confined");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(char *program);
    } ways[] = {
        {"fork", run_fork},       {"vfork", run_vfork},
        {"exec", run_exec},       {"exec-again", run_exec_again},
        {"end", run_end},         {"raw-thread", run_raw_thread},
        {"moments", run_moments}, {"not-dumpable", run_not_dumpable},
        {"seccomp", run_seccomp}, {"confined", run_confined},
    };
    for (size_t i = 0; argc == 2 && i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(argv[1], ways[i].name) != 0) continue;
        ways[i].run(argv[0]);
        return 0;
    }
    return 2;
}
