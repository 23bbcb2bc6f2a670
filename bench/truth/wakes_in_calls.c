/* Threads that wake each other through poll and epoll_wait, thousands of times a second on busy processors. No wait may
 * end with EINTR: the kernel also stops a thread that is about to sleep, if another one wakes it at that moment.
 * SPDX-License-Identifier: MIT */
#include "truth.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { WAKERS = 4, SLEEPERS = 2, THREADS = WAKERS + SLEEPERS };

static double end;
static int events[WAKERS];
static _Atomic int interrupted, waits;
static struct spent all[THREADS];

static int wait_by_poll(int event)
{
    struct pollfd wanted = {.fd = event, .events = POLLIN};
    return poll(&wanted, 1, 1);
}

static int wait_by_epoll(int epoll)
{
    struct epoll_event found;
    return epoll_wait(epoll, &found, 1, 1);
}

/* Sleeps; each of its wake-ups interrupts another thread wherever that is. */
static void *sleeps(void *number)
{
    int me = (int)(intptr_t)number;
    unsigned seed = (unsigned)me + 1;
    struct spent start = spent_until_now();
    while (now() < end) {
        sleep_us(rand_r(&seed) % 300);
        spin_us(rand_r(&seed) % 200);
    }
    add_since(&all[me], start);
    return NULL;
}

static void *run(void *number)
{
    int me = (int)(intptr_t)number, epoll = me < 2 ? -1 : epoll_create1(0);
    unsigned seed = (unsigned)me + 1;
    struct spent start = spent_until_now();
    struct epoll_event wanted = {.events = EPOLLIN};
    if (epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, events[me], &wanted) != 0) return NULL;
    while (now() < end) {
        int result = epoll < 0 ? wait_by_poll(events[me]) : wait_by_epoll(epoll);
        waits++;
        interrupted += result < 0 && errno == EINTR;
        uint64_t count = 0;
        if (result > 0 && read(events[me], &count, sizeof(count)) < 0) break;
        spin_us(rand_r(&seed) % 150);
        count = 1;
        if (epoll < 0 && result == 0 && (me % 2 || rand_r(&seed) % 50)) continue;
        if (write(events[me ^ 1], &count, sizeof(count)) < 0) break;
    }
    add_since(&all[me], start);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    calibrate();
    end = end_after(1);
    for (int i = 0; i < WAKERS; i++) events[i] = eventfd(0, EFD_NONBLOCK);
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, i < WAKERS ? run : sleeps, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) print_spent("TRUTH", "(all)", all[i]);
    fprintf(stderr, "NEVER interrupted %d %d\n", interrupted, waits);
}
