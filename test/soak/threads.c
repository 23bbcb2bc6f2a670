/* Storms of threads that come, go, are cancelled, wake each other and change identity.  SPDX-License-Identifier: MIT */
#include "storm.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

/* --- Thousands of short threads, on the smallest stacks ----------------------------------------------------------- */

static _Atomic unsigned begun, ended;

static void *run_moment(void *argument)
{
    storm_work((unsigned)(uintptr_t)argument);
    ended++;
    return argument;
}

static void start_moment(unsigned number, bool is_detached)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *result = NULL;
    CHECK(pthread_attr_init(&attributes) == 0);
    if (number % 2 == 0) CHECK(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) == 0);
    if (is_detached) CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    CHECK((errno = pthread_create(&thread, &attributes, run_moment, (void *)(uintptr_t)number)) == 0);
    begun++;
    if (!is_detached) CHECK(pthread_join(thread, &result) == 0 && (uintptr_t)result == number);
    CHECK(pthread_attr_destroy(&attributes) == 0);
}

static void wait_until_fewer_than(unsigned count)
{
    for (unsigned i = 0; begun - ended >= count; i++) {
        CHECK(i < 20000);
        sleep_ns(1000000);
    }
}

static void *run_churn(void *argument)
{
    for (unsigned i = 0; storm_continues(); i++) {
        start_moment(i, i % 3 == 0);
        wait_until_fewer_than(50);
    }
    return NULL;
}

static void storm_thread_churn(void)
{
    pthread_t threads[3];
    for (unsigned i = 0; i < 3; i++) threads[i] = storm_thread(run_churn, NULL);
    for (unsigned i = 0; i < 3; i++) storm_join(threads[i]);
    wait_until_fewer_than(1);
    storm_note("threads", begun);
}

/* --- Threads that libc knows nothing of --------------------------------------------------------------------------- */

enum { RAW_STACK = 32 << 10 };
static _Atomic uint32_t raw_tid; /* the kernel clears it, and wakes, when the thread has left its stack */
static _Atomic uint32_t raw_result;

/* Runs without libc: the thread shares the thread-local storage of its creator, which only waits meanwhile. */
static int run_raw(void *unused)
{
    uint32_t value = 1;
    for (uint32_t i = 0; i < 3000000; i++) value = value * 5 + 1;
    raw_result = value | 1;
    return 0;
}

static void storm_raw_clone(void)
{
    uint8_t *stack = mmap(NULL, RAW_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    storm_crowd(2);
    while (storm_continues()) {
        enum {
            FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                    CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID
        };
        raw_result = 0;
        raw_tid = 1;
        CHECK(clone(run_raw, stack + RAW_STACK, FLAGS, NULL, &raw_tid, NULL, &raw_tid) > 0);
        for (uint32_t tid; (tid = raw_tid) != 0;) {
            struct timespec limit = {.tv_sec = 10};
            CHECK(syscall(SYS_futex, &raw_tid, FUTEX_WAIT, tid, &limit, NULL, 0) == 0 || errno != ETIMEDOUT);
        }
        CHECK(raw_result != 0);
    }
    storm_crowd_join();
}

/* --- Cancelled threads -------------------------------------------------------------------------------------------- */

static _Atomic unsigned cleaned;

static void clean(void *unused)
{
    cleaned++;
}

static void *run_to_be_cancelled(void *argument)
{
    unsigned kind = (unsigned)(uintptr_t)argument % 3;
    pthread_cleanup_push(clean, NULL);
    if (kind == 0) (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (volatile uint64_t i = 0;; i = i * 3 + 1) {
        if (kind == 1) (void)poll(NULL, 0, 10000);
        if (kind == 2) {
            storm_work(0);
            pthread_testcancel();
        }
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void storm_cancel(void)
{
    unsigned cancelled = 0;
    storm_crowd(1);
    for (uintptr_t i = 0; storm_continues(); i++) {
        void *result = NULL;
        pthread_t thread = storm_thread(run_to_be_cancelled, (void *)i);
        sleep_ns(i % 4 * 1000000);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
        if (++cancelled % 16 == 0) CHECK(cleaned > 0);
    }
    storm_crowd_join();
}

/* --- Wake-ups ----------------------------------------------------------------------------------------------------- */

enum { ROUND_MAX_NS = 2000000000 };

struct table {
    sem_t ping, pong;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    unsigned turn;
    int pipe[2], event;
};

static void wait_for_turn(struct table *table, unsigned turn)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 10;
    CHECK(pthread_mutex_lock(&table->mutex) == 0);
    while (table->turn != turn) CHECK(pthread_cond_timedwait(&table->condition, &table->mutex, &limit) == 0);
    table->turn = turn + 1;
    CHECK(pthread_cond_broadcast(&table->condition) == 0);
    CHECK(pthread_mutex_unlock(&table->mutex) == 0);
}

/* Restarted by the kernel (SA_RESTART), as without us: neither may return EINTR. */
static void *run_pong(void *argument)
{
    struct table *table = argument;
    for (unsigned i = 0;; i++) {
        unsigned word = 0;
        CHECK(read(table->pipe[0], &word, sizeof(word)) == sizeof(word));
        CHECK(word == i || word == UINT_MAX);
        if (word == UINT_MAX) return NULL;
        wait_for_turn(table, 2 * i);
        CHECK(sem_wait(&table->ping) == 0);
        CHECK(sem_post(&table->pong) == 0);
        CHECK(eventfd_write(table->event, i + 1) == 0);
    }
}

static void *run_ping(void *unused)
{
    struct table table = {.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
    unsigned word = 0;
    CHECK(sem_init(&table.ping, 0, 0) == 0 && sem_init(&table.pong, 0, 0) == 0);
    CHECK(pipe(table.pipe) == 0 && (table.event = eventfd(0, 0)) >= 0);
    pthread_t pong = storm_thread(run_pong, &table);
    for (; storm_continues(); word++) {
        eventfd_t count = 0;
        uint64_t start_ns = now_ns();
        CHECK(write(table.pipe[1], &word, sizeof(word)) == sizeof(word));
        CHECK(sem_post(&table.ping) == 0);
        wait_for_turn(&table, 2 * word + 1);
        CHECK(sem_wait(&table.pong) == 0);
        CHECK(eventfd_read(table.event, &count) == 0 && count == word + 1);
        CHECK(now_ns() - start_ns < ROUND_MAX_NS);
    }
    word = UINT_MAX;
    CHECK(write(table.pipe[1], &word, sizeof(word)) == sizeof(word));
    storm_join(pong);
    return NULL;
}

static void storm_ping_pong(void)
{
    pthread_t threads[3];
    storm_crowd(1);
    for (unsigned i = 0; i < 3; i++) threads[i] = storm_thread(run_ping, NULL);
    for (unsigned i = 0; i < 3; i++) storm_join(threads[i]);
    storm_crowd_join();
}

/* --- Sleepers: neither woken nor interrupted ---------------------------------------------------------------------- */

static _Atomic unsigned interrupted, too_early;

static void sleep_in_poll(void)
{
    if (poll(NULL, 0, 60) < 0) interrupted++;
}

static void sleep_in_select(void)
{
    struct timeval limit = {.tv_usec = 60000};
    if (select(0, NULL, NULL, NULL, &limit) < 0) interrupted++;
}

static void sleep_in_nanosleep(void)
{
    struct timespec limit = {.tv_nsec = 60000000};
    if (nanosleep(&limit, NULL) != 0) interrupted++;
}

static void sleep_in_epoll(void)
{
    int file = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    if (epoll_wait(file, &event, 1, 60) < 0) interrupted++;
    close(file);
}

static void sleep_in_sem_timedwait(void)
{
    sem_t semaphore;
    struct timespec limit;
    sem_init(&semaphore, 0, 0);
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_nsec += 60000000;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    if (sem_clockwait(&semaphore, CLOCK_MONOTONIC, &limit) != 0 && errno == EINTR) interrupted++;
}

static void sleep_in_recv(void)
{
    int ends[2];
    struct timeval limit = {.tv_usec = 60000};
    char byte;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    if (recv(ends[0], &byte, 1, 0) < 0 && errno == EINTR) interrupted++;
    close(ends[0]);
    close(ends[1]);
}

static void *run_sleeper(void *argument)
{
    static void (*const ways[])(void) = {sleep_in_poll,  sleep_in_select,        sleep_in_nanosleep,
                                         sleep_in_epoll, sleep_in_sem_timedwait, sleep_in_recv};
    for (unsigned i = (unsigned)(uintptr_t)argument; storm_continues(); i++) {
        uint64_t start_ns = now_ns();
        unsigned before = interrupted;
        ways[i % 6]();
        if (interrupted == before && now_ns() - start_ns < 58000000) too_early++; /* recv counts in jiffies */
    }
    return NULL;
}

/* A thread that is about to sleep when the signal comes can still be interrupted: one in a thousand sleeps, not more.
 */
static void storm_sleepers(void)
{
    enum { SLEEPERS = 60 };
    pthread_t threads[SLEEPERS];
    uint64_t start_ns = now_ns();
    for (uintptr_t i = 0; i < SLEEPERS; i++) threads[i] = storm_thread(run_sleeper, (void *)i);
    for (unsigned i = 0; i < SLEEPERS; i++) storm_join(threads[i]);
    uint64_t sleeps = (now_ns() - start_ns) / 60000000 * SLEEPERS;
    storm_note("sleeps", (long long)sleeps);
    storm_note("interrupted", interrupted);
    CHECK(too_early == 0);
    CHECK(interrupted <= 1 + sleeps / 1000);
}

/* --- setuid and its like, for which libc signals all threads ------------------------------------------------------ */

enum { OTHER_GROUP = 12345 };
static _Atomic gid_t group_wanted;
static _Atomic unsigned group_round, groups_seen;

static void *run_group(void *argument)
{
    sigset_t all;
    (void)sigfillset(&all);
    if (argument) (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (unsigned seen = 0; storm_continues();) {
        storm_work(seen);
        if (group_round == seen) continue;
        seen = group_round;
        CHECK((gid_t)syscall(SYS_getegid) == group_wanted);
        groups_seen++;
    }
    return NULL;
}

static void storm_setgid(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    gid_t own = getegid();
    if (getuid() != 0) return;
    group_wanted = own;
    for (uintptr_t i = 0; i < THREADS; i++) threads[i] = storm_thread(run_group, (void *)(i % 2));
    for (unsigned i = 0; storm_continues(); i++) {
        gid_t group = i % 2 ? own : OTHER_GROUP;
        unsigned before = groups_seen;
        CHECK(setegid(group) == 0);
        group_wanted = group;
        group_round++;
        for (unsigned j = 0; groups_seen < before + THREADS && storm_continues(); j++) sleep_ns(200000);
        CHECK(setuid(0) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) storm_join(threads[i]);
    storm_note("changes", group_round);
}

const struct storm storms_of_threads[] = {
    {"thread_churn", storm_thread_churn},
    {"raw_clone", storm_raw_clone},
    {"cancel", storm_cancel},
    {"ping_pong", storm_ping_pong},
    {"sleepers", storm_sleepers},
    {"setgid", storm_setgid},
    {0},
};
