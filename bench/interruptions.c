/* A hundred threads that wait, each in one of eleven ways, and wake up for some microseconds every few milliseconds.
 * Counts the waits that end with EINTR, and those that end before their time although nothing happened. Argument:
 * seconds. Prints a line for each way: NAME CALLS INTERRUPTED EARLY. Built with no frame pointers, as most programs
 * are. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 100, SHORTEST_NS = 3000000, LONGEST_NS = 20000000, TIMEOUT_GRAIN_NS = 1000000 };

/* The objects that a thread waits on: nothing ever signals, writes to or wakes them. */
struct waiting {
    uint64_t wait_ns;
    int epoll, silent_socket;
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    uint32_t word;
    uint64_t calls, interrupted, early;
};

static struct waiting all[THREADS];
static uint64_t end_ns;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

/* --- The ways to wait: 0, or the error that ended it; a timeout is not an error ----------------------------------- */

static int error_of(long result)
{
    return result < 0 && errno != ETIMEDOUT && errno != EAGAIN ? errno : 0;
}

static int wait_nanosleep(struct waiting *waiting)
{
    struct timespec span = timespec_of(waiting->wait_ns);
    return error_of(nanosleep(&span, NULL));
}

static int wait_clock_nanosleep(struct waiting *waiting)
{
    struct timespec until = timespec_of(clock_ns(CLOCK_MONOTONIC) + waiting->wait_ns);
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static int wait_usleep(struct waiting *waiting)
{
    return error_of(usleep((useconds_t)(waiting->wait_ns / 1000)));
}

static int wait_poll(struct waiting *waiting)
{
    struct pollfd silent = {.fd = waiting->silent_socket, .events = POLLIN};
    return error_of(poll(&silent, 1, (int)(waiting->wait_ns / 1000000)));
}

static int wait_select(struct waiting *waiting)
{
    struct timeval span = {.tv_usec = (suseconds_t)(waiting->wait_ns / 1000)};
    fd_set silent;
    FD_ZERO(&silent);
    FD_SET(waiting->silent_socket, &silent);
    return error_of(select(waiting->silent_socket + 1, &silent, NULL, NULL, &span));
}

static int wait_epoll(struct waiting *waiting)
{
    struct epoll_event event;
    return error_of(epoll_wait(waiting->epoll, &event, 1, (int)(waiting->wait_ns / 1000000)));
}

static int wait_semaphore(struct waiting *waiting)
{
    struct timespec until = timespec_of(clock_ns(CLOCK_REALTIME) + waiting->wait_ns);
    return error_of(sem_timedwait(&waiting->semaphore, &until));
}

static int wait_receive(struct waiting *waiting)
{
    char byte;
    return error_of(recv(waiting->silent_socket, &byte, 1, 0));
}

static int wait_condition(struct waiting *waiting)
{
    struct timespec until = timespec_of(clock_ns(CLOCK_REALTIME) + waiting->wait_ns);
    pthread_mutex_lock(&waiting->mutex);
    int result = pthread_cond_timedwait(&waiting->condition, &waiting->mutex, &until);
    pthread_mutex_unlock(&waiting->mutex);
    return result == ETIMEDOUT ? 0 : result;
}

static int wait_signal(struct waiting *waiting)
{
    struct timespec span = timespec_of(waiting->wait_ns);
    sigset_t never_sent;
    sigemptyset(&never_sent);
    sigaddset(&never_sent, SIGUSR2);
    return error_of(sigtimedwait(&never_sent, NULL, &span));
}

static int wait_futex(struct waiting *waiting)
{
    struct timespec span = timespec_of(waiting->wait_ns);
    return error_of(syscall(SYS_futex, &waiting->word, FUTEX_WAIT_PRIVATE, 0, &span, NULL, 0));
}

static const struct {
    const char *name;
    int (*wait)(struct waiting *waiting);
} ways[] = {
    {"nanosleep", wait_nanosleep},
    {"clock_nanosleep", wait_clock_nanosleep},
    {"usleep", wait_usleep},
    {"poll", wait_poll},
    {"select", wait_select},
    {"epoll_wait", wait_epoll},
    {"sem_timedwait", wait_semaphore},
    {"recv", wait_receive},
    {"cond_timedwait", wait_condition},
    {"sigtimedwait", wait_signal},
    {"futex", wait_futex},
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* --- The threads -------------------------------------------------------------------------------------------------- */

static void work_a_little(void)
{
    uint64_t value = sink;
    for (unsigned i = 0; i < 1500; i++) value = (value ^ value >> 29) * 0xBF58476D1CE4E5B9u + i;
    sink = value;
}

static void *run(void *argument)
{
    struct waiting *waiting = argument;
    int (*wait)(struct waiting *) = ways[(waiting - all) % WAYS].wait;
    for (;;) {
        uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
        if (start_ns >= end_ns) return NULL;
        int error = wait(waiting);
        uint64_t lasted_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
        waiting->calls++;
        if (error == EINTR)
            waiting->interrupted++;
        else if (error != 0 || (wait != wait_receive && lasted_ns < waiting->wait_ns / 2))
            waiting->early++; /* recv's timeout counts jiffies, which jump where a host takes the processor away */
        work_a_little();
    }
}

static int prepare(struct waiting *waiting, size_t index)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return -1;
    waiting->wait_ns = SHORTEST_NS + index * (LONGEST_NS - SHORTEST_NS) / THREADS;
    waiting->wait_ns -= waiting->wait_ns % TIMEOUT_GRAIN_NS;
    waiting->silent_socket = sockets[0];
    struct timeval timeout = {.tv_usec = (suseconds_t)(waiting->wait_ns / 1000)};
    if (setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0) return -1;
    waiting->epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(waiting->epoll, EPOLL_CTL_ADD, sockets[0], &event) != 0) return -1;
    sem_init(&waiting->semaphore, 0, 0);
    pthread_mutex_init(&waiting->mutex, NULL);
    pthread_cond_init(&waiting->condition, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    sigset_t never_sent;
    sigemptyset(&never_sent);
    sigaddset(&never_sent, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &never_sent, NULL);
    end_ns = clock_ns(CLOCK_MONOTONIC) + (argc > 1 ? strtoull(argv[1], NULL, 10) : 8) * 1000000000;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        if (prepare(&all[i], i) != 0 || pthread_create(&threads[i], NULL, run, &all[i]) != 0) return 1;
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (size_t way = 0; way < WAYS; way++) {
        uint64_t calls = 0, interrupted = 0, early = 0;
        for (size_t i = way; i < THREADS; i += WAYS) {
            calls += all[i].calls;
            interrupted += all[i].interrupted;
            early += all[i].early;
        }
        printf("%s %lu %lu %lu\n", ways[way].name, calls, interrupted, early);
    }
    return 0;
}
