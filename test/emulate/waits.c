/* Threads in 15 kinds of wait, and one that computes, for as many seconds as the argument says. Each thread has the
 * name of its wait, and waits in a function that a function of its own calls. Prints the number of waits that a signal
 * has interrupted. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noipa))

static atomic_int interrupted;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mutex_of_condition = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int empty_pipe[2], empty_socket[2], listener, locked_file, futex_word;
static pid_t child;

static void note(long result)
{
    if (result < 0 && errno == EINTR) atomic_fetch_add(&interrupted, 1);
}

#define WAIT(name, call)                                                                                               \
    APART static void waits_in_##name(void)                                                                            \
    {                                                                                                                  \
        note((long)(call));                                                                                            \
        __asm__ volatile("" ::: "memory"); /* no tail call */                                                          \
    }                                                                                                                  \
    static void *run_##name(void *text)                                                                                \
    {                                                                                                                  \
        pthread_setname_np(pthread_self(), text);                                                                      \
        waits_in_##name();                                                                                             \
        return text;                                                                                                   \
    }

static char byte;
static struct timespec long_time = {.tv_sec = 1000};
static struct epoll_event event;
static struct pollfd polled = {.events = POLLIN};

WAIT(read, read(empty_pipe[0], &byte, 1))
WAIT(poll, poll(&polled, 1, -1))
WAIT(select, select(0, NULL, NULL, NULL, NULL))
WAIT(epoll, epoll_wait(epoll_create1(0), &event, 1, -1))
WAIT(nanosleep, nanosleep(&long_time, NULL))
WAIT(recv, recv(empty_socket[0], &byte, 1, 0))
WAIT(accept, accept(listener, NULL, NULL))
WAIT(mutex, pthread_mutex_lock(&held))
WAIT(condition, (pthread_mutex_lock(&mutex_of_condition), pthread_cond_wait(&never, &mutex_of_condition)))
WAIT(rwlock, pthread_rwlock_rdlock(&written))
WAIT(barrier, pthread_barrier_wait(&barrier))
WAIT(semaphore, sem_wait(&semaphore))
WAIT(flock, flock(locked_file, LOCK_EX))
WAIT(waitpid, waitpid(child, NULL, 0))
WAIT(syscall, syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0))

static const struct wait {
    const char *name;
    void *(*run)(void *name);
} waits[] = {
    {"read", run_read},           {"poll", run_poll},       {"select", run_select},   {"epoll", run_epoll},
    {"nanosleep", run_nanosleep}, {"recv", run_recv},       {"accept", run_accept},   {"mutex", run_mutex},
    {"condition", run_condition}, {"rwlock", run_rwlock},   {"barrier", run_barrier}, {"semaphore", run_semaphore},
    {"flock", run_flock},         {"waitpid", run_waitpid}, {"syscall", run_syscall},
};

static void prepare(void)
{
    FILE *file = tmpfile();
    bool is_made = pipe(empty_pipe) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, empty_socket) == 0 && file;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (!is_made || listen(listener, 1) != 0) abort();
    polled.fd = empty_pipe[0];
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
    locked_file = open(path, O_RDWR);
    if (flock(fileno(file), LOCK_EX) != 0) abort();
    pthread_mutex_lock(&held);
    pthread_rwlock_wrlock(&written);
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
}

APART static void computes(double seconds)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    double start = (double)now.tv_sec + (double)now.tv_nsec / 1e9, end = start + seconds, at = start;
    for (volatile unsigned long sum = 0; at < end; at = (double)now.tv_sec + (double)now.tv_nsec / 1e9) {
        for (unsigned i = 0; i < 100000; i++) sum += i;
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
}

int main(int count, char **words)
{
    pthread_t thread;
    prepare();
    for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
        pthread_create(&thread, NULL, waits[i].run, (void *)(uintptr_t)waits[i].name);
    computes(count > 1 ? atof(words[1]) : 3);
    (void)kill(child, SIGKILL);
    printf("%d\n", atomic_load(&interrupted));
    (void)fflush(stdout);
    _exit(0);
}
